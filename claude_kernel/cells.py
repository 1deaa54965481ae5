"""What kind of cell it is: a prompt, IPython's, or steering. Pure text in, a plan out."""

from __future__ import annotations

import re
from typing import NamedTuple

_STEER = re.compile(r"%claude(?:[ \t]+(?P<line>.*))?$")
_PYTHON = re.compile(r"%%(?:python|python3|py)[ \t]*$")


class Cell(NamedTuple):
    steering: tuple[str, ...] = ()
    """The leading `%claude` lines, without the `%claude`."""
    code: str | None = None
    """For IPython, where the rest of the cell is its."""
    prompt: str | None = None
    code_offset: int = 0
    """Where `code` begins in the cell, in characters."""


def read_cell(text: str) -> Cell:
    """`%claude` lines may stand before a prompt or before code. A leading backslash makes the rest a prompt."""
    steering: list[str] = []
    rest, offset = text, 0
    while True:
        stripped = rest.lstrip("\n\r\t ")
        offset += len(rest) - len(stripped)
        rest = stripped
        first, newline, after = rest.partition("\n")
        steered = _STEER.match(first.rstrip())
        if steered is None:
            break
        steering.append((steered["line"] or "").strip())
        rest, offset = after, offset + len(first) + len(newline)
    first, newline, after = rest.partition("\n")
    if not rest.strip():
        return Cell(tuple(steering))
    if _PYTHON.match(first.rstrip()):
        return Cell(tuple(steering), code=after, code_offset=offset + len(first) + len(newline))
    if first.startswith(("%", "!")):
        return Cell(tuple(steering), code=rest, code_offset=offset)
    if first.startswith(("\\%", "\\!", "\\\\")):
        rest = rest[1:]
    return Cell(tuple(steering), prompt=rest.rstrip())


def is_complete(text: str) -> tuple[str, str]:
    """For front ends where Enter may send: a trailing backslash or an open code fence asks for more."""
    if text.endswith("\\"):
        return "incomplete", ""
    fence = ""
    for line in text.split("\n"):
        opening = re.match(r" {0,3}(`{3,}(?!.*`)|~{3,})", line)
        if opening and not fence:
            fence = opening[1]
        elif fence and line.strip().startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
    return ("incomplete", "") if fence else ("complete", "")
