"""Images in tool results, as `data:` addresses made here from checked bytes. It knows image formats only.

They stay inside their call's card rather than becoming outputs of their own: the card is updated in place, a cell
shows 50 outputs at most, and the bytes saved are the same. What is too large is named and left out.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from claude_kernel.protocol.events import Image
from claude_kernel.render.bundle import Part

_MOST_BYTES = 600_000  # of one call, decoded: a figure or a screenshot, not an album

# SVG is not among them: it can hold script
_SIGNATURES = (
    ("image/png", b"\x89PNG\r\n\x1a\n", 0),
    ("image/jpeg", b"\xff\xd8\xff", 0),
    ("image/gif", b"GIF87a", 0),
    ("image/gif", b"GIF89a", 0),
    ("image/webp", b"WEBP", 8),
)


def compose_images(images: Sequence[Image]) -> Part:
    left = _MOST_BYTES
    html, text = [], []
    for image in images:
        content = _decoded(image.data)
        kind = next((k for k, mark, at in _SIGNATURES if content[at : at + len(mark)] == mark), "")
        if not kind:
            note = "[image that cannot be shown]"
        elif len(content) > left:
            note = f"[{kind.removeprefix('image/')} image of {len(content) // 1000:,} kB, too large for the notebook]"
        else:
            left -= len(content)
            note = f"[{kind.removeprefix('image/')} image, {max(1, len(content) // 1000):,} kB]"
            html.append(f'<img src="data:{kind};base64,{base64.b64encode(content).decode()}" alt="result">')
            text.append(note)
            continue
        html.append(f'<p class="d">{note}</p>')
        text.append(note)
    return Part(f'<div class="sub">{"".join(html)}</div>' if html else "", "\n".join(text))


def _decoded(encoded: str) -> bytes:
    try:
        return base64.b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        return b""
