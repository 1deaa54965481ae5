"""Everything of a turn that is not a tool call: prose, thinking, the live line, the footer, trouble and notices."""

from __future__ import annotations

import re
import time
from html import escape

from claude_kernel.protocol.events import ConversationCompacted, RateLimited, Usage
from claude_kernel.render.ansi import strip_ansi
from claude_kernel.render.bundle import Bundle, Part, join_parts, publish
from claude_kernel.render.code import focus_of
from claude_kernel.render.cut import Room, count_of, cut_text
from claude_kernel.render.figures import dollars_text, seconds_text, tokens_text
from claude_kernel.render.markdown import compose_markdown, plain_prose
from claude_kernel.render.rows import EMPTY, compose_output, compose_quiet, compose_row, indented
from claude_kernel.render.visible import exact_html, exact_text, loose_html, loose_text, one_line

_THINKING_ROOM = Room(lines=200, chars=16_000)
_MODEL_PREFIX = "claude-"
_QUOTED = re.compile("“([^”]*)”")


def render_text(text: str, *, project: str = "", definitions: str = "") -> Bundle:
    """A segment of Claude's answer. Its plain text is the Markdown itself, which reads well alone."""
    html = compose_markdown(text, project=project, definitions=definitions)
    return publish(Part(html, plain_prose(text)))


def render_thinking(text: str, seconds: float | None = None, *, streaming: bool = False) -> Bundle:
    """Folded, its last line in the row while it streams and its first when it is done."""
    words = strip_ansi(text).strip()
    lines = [line for line in words.split("\n") if line.strip()]
    subject = (lines[-1] if streaming else lines[0]).strip() if lines else ""
    excerpt = cut_text(words, _THINKING_ROOM)
    body = Part(f'<pre dir="auto"{focus_of(words)}>{loose_html(excerpt.joined())}</pre>', "")
    if not words:
        body = compose_quiet("The thought itself is not shown.")
    note = (seconds_text(seconds), "") if seconds is not None and seconds >= 0.05 else ("", "")
    title = "Thinking" if streaming else "Thought"
    return publish(compose_row(title, subject, [note], body, opened=False, plain=EMPTY))


def render_live_line(doing: str, seconds: float | None = None, tokens: int | None = None) -> Bundle:
    """What is happening now. It is replaced as long as the turn runs, and gone when it ends."""
    about = one_line(doing, 120)
    rest = [seconds_text(seconds) if seconds is not None else "", f"{tokens_text(tokens)} tokens" if tokens else ""]
    tail = "".join(f" · {word}" for word in rest if word)
    return publish(Part(f'<p class="live">{exact_html(about)}{tail}</p>', f"{exact_text(about)}{tail}"))


def render_footer(
    usage: Usage,
    *,
    seconds: float | None = None,
    model: str = "",
    notebook_cost_usd: float | None = None,
    context_fraction: float | None = None,
    changed: int = 0,
) -> Bundle:
    sent = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    total = notebook_cost_usd if notebook_cost_usd is not None else usage.session_cost_usd
    words = [
        seconds_text(seconds) if seconds is not None else "",
        one_line(model, 60).removeprefix(_MODEL_PREFIX),
        f"{tokens_text(sent)} in, {tokens_text(usage.output_tokens)} out" if sent or usage.output_tokens else "",
        dollars_text(usage.cost_usd) if usage.cost_usd is not None else "",
        f"notebook {dollars_text(total)}" if total is not None else "",
        f"context {_percent(context_fraction)}" if context_fraction is not None else "",
        f"{count_of(changed, 'file')} changed: %claude undo" if changed else "",
    ]
    line = " · ".join(exact_text(word) for word in words if word)
    return publish(Part(f'<p class="foot">{escape(line)}</p>' if line else "", line))


def _percent(fraction: float) -> str:
    return "under 1%" if 0 < fraction < 0.01 else f"{round(min(max(fraction, 0.0), 1.0) * 100)}%"


