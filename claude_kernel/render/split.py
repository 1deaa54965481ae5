"""Where a growing Markdown text can be cut, so that its head need never be sent again. It renders nothing.

A cut is made before a line that begins a new block for certain: after a blank line, not indented, outside fences, and
not a further item of the list before it. Rendering the segments one by one then gives what rendering the whole gives.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"(`{3,}|~{3,})([^\n]*)$")
_MARKER = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?=\s|$)")
_ITEM_START = re.compile(r" {0,3}(?:(?:[-*+]|\d{1,9}[.)])(?: {1,4}|$))+")
_DEFINITION = re.compile(r" {0,3}\[[^\]\n]{1,200}\]:[ \t]*\S[^\n]*$")

DEFAULT_MINIMUM = 4_096
_HARD_FACTOR = 8
_MOST_DEFINITIONS = 16_000


class MarkdownSplitter:
    """Feed it increments; it gives back segments that are final. `tail` is the rest, still growing.

    Each line is looked at once. `minimum` may be raised as a turn grows, to keep the number of outputs down.
    """

    def __init__(self, minimum: int = DEFAULT_MINIMUM) -> None:
        self.minimum = minimum
        self.hard_factor = _HARD_FACTOR
        """At so many times the minimum a cut is made before any line, so that no block is resent for ever."""
        self.definitions = ""
        """Link definitions of closed segments; later segments may use them."""
        self._open: list[str] = []
        self._open_size = 0
        self._line: list[str] = []
        self._new_definitions: list[str] = []
        self._fence = ""
        self._fence_line = ""
        self._fence_indent = 0
        self._after_blank = True
        self._in_list = False

    @property
    def tail(self) -> str:
        return "".join([*self._open, *self._line])

    def feed(self, text: str) -> list[str]:
        closed: list[str] = []
        *lines, rest = text.split("\n")
        for line in lines:
            self._line.append(line)
            whole = "".join(self._line)
            self._line = []
            if self._open and self._may_cut_before(whole):
                closed.append(self._cut())
            self._take(whole)
        if rest:
            self._line.append(rest)
        return closed

    def finish(self) -> str:
        """The last segment. A splitter serves one text."""
        last, self._open, self._line, self._open_size = self.tail, [], [], 0
        return last

    def _may_cut_before(self, line: str) -> bool:
        if self._open_size < self.minimum:
            return False
        if self._open_size >= self.minimum * self.hard_factor:
            return True
        fresh = self._after_blank and not self._fence and line[:1] not in ("", " ", "\t", "\r")
        return fresh and not (self._in_list and _MARKER.match(line))

    def _cut(self) -> str:
        segment = "".join(self._open)
        self._open, self._open_size = [], 0
        if self._fence:
            # A code block past the hard limit goes on as a second one: else every repaint would send it all again.
            segment += f"{' ' * self._fence_indent}{self._fence}\n"
            self._open = [self._fence_line + "\n"]
        if len(self.definitions) < _MOST_DEFINITIONS:
            self.definitions += "".join(self._new_definitions)
        self._new_definitions = []
        return segment

    def _take(self, line: str) -> None:
        self._open.append(line + "\n")
        self._open_size += len(line) + 1
        if self._fence:
            self._look_for_fence_end(line)
        else:
            self._look_for_blocks(line)

    def _look_for_fence_end(self, line: str) -> None:
        bare = line.strip()
        indent = len(line) - len(line.lstrip(" "))
        closes = bare.startswith(self._fence) and not bare.strip(self._fence[0]) and indent - self._fence_indent < 4
        # a fence inside a list item ends with the item
        falls_out = bool(bare) and indent < self._fence_indent
        if closes or falls_out:
            self._fence = ""
            self._after_blank = False
            if falls_out:
                self._look_for_blocks(line)

    def _look_for_blocks(self, line: str) -> None:
        if not line.strip():
            self._after_blank = True
            return
        if line[0] not in " \t":
            if _MARKER.match(line):
                self._in_list = True
            elif self._after_blank:
                self._in_list = False
        self._after_blank = False
        if line[0] == "[" and _DEFINITION.match(line):
            self._new_definitions.append(line + "\n")
        self._look_for_fence(line)

    def _look_for_fence(self, line: str) -> None:
        item = _ITEM_START.match(line)
        indent = item.end() if item else (len(line) - len(line.lstrip(" ")))
        opening = _FENCE.match(line[indent:])
        if not opening or (indent > 3 and not self._in_list) or (opening[1][0] == "`" and "`" in opening[2]):
            return
        self._fence, self._fence_indent = opening[1], indent if self._in_list and indent >= 2 else 0
        self._fence_line = " " * indent + line[indent:]
