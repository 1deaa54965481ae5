"""Terminal output, hidden characters and long texts: what is kept, named and left out."""

from __future__ import annotations

import pytest

from claude_kernel.render.ansi import render_ansi, settle, strip_ansi
from claude_kernel.render.cut import Room, cut_text
from claude_kernel.render.visible import exact_html, exact_text, loose_html, loose_text, one_line

COLOURED = [
    ("\x1b[31mred\x1b[0m plain", '<span class="no">red</span> plain'),
    ("\x1b[1mbold\x1b[22m plain", "<b>bold</b> plain"),
    ("\x1b[1;4;32mall\x1b[m", '<span class="ok"><b><u>all</u></b></span>'),
    ("\x1b[91mbright", '<span class="no">bright</span>'),
    ("\x1b[90mgrey", '<span class="d">grey</span>'),
    ("\x1b[30;42m PASS \x1b[0m", '<span class="ok"> PASS </span>'),
    ("\x1b[38;5;196mx\x1b[38;5;21my", '<span class="no">x</span><span class="B">y</span>'),
    ("\x1b[38;2;0;200;0mx", '<span class="ok">x</span>'),
    ("\x1b[38:5:1mx", '<span class="no">x</span>'),
    ("\x1b[38;5mx", "x"),
    ("\x1b[33ma\nb", '<span class="q">a</span>\n<span class="q">b</span>'),
    ("<\x1b[35m&", '&lt;<span class="M">&amp;</span>'),
    ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x1b]0;title\x07a\x1b[2J\x1b[?25lb\x1b(Bc\x1b", "abc"),
]


@pytest.mark.parametrize(("text", "html"), COLOURED)
def test_colours_become_classes_and_the_rest_goes(text: str, html: str) -> None:
    assert render_ansi(text) == html


SETTLED = [
    ("10%\r50%\r100%\ndone", "100%\ndone"),
    ("a\r\nb\r\r\nc", "a\nb\nc"),
    ("50%\r\x1b[K", "50%"),
    ("\x1b[31m50%\r100%", "\x1b[31m100%"),
    ("N\bNA\bA", "NA"),
    ("\b\bx", "x"),
]


@pytest.mark.parametrize(("text", "left"), SETTLED)
def test_what_is_left_on_the_screen_is_shown(text: str, left: str) -> None:
    assert settle(text) == left


def test_stripping_leaves_words_only() -> None:
    assert strip_ansi("\x1b[1mA\x1b[0m\x1b]0;t\x07 1%\r\x1b[32m2%\x1b[0m") == "2%"


EXACT = [
    ("a\u202eb", "a‹U+202E›b"),
    ("a\u200bb\u00adc\ufeff", "a‹U+200B›b‹U+00AD›c‹U+FEFF›"),
    ("a\u00a0b\u3000c", "a‹U+00A0›b‹U+3000›c"),
    ("\U000e0041", "‹U+E0041›"),
    ("\x1b[0m", "‹U+001B›[0m"),
    ("a\ud800b", "a\ufffdb"),
    ("a\tb\nc", "a\tb\nc"),
    ("ünïcödé 漢字", "ünïcödé 漢字"),
]


@pytest.mark.parametrize(("text", "shown"), EXACT)
def test_hidden_characters_are_named(text: str, shown: str) -> None:
    assert exact_text(text) == shown
    exact_html(text).encode()


def test_the_name_of_a_character_stands_out_and_the_rest_is_escaped() -> None:
    assert exact_html('"\u202e<') == '&quot;<span class="u">‹U+202E›</span>&lt;'


def test_output_keeps_the_spaces_of_its_script() -> None:
    assert loose_text("a\u3000b\u200d\u2066c") == "a\u3000b\u200d‹U+2066›c"
    assert loose_html("a\u3000<") == "a\u3000&lt;"


def test_a_second_line_is_seen_in_one_line() -> None:
    assert one_line("ls\n\n  rm -rf /  ") == "ls ↵ rm -rf /"
    assert one_line("x" * 500, 10) == "x" * 9 + "…"


CUTS = [
    ("a\nb\nc", Room(5, 100), "a\nb\nc"),
    ("\n".join("abcdefghij"), Room(6, 100), "a\nb\nc\nd\n… 4 lines left out …\ni\nj"),
    ("x" * 100, Room(5, 30), "x" * 20 + "\n… 70 characters left out …\n" + "x" * 10),
]


@pytest.mark.parametrize(("text", "room", "shown"), CUTS)
def test_head_and_tail_of_a_long_text_are_kept(text: str, room: Room, shown: str) -> None:
    assert cut_text(text, room).joined() == shown


def test_the_place_of_the_whole_is_told() -> None:
    assert "9,996 lines left out; all of it is in /tmp/x" in cut_text("a\n" * 9_999 + "b", Room(4, 100)).joined(
        "/tmp/x"
    )
