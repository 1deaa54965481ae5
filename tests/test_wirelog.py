"""The last lines of the wire trace."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from claude_kernel.wirelog import MOST_LINES, keep_recent_lines, recent_lines

log = logging.getLogger("claude_kernel.wire")


@pytest.fixture(autouse=True)
def _kept() -> Iterator[None]:
    """The package's logger is everybody's: it is left as it was found."""
    package = logging.getLogger("claude_kernel")
    before = (list(package.handlers), package.level, package.propagate)
    keep_recent_lines()
    yield
    package.handlers, package.level, package.propagate = before[0], before[1], before[2]


def test_lines_are_kept_with_the_time_of_day() -> None:
    log.debug("> %s", b'{"type":"user"}')
    assert recent_lines()[-1].split(" ", 1)[1] == '> b\'{"type":"user"}\''
    assert recent_lines()[-1][2] == ":"


def test_only_the_last_lines_are_kept() -> None:
    for number in range(MOST_LINES + 50):
        log.debug("line %s", number)
    lines = recent_lines()
    assert len(lines) == MOST_LINES
    assert lines[-1].endswith(f"line {MOST_LINES + 49}")
    assert lines[0].endswith("line 50")


def test_keeping_twice_keeps_each_line_once() -> None:
    keep_recent_lines()
    log.debug("only once")
    assert sum(line.endswith("only once") for line in recent_lines()) == 1


def test_long_lines_are_cut() -> None:
    log.debug("x" * 10_000)
    assert len(recent_lines()[-1]) == 500


@pytest.mark.parametrize(
    ("said", "secret"),
    [
        ("key sk-ant-api03-abc_DEF-123 end", "abc_DEF"),
        ("Authorization: Bearer abcdefgh.ijkl-mnop end", "ijkl"),
        ("authorization: bearer abcdefgh12345 end", "12345"),
        ('{"apiKey":"sk-ant-x"} end', "sk-ant"),
    ],
)
def test_secrets_are_replaced(said: str, secret: str) -> None:
    log.debug("> %s", said)
    line = recent_lines()[-1]
    assert secret not in line
    assert "[secret]" in line
    assert line.endswith("end")


def test_the_list_is_a_copy() -> None:
    recent_lines().append("mine")
    assert "mine" not in recent_lines()
