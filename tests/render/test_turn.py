"""Prose, thinking, the live line, the footer, trouble and notices; and the style sheet they share."""

from __future__ import annotations

import re
from html import unescape

import pytest

from claude_kernel.protocol.events import ConversationCompacted, RateLimited, Usage
from claude_kernel.render import (
    Bundle,
    join_bundles,
    render_compacted,
    render_footer,
    render_interrupted,
    render_live_line,
    render_notice,
    render_printed,
    render_rate_limit,
    render_record,
    render_text,
    render_thinking,
    render_trouble,
    style_tag,
)
from claude_kernel.render.figures import dollars_text, seconds_text, tokens_text
from claude_kernel.render.sanitize import CLASSES

USAGE = Usage(input_tokens=400, cache_read_tokens=12_000, output_tokens=1_800, cost_usd=0.084, session_cost_usd=0.41)

PLAIN = [
    (render_text("**a** `b`"), "**a** `b`"),
    (render_thinking("first\nlast", 4), "Thought first · 4.0 s"),
    (render_thinking("first\nlast", 0.01), "Thought first"),
    (render_thinking("first\nlast", streaming=True), "Thinking last"),
    (render_thinking(""), "Thought"),
    (render_live_line("Reading a.py", 12.4, 1234), "Reading a.py · 12 s · 1.2k tokens"),
    (
        render_footer(USAGE, seconds=38, model="claude-opus-5-5", context_fraction=0.09),
        "38 s · opus-5-5 · 12.4k in, 1.8k out · $0.084 · notebook $0.41 · context 9%",
    ),
    (render_footer(Usage()), ""),
    (render_trouble("No CLI.", "Run `x`.", "exit 1"), "No CLI.\nRun `x`.\n    exit 1"),
    (render_notice("a\nb"), "a ↵ b"),
    (render_record("Allowed", "for this session:", "pytest *"), "✓ Allowed for this session: pytest *"),
    (render_record("Denied", good=False), "✗ Denied"),
    (
        render_compacted(ConversationCompacted(tokens_before=180_000, tokens_after=12_000)),
        "The conversation was summarised to make room (180k → 12.0k tokens).",
    ),
    (render_rate_limit(RateLimited(status="rejected", kind="five_hour")), "Usage limit reached (five hour)."),
    (render_printed("# Context\n\nused"), "# Context\n\nused"),
]


@pytest.mark.parametrize(("bundle", "text"), PLAIN, ids=[text[:30] for _, text in PLAIN])
def test_the_plain_text_reads_alone(bundle: Bundle, text: str) -> None:
    assert bundle.text == text


def test_thinking_is_folded() -> None:
    assert "<details><summary><b>Thought</b>" in render_thinking("x").html


def test_an_interrupt_says_that_nothing_is_lost() -> None:
    assert "stays" in render_interrupted().text


def test_a_reset_time_is_told() -> None:
    assert "It resets on " in render_rate_limit(RateLimited(resets_at=1_800_000_000.0)).text


def test_code_is_one_piece_of_html_in_markdown_too() -> None:
    """HTML in Markdown ends at a blank line; `nbconvert --to markdown` writes this as it is."""
    made = render_text("```python\na = 1\n\n\n  \nb = 2\n```").html
    assert not re.search(r"\n[ \t]*\n", made)
    (shown,) = re.findall(r"<code>(.*)</code>", re.sub("<[/]?span[^>]*>", "", made), re.DOTALL)
    assert unescape(shown) == "a = 1\n\n\n  \nb = 2"


def test_several_bundles_fit_in_one_output() -> None:
    joined = join_bundles([render_notice("a"), render_notice("b")])
    assert joined.text == "a\n\nb"
    assert joined.html.count('<div class="ck') == 2


def test_nothing_in_the_frame_is_typeset_but_what_is_marked() -> None:
    assert render_text("a").html.startswith('<div class="ck mathjax_ignore tex2jax_ignore">')


FIGURES = [
    (seconds_text(0.04), "0.0 s"),
    (seconds_text(9.96), "10 s"),
    (seconds_text(59.7), "1 min 00 s"),
    (seconds_text(3_700), "1 h 01 min"),
    (tokens_text(999), "999"),
    (tokens_text(99_960), "100k"),
    (tokens_text(1_250_000), "1.2M"),
    (dollars_text(1234.5), "$1,234.50"),
    (dollars_text(0.0001), "under $0.001"),
    (dollars_text(0), "$0"),
]


@pytest.mark.parametrize(("made", "meant"), FIGURES)
def test_figures_are_written_as_people_write_them(made: str, meant: str) -> None:
    assert made == meant


def test_the_style_sheet_costs_a_turn_two_kilobytes_at_most() -> None:
    assert len(style_tag().encode()) <= 2_048


def test_the_style_sheet_fetches_and_covers_nothing() -> None:
    assert not re.search(r"url\(|@import|position|expression", style_tag())
    assert re.findall("<[^>]*>", style_tag()) == ["<style>", "</style>"]


def test_the_style_sheet_names_only_classes_that_exist() -> None:
    named = set(re.findall(r"\.([A-Za-z][\w-]*)", re.sub(r"[\d.]+(?:em|px)", "", style_tag())))
    assert named <= CLASSES


def test_the_style_sheet_leads_the_first_output_only() -> None:
    bundle = render_notice("a").led_by(style_tag())
    assert bundle.to_mime()["text/html"].startswith("<style>")
    assert bundle.text == "a"
