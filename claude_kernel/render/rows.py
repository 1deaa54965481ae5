"""The one row shape of a turn, and the pieces its body is made of. It knows no tool by name."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from claude_kernel.render.ansi import render_ansi, settle, strip_ansi
from claude_kernel.render.bundle import Part
from claude_kernel.render.code import highlight, in_frame
from claude_kernel.render.cut import DEFAULT_ROOM, Room, cut_text
from claude_kernel.render.markdown import compose_markdown, plain_prose
from claude_kernel.render.visible import exact_html, exact_text, loose_html, loose_text, one_line

EMPTY = Part("", "")

Note = tuple[str, str]
"""What a row says at its right end: the text, and one of the classes `ok`, `no`, `q`, `d` or none."""

_ERROR_TAGS = re.compile(r"</?tool_use_error>")
_LONGEST_PATH = 72


@dataclass(frozen=True)
class View:
    """What rendering depends on besides the call itself."""

    now: float | None = None
    project: str = ""
    room: Room = DEFAULT_ROOM
    depth: int = 0
    """How many sub-agents deep."""

    def with_room(self, room: Room) -> View:
        return replace(self, room=room)

    def path(self, path: str) -> str:
        """Short, and cut at its beginning, between two folders if it can be: the name of a file is at the end."""
        base = self.project.rstrip("/") + "/"
        if self.project and path.startswith(base):
            path = path.removeprefix(base) or "."
        if len(path) <= _LONGEST_PATH:
            return path
        end = path[-_LONGEST_PATH:]
        return "…" + (end[end.index("/") :] if "/" in end[:-1] else end)


def compose_row(title: str, subject: str, notes: Iterable[Note], body: Part, *, opened: bool, plain: Part) -> Part:
    """`plain.text` is what of the body belongs in the plain text."""
    notes = [note for note in notes if note[0]]
    about = one_line(subject)
    right = " ".join(
        f'<i class="{name}">{escape(text)}</i>' if name else f"<i>{escape(text)}</i>" for text, name in notes
    )
    summary = f"<b>{exact_html(title)}</b> <code>{exact_html(about)}</code> {right}"
    html = f"<details{' open' if opened else ''}><summary>{summary}</summary>{body.html}</details>"
    head = f"{exact_text(title)} {exact_text(about)}".strip()
    line = " · ".join([head, *(text for text, _ in notes)]).replace(" · −", " −")
    return Part(html, line + ("\n" + indented(plain.text) if plain.text else ""))


def indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.split("\n"))


def compose_output(text: str, room: Room, kept_at: str = "") -> Part:
    """What a program printed: its colours kept, head and tail shown."""
    text = settle(text).strip("\n")
    if not text.strip():
        return EMPTY
    excerpt = cut_text(text, room)
    note = exact_html(excerpt.note(kept_at))
    middle = f'\n<span class="d">{note}</span>\n{render_ansi(excerpt.tail)}' if excerpt.left_out else ""
    shown = loose_text(strip_ansi(excerpt.joined(exact_text(kept_at))))
    # nbconvert sets a fixed-width face on code only
    return Part(in_frame(render_ansi(excerpt.head) + middle, shown), shown)


def compose_code(source: str, language: str, room: Room, *, exact: bool = False, kept_at: str = "") -> Part:
    """`exact` for what is run: every hidden character in it is named."""
    excerpt = cut_text(source.strip("\n"), room)
    html = highlight(excerpt.head, language, exact=exact)
    if excerpt.left_out:
        note = exact_html(excerpt.note(kept_at))
        html += f'\n<span class="d">{note}</span>\n{highlight(excerpt.tail, language, exact=exact)}'
    shown = (exact_text if exact else loose_text)(excerpt.joined(kept_at))
    return Part(in_frame(html, shown), shown)


def compose_prose(text: str, view: View) -> Part:
    """Markdown in a body."""
    excerpt = cut_text(text.strip(), view.room)
    html = compose_markdown(excerpt.head, project=view.project)
    if excerpt.left_out:
        html += f'<p class="d">{loose_html(excerpt.note())}</p>{compose_markdown(excerpt.tail, project=view.project)}'
    return Part(f'<div class="sub">{html}</div>', plain_prose(excerpt.joined()))


def compose_list(items: Iterable[Part]) -> Part:
    kept = list(items)
    html = "".join(f'<li dir="auto">{item.html}</li>' for item in kept)
    return Part(f'<ul class="todo">{html}</ul>' if kept else "", "\n".join(item.text for item in kept))


def compose_quiet(text: str) -> Part:
    """A remark of a few lines at most."""
    text = cut_text(text.strip(), Room(lines=12, chars=1_500)).joined()
    return Part(f'<div class="sub d" dir="auto">{loose_html(text)}</div>', loose_text(text))


def error_text(text: str) -> str:
    return _ERROR_TAGS.sub("", text).strip()


def pretty_json(value: Any) -> str:
    return json.dumps(_trimmed(value, 6), indent=2, ensure_ascii=False, default=str)


def _trimmed(value: Any, depth: int) -> Any:
    """A 5 MB string or a deep tree is cut before it is written out, not after."""
    if isinstance(value, str):
        return value if len(value) <= 2_000 else f"{value[:2_000]}… ({len(value):,} characters)"
    if isinstance(value, dict | list) and depth == 0:
        return "…"
    if isinstance(value, dict):
        kept = {str(key)[:200]: _trimmed(item, depth - 1) for key, item in list(value.items())[:60]}
        return kept if len(value) <= 60 else {**kept, "…": f"{len(value) - 60:,} more"}
    if isinstance(value, list):
        items = [_trimmed(item, depth - 1) for item in value[:60]]
        return items if len(value) <= 60 else [*items, f"… {len(value) - 60:,} more"]
    return value


def text_in(mapping: Any, *keys: str) -> str:
    """The first of these that is there, as text. Tools define their own shapes, and hostile ones lie about them."""
    for key in keys:
        value = mapping.get(key) if isinstance(mapping, dict) else None
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
    return ""


def number_in(mapping: Any, *keys: str) -> int | None:
    for key in keys:
        value = mapping.get(key) if isinstance(mapping, dict) else None
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def list_in(mapping: Any, key: str) -> list[Any]:
    value = mapping.get(key) if isinstance(mapping, dict) else None
    return value if isinstance(value, list) else []


def dict_in(mapping: Any, key: str) -> dict[str, Any]:
    value = mapping.get(key) if isinstance(mapping, dict) else None
    return value if isinstance(value, dict) else {}
