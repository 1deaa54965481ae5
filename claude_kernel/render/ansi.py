"""What a program wrote to a terminal, as text and as HTML. It knows escape sequences, and no tool.

Colours become the few classes of the style sheet; backgrounds lend their colour to the text, since a background
chosen for a dark terminal is unreadable on a light page. Everything else a terminal can be told to do is dropped.
"""

from __future__ import annotations

import colorsys
import re
from dataclasses import dataclass, replace

from claude_kernel.render.visible import loose_html

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)(?P<arguments>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # titles, OSC 8 links: the text between them stays
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\n]*(?:\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
    r"|\x07"
)
_COLOURS = re.compile(r"(?:\x1b\[|\x9b)[0-9;:]*m")
_STACKED_RETURNS = re.compile(r"\r+\n")

# 0-7 of the palette; black and white are the page's own colours
_PALETTE = ("", "no", "ok", "q", "B", "M", "C", "")
_BRIGHT_BLACK = "d"


@dataclass(frozen=True)
class _Style:
    colour: str = ""
    ground: str = ""
    bold: bool = False
    dim: bool = False
    underlined: bool = False

    def wrap(self, html: str) -> str:
        name = self.colour or self.ground or ("d" if self.dim else "")
        if self.underlined:
            html = f"<u>{html}</u>"
        if self.bold:
            html = f"<b>{html}</b>"
        return f'<span class="{name}">{html}</span>' if name else html


_PLAIN = _Style()

# what a single SGR number does
_SWITCHES: dict[int, dict[str, str | bool]] = {
    1: {"bold": True},
    2: {"dim": True},
    4: {"underlined": True},
    22: {"bold": False, "dim": False},
    24: {"underlined": False},
    39: {"colour": ""},
    49: {"ground": ""},
    90: {"colour": _BRIGHT_BLACK},
    **{30 + n: {"colour": name} for n, name in enumerate(_PALETTE)},
    **{40 + n: {"ground": name} for n, name in enumerate(_PALETTE)},
    **{90 + n: {"colour": name} for n, name in enumerate(_PALETTE) if n},
    **{100 + n: {"ground": name} for n, name in enumerate(_PALETTE) if n},
}


def settle(text: str) -> str:
    """What is left on the screen: progress bars in their last state, overstruck characters gone."""
    text = _STACKED_RETURNS.sub("\n", text)
    if "\r" in text:
        text = "\n".join(_last_state(line) if "\r" in line else line for line in text.split("\n"))
    if "\b" in text:
        text = _overstrike(text)
    return text


def _last_state(line: str) -> str:
    states = line.split("\r")
    shown = next((n for n in range(len(states) - 1, -1, -1) if _ESCAPES.sub("", states[n]).strip()), len(states) - 1)
    return "".join(_COLOURS.findall("".join(states[:shown]))[-8:]) + states[shown]


def _overstrike(text: str) -> str:
    kept: list[str] = []
    for char in text:
        if char != "\b":
            kept.append(char)
        elif kept and kept[-1] != "\n":
            kept.pop()
    return "".join(kept)


def strip_ansi(text: str) -> str:
    if not any(mark in text for mark in "\x1b\x07\r\b\x90\x98\x9b\x9d\x9e\x9f"):
        return text
    return _ESCAPES.sub("", settle(text))


def render_ansi(text: str) -> str:
    """Escaped HTML with the colours of the text. Spans never cross a line break."""
    style, pieces, done = _PLAIN, [], 0
    for match in _ESCAPES.finditer(text):
        if match.start() > done:
            pieces.append(_styled(text[done : match.start()], style))
        done = match.end()
        if match["final"] == "m":
            style = _restyled(style, match["arguments"])
    pieces.append(_styled(text[done:], style))
    return "".join(pieces)


def _styled(text: str, style: _Style) -> str:
    html = loose_html(text)
    if style == _PLAIN:
        return html
    return "\n".join(style.wrap(line) if line.strip() else line for line in html.split("\n"))


def _restyled(style: _Style, arguments: str) -> _Style:
    # `?` and `>` begin private sequences that only look like colours
    numbers = [int(word) if word.isdecimal() else 0 for word in arguments.replace(":", ";").split(";")[:32]]
    while numbers:
        number = numbers.pop(0)
        if number == 0:
            style = _PLAIN
        elif number in (38, 48):
            name = _extended_colour(numbers)
            style = replace(style, colour=name) if number == 38 else replace(style, ground=name)
        elif number in _SWITCHES:
            style = replace(style, **_SWITCHES[number])  # type: ignore[arg-type]  # the table holds fields of _Style
    return style


def _extended_colour(numbers: list[int]) -> str:
    """Takes `5;n` or `2;r;g;b` off the front."""
    kind = numbers.pop(0) if numbers else 0
    if kind == 5 and numbers:
        index = min(numbers.pop(0), 255)
        if index < 16:
            return _BRIGHT_BLACK if index == 8 else _PALETTE[index % 8]
        if index >= 232:
            return _nearest(*[(index - 232) * 10 + 8] * 3)
        cube = index - 16
        return _nearest(cube // 36 * 51, cube // 6 % 6 * 51, cube % 6 * 51)
    if kind == 2 and len(numbers) >= 3:
        red, green, blue = (min(numbers.pop(0), 255) for _ in range(3))
        return _nearest(red, green, blue)
    return ""


def _nearest(red: int, green: int, blue: int) -> str:
    hue, saturation, value = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
    if saturation < 0.25:
        return _BRIGHT_BLACK if 0.25 < value < 0.7 else ""
    return ("no", "q", "ok", "C", "B", "M")[round(hue * 6 + 0.1) % 6]
