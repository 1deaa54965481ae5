"""Differences from the CLI's patch and from two texts."""

from __future__ import annotations

import time
from typing import Any

import pytest

from claude_kernel.render.cut import Room
from claude_kernel.render.diff import Diff, compare_texts, compose_diff, find_patch_diff

PATCH: list[dict[str, Any]] = [
    {"oldStart": 9, "oldLines": 2, "newStart": 9, "newLines": 2, "lines": [" a", "-b", "+c", "\\ No newline"]}
]


def plain(diff: Diff) -> str:
    return compose_diff(diff, "", Room()).text


def test_a_patch_is_shown_with_its_line_numbers() -> None:
    diff = find_patch_diff(PATCH)
    assert diff is not None
    assert (diff.added, diff.removed) == (1, 1)
    assert plain(diff) == " 9   a\n10 − b\n10 + c"


def test_rows_stand_on_lines_of_their_own_also_without_a_style_sheet() -> None:
    diff = find_patch_diff(PATCH)
    assert diff is not None
    html = compose_diff(diff, "python", Room()).html
    assert '<span class="del"><span class="n">10 − </span>b\n</span><span class="add">' in html


@pytest.mark.parametrize("patch", [None, [], "x", [1], [{}], [{"lines": 3}], {"lines": []}])
def test_what_is_no_patch_is_not_taken_for_one(patch: Any) -> None:
    assert find_patch_diff(patch) is None


def test_two_texts_are_compared() -> None:
    assert plain(compare_texts("a\nb\nc", "a\nx\nc", numbered=True)) == "1   a\n2 − b\n2 + x\n3   c"


def test_equal_texts_have_no_difference() -> None:
    assert compare_texts("a\nb", "a\nb") == Diff(numbered=False)


def test_a_hundred_thousand_changed_lines_are_compared_in_no_time() -> None:
    old, new = ("\n".join(f"{word} {n}" for n in range(100_000)) for word in ("old", "new"))
    began = time.perf_counter()
    diff = compare_texts(old, new)
    part = compose_diff(diff, "python", Room())
    assert time.perf_counter() - began < 2
    assert (diff.added, diff.removed) == (100_000, 100_000)
    assert "changed lines left out" in part.text


def test_one_changed_line_in_a_long_file_is_found_with_its_surroundings() -> None:
    lines = [f"line {n}" for n in range(9_000)]
    diff = compare_texts("\n".join(lines), "\n".join([*lines[:5000], "new", *lines[5001:]]), numbered=True)
    assert (diff.added, diff.removed) == (1, 1)
    assert plain(diff).startswith("4998   line 4997")
