"""Which way a text is read, by its first letter that has a direction, as browsers do for `dir="auto"`. No markup.

A browser leaves out of that what has a `dir` of its own, and so finds nothing in a list of paragraphs; and it counts
code, which is read from left to right in every language.
"""

from __future__ import annotations

from collections.abc import Iterable
from unicodedata import bidirectional

_DIRECTIONS = {"L": "ltr", "R": "rtl", "AL": "rtl"}
_FARTHEST = 2_000


def direction_of(text: str) -> str:
    """`ltr` or `rtl`; empty where there is no letter."""
    found = (_DIRECTIONS.get(bidirectional(char)) for char in text[:_FARTHEST])
    return next((direction for direction in found if direction), "")


def first_direction(texts: Iterable[str]) -> str:
    return next((direction for text in texts if (direction := direction_of(text))), "")
