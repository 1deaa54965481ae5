"""A form of questions, worded and read back: labels to show, answers keyed by the question's own text. Pure."""

from __future__ import annotations

from claude_kernel.protocol import events
from claude_kernel.render import Bundle
from claude_kernel.render.bundle import Part, join_parts, publish
from claude_kernel.render.cut import Room
from claude_kernel.render.direction import direction_of
from claude_kernel.render.rows import compose_code
from claude_kernel.render.visible import exact_html, exact_text, one_line

OTHER = "Other…"
Answer = str | list[str]


def labels_of(asked: events.FormQuestion) -> list[str]:
    """Each once: a front end finds a radio button by its label."""
    labels: list[str] = []
    for choice in asked.choices:
        words = f"{choice.label} – {choice.description}" if choice.description else choice.label
        label = one_line(exact_text(words), 400)
        labels.append(label if label not in [*labels, OTHER] else f"{label} ({len(labels) + 1})")
    return labels


def find_answer(asked: events.FormQuestion, chosen: list[int], other: str) -> Answer | None:
    """None while the question is open."""
    labels = [asked.choices[index].label for index in chosen if 0 <= index < len(asked.choices)]
    own = other.strip()
    if asked.multiple:
        return [*labels, *([own] if own else [])] or None
    return own or (labels[0] if labels else None)


def read_answer(asked: events.FormQuestion, typed: str) -> Answer | None:
    """What was typed where there are no buttons: numbers of choices, or own words."""
    words = typed.strip()
    if not asked.multiple:
        return find_answer(asked, _numbers([words], asked), "") or (words or None)
    parts = [part.strip() for part in words.split(",") if part.strip()]
    numbers = _numbers(parts, asked)
    if not numbers:
        return find_answer(asked, [], words)
    rest = [part for part in parts if not _numbers([part], asked)]
    return find_answer(asked, numbers, ", ".join(rest))


def _numbers(parts: list[str], asked: events.FormQuestion) -> list[int]:
    found = [int(part) - 1 for part in parts if part.isascii() and part.isdigit()]
    return [number for number in found if 0 <= number < len(asked.choices)]


def render_asked(asked: events.FormQuestion) -> Bundle:
    """The question above its choices."""
    header = f' <span class="d" dir="auto">{exact_html(one_line(asked.header, 60))}</span>' if asked.header else ""
    several = ' <span class="d">(several)</span>' if asked.multiple else ""
    text = one_line(asked.text, 2_000)
    words = " · ".join(word for word in (exact_text(text), exact_text(one_line(asked.header, 60))) if word)
    return publish(Part(f'<p dir="auto"><b>{exact_html(text)}</b>{header}{several}</p>', words))


def render_previews(asked: events.FormQuestion) -> Bundle | None:
    """All of them at once, to be compared before the choice is made."""
    parts = []
    for choice in asked.choices:
        if choice.preview.strip():
            shown = compose_code(choice.preview, "", Room(lines=200, chars=20_000))
            name = one_line(choice.label, 120)
            html = f"<details open><summary><b>{exact_html(name)}</b></summary>{shown.html}</details>"
            parts.append(Part(html, f"{exact_text(name)}\n{shown.text}"))
    return publish(join_parts(parts)) if parts else None


def render_numbered(asked: events.FormQuestion, number: int, total: int) -> Bundle:
    """A question for those who type: its choices have numbers."""
    lines = [f"{index}. {label}" for index, label in enumerate(labels_of(asked), 1)]
    count = f"({number} of {total}) " if total > 1 else ""
    question = f"{count}{exact_text(one_line(asked.text, 2_000))}"
    items = "".join(f"<li>{exact_html(label)}</li>" for label in labels_of(asked))
    way = f' dir="{direction}"' if (direction := direction_of(asked.text)) == "rtl" else ""
    html = f"<p{way}><b>{exact_html(question)}</b></p><ol{way}>{items}</ol>"
    asking = Part(html, "\n".join([question, *lines]))
    previews = render_previews(asked)
    return publish(asking if previews is None else join_parts([asking, Part(previews.html, previews.text)]))
