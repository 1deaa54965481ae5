"""A text cut into segments renders as the whole does, however it arrives."""

from __future__ import annotations

import pytest

from claude_kernel.render.markdown import render_markdown
from claude_kernel.render.split import MarkdownSplitter

DOCUMENTS = {
    "paragraphs": "one\n\ntwo\n\nthree\n\nfour\n",
    "fence with blank lines": "a\n\n```python\nx = 1\n\n\ny = 2\n```\n\nb\n",
    "longer fence around a shorter": "a\n\n````\n```\n\nx\n```\n\n````\n\nb\n",
    "tilde fence": "~~~\n\n```\n\n~~~\n\nb\n\nc\n",
    "loose list": "a\n\n- one\n\n- two\n\n  more\n\n- three\n\nb\n\nc\n",
    "numbered list": "1. one\n\n2. two\n\n   ```\n   x\n\n   y\n   ```\n\n3. three\n\nb\n",
    "fence on the item's own line": "- ```\n  x\n\n  y\n  ```\n\nb\n\nc\n",
    "fence that ends with its item": "- ```\n  x\n\nb\n\nc\n\nd\n",
    "list after list of another kind": "- a\n\n1. b\n\nc\n",
    "table": "a\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nb\n",
    "quotes": "> a\n>\n> b\n\n> c\n\nd\n",
    "fence in a quote": "> ```\n> x\n\nb\n\nc\n",
    "indented code": "a\n\n    x\n\n    y\n\nb\n",
    "formula": "a\n\n$$\nx\n+ y\n$$\n\nb\n",
    "headings and rules": "# a\n\n---\n\nb\n=\n\nc\n",
    "backticks that are no fence": "``` `x` ```\n\nb\n\nc\n",
    "definitions first": "[1]: http://a.b\n\nsee [x][1]\n\nand [y][1]\n",
}


def segments_of(text: str, size: int, minimum: int = 1) -> tuple[list[str], str]:
    splitter = MarkdownSplitter(minimum)
    # only hard cuts may tear blocks apart, and none of these documents is that long
    splitter.hard_factor = 10_000
    html = ""
    segments = []
    for start in range(0, len(text), size):
        before = splitter.definitions
        for segment in splitter.feed(text[start : start + size]):
            segments.append(segment)
            html += render_markdown(segment, definitions=before)
            before = splitter.definitions
    last_definitions = splitter.definitions
    segments.append(splitter.finish())
    return segments, html + render_markdown(segments[-1], definitions=last_definitions)


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_segments_render_as_the_whole(name: str, size: int) -> None:
    segments, html = segments_of(DOCUMENTS[name], size)
    assert "".join(segments) == DOCUMENTS[name]
    assert html == render_markdown(DOCUMENTS[name])


@pytest.mark.parametrize(
    "name", ["paragraphs", "fence with blank lines", "loose list", "table", "fence that ends with its item"]
)
def test_ordinary_documents_are_cut_at_all(name: str) -> None:
    assert len(segments_of(DOCUMENTS[name], 5)[0]) > 1


def test_nothing_is_cut_below_the_minimum() -> None:
    assert MarkdownSplitter(1_000).feed("one\n\ntwo\n\n" * 20) == []


def test_the_tail_is_what_was_not_given_out() -> None:
    splitter = MarkdownSplitter(4)
    given = splitter.feed("first\n\nsecond\n\nthi")
    assert "".join(given) + splitter.tail == "first\n\nsecond\n\nthi"
    assert given == ["first\n\n"]


def test_an_endless_code_block_goes_on_as_a_second_one() -> None:
    splitter = MarkdownSplitter(100)
    given = splitter.feed("```python\n" + "x = 1\n" * 500)
    assert len(given) > 2
    assert all(segment.startswith("```python\n") and segment.endswith("\n```\n") for segment in given)
    assert sum(segment.count("x = 1") for segment in given) + splitter.tail.count("x = 1") == 500


def test_a_list_that_never_ends_is_cut_all_the_same() -> None:
    splitter = MarkdownSplitter(100)
    assert splitter.feed("".join(f"{n}. item\n\n" for n in range(500)))
    assert len(splitter.tail) < 1_000


def test_raising_the_minimum_does_not_tear_blocks_apart() -> None:
    splitter = MarkdownSplitter(10)
    splitter.minimum = 1_000
    text = "- one\n\n- two\n\n" * 100 + "\nend\n\nlast\n\n"
    given = splitter.feed(text)
    assert given == ["- one\n\n- two\n\n" * 100 + "\n"]
