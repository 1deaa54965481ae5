"""What is published: HTML and the plain text beside it. No other mime type ever carries text of the CLI."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from claude_kernel.render.sanitize import sanitize
from claude_kernel.render.visible import well_formed

# MathJax 3 (JupyterLab) and 2 (nbconvert) leave everything in the frame alone but what is marked for them, so that
# "$5 and $6" in a row, a file name or an answer is never taken for a formula.
_FRAME = '<div class="ck mathjax_ignore tex2jax_ignore">'


# In Markdown, as `nbconvert --to markdown` writes it, HTML ends at a blank line, in the middle of code too.
_BLANK_LINE = re.compile(r"(?<=\n)([ \t]*)\n")


@dataclass(frozen=True)
class Part:
    """A piece on its way into a bundle: escaped, not yet framed."""

    html: str
    text: str


@dataclass(frozen=True)
class Bundle:
    """Safe to publish. Made by `publish` only."""

    html: str
    text: str

    def to_mime(self) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.text}

    def led_by(self, style: str) -> Bundle:
        """With the style sheet before it: once in a turn, in its first output."""
        return Bundle(style + self.html, self.text)

    @property
    def size(self) -> int:
        """Bytes in the notebook."""
        return len(self.html.encode()) + len(self.text.encode())


def publish(part: Part) -> Bundle:
    html = _BLANK_LINE.sub(r"\1&#10;", sanitize(well_formed(part.html)))
    return Bundle(f"{_FRAME}{html}</div>", well_formed(part.text).rstrip())


def join_parts(parts: Iterable[Part], gap: str = "\n") -> Part:
    kept = list(parts)
    return Part("".join(part.html for part in kept), gap.join(part.text for part in kept if part.text))
