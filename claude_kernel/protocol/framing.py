"""Bytes to lines. It knows newlines and a limit, and nothing of JSON."""

from __future__ import annotations

from typing import NamedTuple

DEFAULT_LIMIT = 64 * 1024 * 1024
EXCERPT = 200


class LineTooLong(NamedTuple):
    """Stands in the place of a line that went over the limit."""

    size: int
    head: bytes


class LineFramer:
    """Collects bytes in any chunking and hands out whole lines, without their newline.

    A line over the limit costs that line only: its bytes are counted and thrown away as they come, so that memory
    stays bounded, and a `LineTooLong` takes its place.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        if limit < 1:
            raise ValueError("a line limit must be at least one byte")
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""

    def feed(self, data: bytes) -> list[bytes | LineTooLong]:
        first, *rest = data.split(b"\n")
        if not rest:
            self._keep(first)
            return []
        self._keep(first)
        lines: list[bytes | LineTooLong] = [self._take()]
        last = rest.pop()
        if len(data) <= self._limit:  # then so is each of its lines
            lines += rest
        else:
            lines += [line if len(line) <= self._limit else LineTooLong(len(line), line[:EXCERPT]) for line in rest]
        self._keep(last)
        return lines

    def end(self) -> bytes | LineTooLong | None:
        """What is left at the end of the stream: a line without its newline, or nothing."""
        return self._take() if self._size else None

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        self._size += len(part)
        if len(self._head) < EXCERPT:
            self._head += part[: EXCERPT - len(self._head)]
        if self._size > self._limit:
            self._parts.clear()
        else:
            self._parts.append(part)

    def _take(self) -> bytes | LineTooLong:
        size, head, parts = self._size, self._head, self._parts
        self._size, self._head, self._parts = 0, b"", []
        if size > self._limit:
            return LineTooLong(size, head)
        return parts[0] if len(parts) == 1 else b"".join(parts)