def render_trouble(title: str, what_to_do: str, details: str = "") -> Bundle:
    """`what_to_do` may hold code spans; it is our text, and still goes the way of all Markdown."""
    heading = one_line(plain_prose(title), 300)
    remedy = compose_markdown(what_to_do)
    told = compose_output(details, Room(lines=40, chars=4_000)) if details.strip() else EMPTY
    folded = f"<details><summary><b>Details</b></summary>{told.html}</details>" if told.html else ""
    html = f'<div class="trouble"><p><b>{loose_html(heading)}</b></p>{remedy}{folded}</div>'
    text = f"{heading}\n{plain_prose(what_to_do)}"
    return publish(Part(html, f"{text}\n{indented(told.text)}" if told.text else text))


def render_notice(text: str) -> Bundle:
    """One quiet line of our own or of the CLI's."""
    line = one_line(strip_ansi(text), 400)
    return publish(Part(f'<p class="rec" dir="auto">{loose_html(line)}</p>', loose_text(line)))


def render_printed(text: str) -> Bundle:
    """What a slash command inside the CLI printed: Markdown, as `/context` and `/cost` write it."""
    excerpt = cut_text(text, Room(lines=300, chars=20_000))
    parts = [compose_markdown(piece) for piece in (excerpt.head, excerpt.tail) if piece]
    note = f'<p class="d">{loose_html(excerpt.note())}</p>' if excerpt.left_out else ""
    return publish(Part(note.join(parts), plain_prose(excerpt.joined())))


def render_record(verdict: str, rest: str = "", exact: str = "", *, good: bool = True) -> Bundle:
    """What a person decided, in one line: ✓ **Allowed** for this session: `pytest *` · 14:02."""
    mark, name = ("✓", "ok") if good else ("✗", "no")
    thing = one_line(exact, 200)
    html = f'<b><span class="{name}">{mark}</span> {loose_html(verdict)}</b>'
    html += " " + _QUOTED.sub(r'“<span dir="auto">\1</span>”', loose_html(one_line(rest, 300))) if rest else ""
    html += f" <code>{exact_html(thing)}</code>" if thing else ""
    words = [mark, loose_text(verdict), loose_text(one_line(rest, 300)), exact_text(thing)]
    return publish(Part(f'<p class="rec">{html}</p>', " ".join(word for word in words if word)))


def render_answer(asked: str, answer: str, when: str) -> Bundle:
    """One question of a form. Each part is read its own way, or the arrow would point to the question."""
    html = f'<b><span class="ok">✓</span> You answered</b> <span dir="auto">{loose_html(one_line(asked, 200))}</span>'
    html += f' → <b dir="auto">{loose_html(one_line(answer, 200))}</b> · {escape(when)}'
    words = f"✓ You answered {one_line(asked, 200)} → {one_line(answer, 200)} · {when}"
    return publish(Part(f'<p class="rec">{html}</p>', loose_text(words)))


def render_interrupted() -> Bundle:
    return render_notice("Interrupted. What was said so far stays; the next cell goes on from here.")


def render_compacted(event: ConversationCompacted) -> Bundle:
    sizes = [tokens_text(count) for count in (event.tokens_before, event.tokens_after) if count is not None]
    told = f" ({' → '.join(sizes)} tokens)" if sizes else ""
    return render_notice(f"The conversation was summarised to make room{told}.")


def render_rate_limit(event: RateLimited) -> Bundle:
    """The reset time is local, as a person at this machine reads it."""
    kind = event.kind.replace("_", " ")
    until = ""
    if event.resets_at is not None and 0 < event.resets_at < 1e11:
        until = time.strftime(" It resets on %d %B at %H:%M.", time.localtime(event.resets_at))
    reached = "reached" if event.status in ("rejected", "blocked") else "close"
    return render_notice(f"Usage limit {reached}{f' ({kind})' if kind else ''}.{until}")


def join_bundles(bundles: list[Bundle]) -> Bundle:
    """Several in one output, to stay under the 50 that a cell shows."""
    parts = join_parts([Part(bundle.html, bundle.text) for bundle in bundles], gap="\n\n")
    return Bundle(parts.html, parts.text)
