"""Text made fit to be shown: escaped, encodable, with nothing hidden in it. It knows no markup but its own span.

Two strictnesses. *Exact* is for what a person decides by (commands, paths, tool names): every character that is
invisible, that reorders its neighbours or that only looks like a space is named. *Loose* is for prose and output,
where joiners, direction marks and wide spaces belong to ordinary Arabic, Persian or Japanese text.
"""

from __future__ import annotations

import re
from html import escape

_SURROGATES = re.compile("[\ud800-\udfff]")

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_REORDERING = "\u202a-\u202e\u2066-\u2069"
_HIDDEN = "\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
# Blank or joining in some script, and so harmless in prose; in a command they forge a second spelling of a name.
_SCRIPT_BLANKS = (
    "\u00a0\u00ad\u034f\u061c\u070f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200a\u200c-\u200f\u202f"
    "\u205f\u3000\u3164\ufe00-\ufe0f\uffa0\U0001bca0-\U0001bca3"
)
_LOOSE = re.compile(f"[{_CONTROLS}{_REORDERING}{_HIDDEN}]")
_EXACT = re.compile(f"[{_CONTROLS}{_REORDERING}{_HIDDEN}{_SCRIPT_BLANKS}]")

_LINE_BREAKS = re.compile(r"\s*[\r\n\v\f\x85\u2028\u2029]+\s*")


def well_formed(text: str) -> str:
    """Lone surrogates (broken UTF-8 that came through JSON) would raise when the message is encoded."""
    return _SURROGATES.sub("\ufffd", text)


def _name(match: re.Match[str]) -> str:
    return f"‹U+{ord(match[0]):04X}›"


def _name_in_span(match: re.Match[str]) -> str:
    return f'<span class="u">‹U+{ord(match[0]):04X}›</span>'


def exact_text(text: str) -> str:
    return _EXACT.sub(_name, well_formed(text))


def exact_html(text: str) -> str:
    return _EXACT.sub(_name_in_span, escape(well_formed(text)))


def loose_text(text: str) -> str:
    return _LOOSE.sub(_name, well_formed(text).replace("\r\n", "\n"))


def loose_html(text: str) -> str:
    return _LOOSE.sub(_name_in_span, escape(well_formed(text).replace("\r\n", "\n")))


def one_line(text: str, limit: int = 160) -> str:
    """Line breaks stay to be seen, so that a second command cannot hide behind the first."""
    text = _LINE_BREAKS.sub(" ↵ ", text[: 4 * limit].strip())
    return text if len(text) <= limit else text[: limit - 1] + "…"
