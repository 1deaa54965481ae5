"""Bytes to lines, in every chunking."""

from __future__ import annotations

import tracemalloc

import pytest

from claude_kernel.protocol.framing import DEFAULT_LIMIT, EXCERPT, LineFramer, LineTooLong

STREAMS: dict[str, tuple[bytes, list[bytes]]] = {
    "nothing": (b"", []),
    "one line": (b"one\n", [b"one"]),
    "several lines": (b"one\ntwo\nthree\n", [b"one", b"two", b"three"]),
    "blank lines are lines": (b"\n\none\n\n", [b"", b"", b"one", b""]),
    "a carriage return belongs to the line": (b"one\r\ntwo\r\n", [b"one\r", b"two\r"]),
    "only a newline ends a line": ("a\u2028b\u0085c\x0b\n".encode(), ["a\u2028b\u0085c\x0b".encode()]),
    "characters of several bytes": ("grüße 🙂\n東京\n".encode(), ["grüße 🙂".encode(), "東京".encode()]),
    "bytes that are no text": (b"\xff\xfe\x00\n", [b"\xff\xfe\x00"]),
}


def split(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("name", STREAMS)
def test_lines_do_not_depend_on_where_the_stream_is_cut(name: str, size: int) -> None:
    data, lines = STREAMS[name]
    framer = LineFramer()
    assert [line for chunk in split(data, size) for line in framer.feed(chunk)] == lines
    assert framer.end() is None


def test_a_line_without_its_newline_is_left_to_the_end() -> None:
    framer = LineFramer()
    assert framer.feed(b"one\ntw") == [b"one"]
    assert framer.feed(b"o") == []
    assert framer.end() == b"two"
    assert framer.end() is None


@pytest.mark.parametrize("size", [1, 2, 5, 6, 7, 100])
def test_a_line_over_the_limit_costs_that_line_only(size: int) -> None:
    framer = LineFramer(limit=5)
    lines = [line for chunk in split(b"12345\n123456\nok\n1234567890\n\nend\n", size) for line in framer.feed(chunk)]
    assert lines == [b"12345", LineTooLong(6, b"123456"), b"ok", LineTooLong(10, b"1234567890"), b"", b"end"]


@pytest.mark.parametrize("size", [1, 999, 100_000])
def test_of_a_line_over_the_limit_only_its_head_is_kept(size: int) -> None:
    framer = LineFramer(limit=1000)
    line = bytes(range(48, 58)) * 1000
    found = [line for chunk in split(line + b"\n", size) for line in framer.feed(chunk)]
    assert found == [LineTooLong(10_000, line[:EXCERPT])]


def test_the_bytes_of_a_line_over_the_limit_are_not_kept() -> None:
    framer = LineFramer(limit=1000)
    tracemalloc.start()
    for _ in range(200):
        framer.feed(bytes(64 * 1024))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert framer.end() == LineTooLong(200 * 64 * 1024, bytes(EXCERPT))
    assert peak < 1024 * 1024


def test_a_cut_off_line_over_the_limit_is_reported_at_the_end() -> None:
    framer = LineFramer(limit=3)
    framer.feed(b"1234")
    assert framer.end() == LineTooLong(4, b"1234")


def test_the_default_limit_is_generous() -> None:
    assert DEFAULT_LIMIT == 64 * 1024 * 1024
    line = b"x" * (20 * 1024 * 1024)
    assert LineFramer().feed(line + b"\n") == [line]


def test_a_limit_below_one_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one byte"):
        LineFramer(limit=0)
