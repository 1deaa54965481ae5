"""Differences between two texts, from the CLI's patch or from the texts. It knows no tool.

A row is a line of `<pre>` and holds its line break, so it reads as well without the style sheet.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from claude_kernel.render.bundle import Part
from claude_kernel.render.code import highlight_lines, in_frame
from claude_kernel.render.cut import Room, count_of
from claude_kernel.render.visible import loose_text

# difflib is quadratic at worst; past this the changed middle is shown as removed and added whole
_MOST_COMPARED_LINES = 2_000
_MOST_COMPARED_CHARS = 400_000  # past this only the beginnings are looked at; the counts stay those of the whole
_LONGEST_LINE = 400
_CONTEXT = 3


@dataclass(frozen=True)
class Line:
    sign: str
    """A space, `-` or `+`."""
    text: str
    number: int


@dataclass(frozen=True)
class Diff:
    hunks: tuple[tuple[Line, ...], ...] = ()
    added: int = 0
    removed: int = 0
    numbered: bool = True


@dataclass
class _Counter:
    added: int = 0
    removed: int = 0
    hunks: list[tuple[Line, ...]] = field(default_factory=list)

    def take(self, lines: list[str], old: int, new: int) -> None:
        rows = []
        for line in lines:
            sign, text = line[:1], line[1:]
            if sign == "-":
                rows.append(Line("-", text, old))
                self.removed += 1
                old += 1
            elif sign == "+":
                rows.append(Line("+", text, new))
                self.added += 1
                new += 1
            elif sign != "\\":  # "\ No newline at end of file"
                rows.append(Line(" ", text, new))
                old += 1
                new += 1
        self.hunks.append(tuple(rows))


def find_patch_diff(patch: Any) -> Diff | None:
    """From `structuredPatch` (scene `permission`, CLI 2.1.326); None if it is not one."""
    if not isinstance(patch, list) or not patch:
        return None
    counter = _Counter()
    for hunk in patch:
        if not isinstance(hunk, dict) or not isinstance(hunk.get("lines"), list):
            return None
        lines = [line for line in hunk["lines"] if isinstance(line, str)]
        counter.take(lines, _line_number(hunk.get("oldStart")), _line_number(hunk.get("newStart")))
    return Diff(tuple(counter.hunks), counter.added, counter.removed)


def _line_number(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value < 10**9 else 1


def compare_texts(old: str, new: str, *, numbered: bool = False) -> Diff:
    """From the two texts. `numbered` where they are whole files and line numbers mean something."""
    if len(old) + len(new) > _MOST_COMPARED_CHARS:
        return _replaced_whole(old, new)
    old_lines, new_lines = old.splitlines(), new.splitlines()
    same_head = _same_length(zip(old_lines, new_lines, strict=False))
    rest = min(len(old_lines), len(new_lines)) - same_head
    backwards = zip(reversed(old_lines), reversed(new_lines), strict=False)
    same_tail = min(rest, _same_length(backwards))
    start = max(0, same_head - _CONTEXT)
    old_part = old_lines[start : len(old_lines) - max(0, same_tail - _CONTEXT)]
    new_part = new_lines[start : len(new_lines) - max(0, same_tail - _CONTEXT)]
    counter = _Counter()
    if len(old_part) + len(new_part) > _MOST_COMPARED_LINES:
        counter.take([*("-" + x for x in old_part), *("+" + x for x in new_part)], start + 1, start + 1)
    else:
        matcher = difflib.SequenceMatcher(None, old_part, new_part, autojunk=True)
        for group in matcher.get_grouped_opcodes(_CONTEXT):
            lines = list(_signed(group, old_part, new_part))
            counter.take(lines, start + group[0][1] + 1, start + group[0][3] + 1)
    return Diff(tuple(counter.hunks), counter.added, counter.removed, numbered)


def _replaced_whole(old: str, new: str) -> Diff:
    counter = _Counter()
    heads = [text[: _MOST_COMPARED_CHARS // 20].split("\n")[:500] for text in (old, new)]
    counter.take([*("-" + line for line in heads[0]), *("+" + line for line in heads[1])], 1, 1)
    return Diff(tuple(counter.hunks), new.count("\n") + 1, old.count("\n") + 1, numbered=False)


def _same_length(pairs: Iterator[tuple[str, str]]) -> int:
    length = 0
    for left, right in pairs:
        if left != right:
            break
        length += 1
    return length


def _signed(group: list[tuple[str, int, int, int, int]], old: list[str], new: list[str]) -> Iterator[str]:
    for kind, old_from, old_to, new_from, new_to in group:
        if kind == "equal":
            yield from (" " + line for line in old[old_from:old_to])
        else:
            yield from ("-" + line for line in old[old_from:old_to])
            yield from ("+" + line for line in new[new_from:new_to])


_SHOWN_SIGN = {"-": "−", "+": "+", " ": " "}
_ROW_CLASS = {"-": ' class="del"', "+": ' class="add"', " ": ""}


def compose_diff(diff: Diff, language: str, room: Room) -> Part:
    rows = _within(diff, room)
    left_out = diff.added + diff.removed - sum(line.sign != " " for hunk in rows for line in hunk)
    width = max((len(str(line.number)) for hunk in rows for line in hunk), default=1)
    html, text = [], []
    for index, hunk in enumerate(rows):
        if index:
            html.append('<span class="d">⋯\n</span>')
            text.append("⋯")
        coloured = highlight_lines([line.text for line in hunk], language)
        for line, code in zip(hunk, coloured, strict=True):
            number = f"{line.number:>{width}} " if diff.numbered else ""
            sign = _SHOWN_SIGN[line.sign]
            html.append(f'<span{_ROW_CLASS[line.sign]}><span class="n">{number}{sign} </span>{code}\n</span>')
            text.append(f"{number}{sign} {loose_text(line.text)}")
    if left_out:
        note = f"… {count_of(left_out, 'changed line')} left out …"
        html.append(f'<span class="d">{note}\n</span>')
        text.append(note)
    shown = "\n".join(text)
    return Part(in_frame("".join(html), shown, kind="df"), shown)


def _within(diff: Diff, room: Room) -> list[list[Line]]:
    """The first rows that fit: a difference is read from its top, so its head is kept rather than both ends."""
    lines_left, chars_left = room.lines, room.chars
    shown: list[list[Line]] = []
    for hunk in diff.hunks:
        kept: list[Line] = []
        for line in hunk:
            text = line.text if len(line.text) <= _LONGEST_LINE else line.text[:_LONGEST_LINE] + " …"
            if lines_left <= 0 or chars_left < len(text):
                return [*shown, kept] if kept else shown
            lines_left -= 1
            chars_left -= len(text) + 1
            kept.append(Line(line.sign, text, line.number))
        shown.append(kept)
    return shown
