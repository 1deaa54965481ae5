"""Images for a prompt, read from files. (`@figure.png` in a prompt needs nothing here: the CLI attaches it itself.)"""

from __future__ import annotations

import base64
from pathlib import Path

from claude_kernel.errors import UsageError
from claude_kernel.protocol.events import Image

IMAGE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
MOST_IMAGE_BYTES = 5 * 1024 * 1024
"""What the Messages API takes of one image."""

_SIGNATURES = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}


def read_image(folder: Path, name: str) -> Image:
    """`name` is relative to the folder, absolute, or from home. Raises `UsageError`, which says what would do."""
    media_type = IMAGE_TYPES.get(Path(name).suffix.lower())
    if media_type is None:
        raise UsageError(f"{name} is not an image that Claude can see; it takes {', '.join(sorted(IMAGE_TYPES))}.")
    try:
        content = (folder / Path(name).expanduser()).read_bytes()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: ~ of nobody; ValueError: a NUL in the name
        raise UsageError(f"The image {name} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if len(content) > MOST_IMAGE_BYTES:
        raise UsageError(f"The image {name} has {len(content) >> 20} MB; Claude takes up to 5. Make it smaller.")
    if not content.startswith(_SIGNATURES[media_type]):
        raise UsageError(f"{name} is not really a {media_type.removeprefix('image/')} file.")
    return Image(media_type, base64.b64encode(content).decode())
