"""Images for a prompt: files, bytes, pictures and figures of the user's. PIL and matplotlib are never imported here.

(`@figure.png` in a prompt needs nothing here: the CLI attaches it itself.)
"""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

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

MOST_PIXELS = 2_000
"""Of the longer side: the model sees no more."""

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
    if _find_media_type(content) != media_type:
        raise UsageError(f"{name} is not really a {media_type.removeprefix('image/')} file.")
    return Image(media_type, base64.b64encode(content).decode())


def image_of(value: object) -> Image:
    """A path is relative to the working directory. Raises `UsageError`, which says what would do."""
    if isinstance(value, (str, Path)):
        return read_image(Path(), str(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _encoded(bytes(value), value)
    for module, name, content_of in _KINDS:
        kind = getattr(sys.modules.get(module), name, None)  # what was never imported, the value cannot be
        if kind is not None and isinstance(value, kind):
            return _encoded(content_of(value), value)
    if not isinstance(value, type) and callable(getattr(value, "_repr_png_", None)):
        return _encoded(_content_of_png(value), value)
    raise _no_image(value)


def _find_media_type(content: bytes) -> str | None:
    for media_type, signature in _SIGNATURES.items():
        if content.startswith(signature) and (signature != b"RIFF" or content[8:12] == b"WEBP"):
            return media_type
    return None


def _encoded(content: bytes | None, value: object) -> Image:
    media_type = _find_media_type(content) if content else None
    if content is None or media_type is None:
        raise _no_image(value)
    if len(content) > MOST_IMAGE_BYTES:
        raise UsageError(
            f"The image of this {_kind(value)} has {len(content) >> 20} MB; Claude takes up to 5. Make it smaller."
        )
    return Image(media_type, base64.b64encode(content).decode())


def _content_of_picture(picture: Any) -> bytes:
    try:
        if picture.mode not in ("1", "L", "LA", "I", "I;16", "RGB", "RGBA"):  # the others, PNG does not know
            picture = picture.convert("RGBA" if "transparency" in picture.info or "A" in picture.mode[1:] else "RGB")
        scale = MOST_PIXELS / max(*picture.size, 1)
        if scale < 1:
            picture = picture.resize(tuple(max(1, round(side * scale)) for side in picture.size), reducing_gap=3.0)
        content = _saved(picture.save, format="PNG")
        if len(content) > MOST_IMAGE_BYTES:  # a photograph
            content = _saved(picture.convert("RGB").save, format="JPEG", quality=90)
    except (OSError, ValueError, SystemError) as error:  # cut short, closed, without any pixel
        raise UsageError(f"The PIL image cannot be read: {error}.") from error
    return content


def _content_of_figure(figure: Any) -> bytes:
    dpi = min(figure.dpi, MOST_PIXELS / max(figure.get_size_inches()))
    return _saved(figure.savefig, format="png", bbox_inches="tight", dpi=dpi)


def _content_of_axes(axes: Any) -> bytes:
    return _content_of_figure(axes.figure.figure)  # the figure of a subfigure is the whole one, as is a figure's own


def _content_of_display(shown: Any) -> bytes | None:
    return shown.data if isinstance(shown.data, bytes) else None  # there is none where it only links to a URL


def _content_of_png(value: Any) -> bytes | None:
    """IPython takes bytes or base64, alone or with metadata, and None for "not this one"."""
    found = value._repr_png_()
    content = found[0] if isinstance(found, tuple) and found else found
    if isinstance(content, str):
        try:
            return base64.b64decode(content)
        except (binascii.Error, ValueError):  # ValueError: not ASCII
            return None
    return content if isinstance(content, bytes) else None


def _saved(save: Callable[..., object], **options: Any) -> bytes:
    file = BytesIO()
    save(file, **options)
    return file.getvalue()


_KINDS: tuple[tuple[str, str, Callable[[Any], bytes | None]], ...] = (
    ("PIL.Image", "Image", _content_of_picture),
    ("matplotlib.figure", "Figure", _content_of_figure),
    ("matplotlib.axes", "Axes", _content_of_axes),
    ("IPython.core.display", "Image", _content_of_display),
)


def _no_image(value: object) -> UsageError:
    return UsageError(
        f"This {_kind(value)} is not an image that Claude can see; it takes a path, the bytes of a PNG, JPEG, GIF or "
        "WEBP, a PIL image, a matplotlib figure or its axes, an IPython Image, or anything with _repr_png_."
    )


def _kind(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
