"""Which files and which values of the user's can be shown to Claude as images."""

from __future__ import annotations

import base64
import random
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import IPython.display
import PIL.Image
import pytest
from matplotlib.figure import Figure

from claude_kernel.errors import UsageError
from claude_kernel.images import MOST_IMAGE_BYTES, MOST_PIXELS, image_of, read_image
from claude_kernel.protocol.events import Image

PNG = b"\x89PNG\r\n\x1a\n rest"
JPEG = b"\xff\xd8\xff\xe0 rest"
GIF = b"GIF89a rest"
WEBP = b"RIFF0000WEBP rest"
Displayed: Any = IPython.display.Image  # it has no types


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {
        "figure.png": PNG,
        "UPPER.PNG": PNG,
        "photo.jpg": JPEG,
        "photo.jpeg": JPEG,
        "moving.gif": GIF,
        "new.webp": WEBP,
        "my figure.png": PNG,
        "sub/dir/deep.png": PNG,
        "notes.md": b"# notes",
        "false.png": b"<svg onload=alert(1)>",
        "sound.webp": b"RIFF0000WAVE rest",
        "folder.png/inside.txt": b"",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("figure.png", "png"),
        ("UPPER.PNG", "png"),
        ("photo.jpg", "jpeg"),
        ("photo.jpeg", "jpeg"),
        ("moving.gif", "gif"),
        ("new.webp", "webp"),
        ("my figure.png", "png"),
        ("./sub/dir/deep.png", "png"),
    ],
)
def test_an_image_is_known_by_its_name_and_its_content(folder: Path, name: str, kind: str) -> None:
    assert read_image(folder, name).media_type == f"image/{kind}"


def test_an_image_is_found_by_its_absolute_path_and_from_home(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setenv("HOME", str(folder))
    assert read_image(elsewhere, f"{folder}/figure.png") == read_image(elsewhere, "~/figure.png")


def test_an_image_is_attached_as_it_is(folder: Path) -> None:
    image = read_image(folder, "figure.png")
    assert base64.b64decode(image.data) == PNG


def test_a_file_that_is_no_image_is_named_with_what_would_be(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"notes\.md is not an image.*\.gif, \.jpeg, \.jpg, \.png, \.webp"):
        read_image(folder, "notes.md")


def test_an_image_that_is_too_large_is_refused(folder: Path) -> None:
    (folder / "large.png").write_bytes(PNG + b"\0" * MOST_IMAGE_BYTES)
    with pytest.raises(UsageError, match=r"large\.png has 5 MB; Claude takes up to 5"):
        read_image(folder, "large.png")


@pytest.mark.parametrize(("name", "kind"), [("false.png", "png"), ("sound.webp", "webp")])
def test_an_image_of_a_false_kind_is_refused(folder: Path, name: str, kind: str) -> None:
    with pytest.raises(UsageError, match=rf"{name} is not really a {kind} file"):
        read_image(folder, name)


@pytest.mark.parametrize(
    "name", ["missing.png", "folder.png", "sub/missing/x.gif", "nul\0.png", "~nobody-of-this-name/x.png"]
)
def test_an_image_that_cannot_be_read_says_why(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be read: "):
        read_image(folder, name)


def opened(image: Image) -> PIL.Image.Image:
    picture = PIL.Image.open(BytesIO(base64.b64decode(image.data)))
    assert picture.get_format_mimetype() == image.media_type
    picture.load()
    return picture


def figure(width: float = 4, height: float = 3) -> Figure:
    drawn = Figure(figsize=(width, height))
    drawn.subplots().plot([1, 2, 3])
    return drawn


class Shown:
    def __init__(self, png: Any) -> None:
        self.png = png

    def _repr_png_(self) -> Any:
        return self.png


def test_a_value_that_is_a_path_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    expected = read_image(folder, "figure.png")
    assert image_of("figure.png") == image_of(Path("figure.png")) == image_of(folder / "figure.png") == expected


@pytest.mark.parametrize("content_type", [bytes, bytearray, memoryview])
@pytest.mark.parametrize(("content", "kind"), [(PNG, "png"), (JPEG, "jpeg"), (GIF, "gif"), (WEBP, "webp")])
def test_bytes_are_known_by_how_they_begin(content: bytes, kind: str, content_type: Any) -> None:
    image = image_of(content_type(content))
    assert image == Image(f"image/{kind}", base64.b64encode(content).decode())


@pytest.mark.parametrize(
    ("mode", "seen"),
    [
        ("1", "1"),
        ("L", "L"),
        ("LA", "LA"),
        ("I;16", "I;16"),
        ("P", "RGB"),
        ("PA", "RGBA"),
        ("F", "RGB"),
        ("CMYK", "RGB"),
        ("YCbCr", "RGB"),
        ("HSV", "RGB"),
        ("RGB", "RGB"),
        ("RGBA", "RGBA"),
    ],
)
@pytest.mark.parametrize("side", [30, MOST_PIXELS + 1])
def test_a_picture_of_any_mode_is_seen_and_stays_as_it_is(mode: str, seen: str, side: int) -> None:
    picture = PIL.Image.new(mode, (side, 10))
    shown = opened(image_of(picture))
    assert (shown.format, shown.mode, shown.size) == ("PNG", seen, (min(side, MOST_PIXELS), 10))
    assert (picture.mode, picture.size) == (mode, (side, 10))


def test_the_colours_of_a_picture_and_what_shines_through_are_kept() -> None:
    picture = PIL.Image.new("P", (2, 1))
    picture.putpalette([10, 20, 30, 40, 50, 60])
    picture.putdata([0, 1])
    picture.info["transparency"] = 1
    shown = opened(image_of(picture))
    assert [shown.getpixel((x, 0)) for x in (0, 1)] == [(10, 20, 30, 255), (40, 50, 60, 0)]


@pytest.mark.parametrize(
    ("size", "seen"),
    [
        ((2000, 2000), (2000, 2000)),
        ((4000, 1000), (2000, 500)),
        ((1000, 3000), (667, 2000)),
        ((30_000, 1), (2000, 1)),
    ],
)
def test_a_large_picture_is_made_smaller(size: tuple[int, int], seen: tuple[int, int]) -> None:
    picture = PIL.Image.new("L", size)
    assert opened(image_of(picture)).size == seen
    assert picture.size == size


def test_a_photograph_too_large_for_png_becomes_a_jpeg() -> None:
    noise = random.Random(1).randbytes(1500 * 1500 * 3)
    image = image_of(PIL.Image.frombytes("RGB", (1500, 1500), noise))
    assert (opened(image).format, opened(image).size) == ("JPEG", (1500, 1500))
    assert len(base64.b64decode(image.data)) <= MOST_IMAGE_BYTES


def test_a_picture_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    whole = BytesIO()
    PIL.Image.new("RGB", (100, 100), "red").save(whole, "BMP")
    (tmp_path / "cut.bmp").write_bytes(whole.getvalue()[:1000])
    with (
        PIL.Image.open(tmp_path / "cut.bmp") as cut,
        pytest.raises(UsageError, match=r"PIL image cannot be read: .*trunc"),
    ):
        image_of(cut)
    with pytest.raises(UsageError, match="PIL image cannot be read: "):
        image_of(PIL.Image.new("RGB", (0, 0)))


def test_a_figure_and_its_axes_are_seen_whole() -> None:
    drawn = figure()
    shown = opened(image_of(drawn))
    assert 250 < shown.width < 500
    assert len(set(shown.convert("L").tobytes())) > 2
    assert image_of(drawn.axes[0]) == image_of(drawn)


def test_the_axes_of_a_subfigure_show_the_whole_figure() -> None:
    drawn = Figure(figsize=(4, 3))
    halves: Any = drawn.subfigures(1, 2)
    axes, _ = [half.subplots() for half in halves]
    assert image_of(axes) == image_of(drawn)


def test_a_figure_is_trimmed_and_left_as_it_was() -> None:
    drawn = Figure(figsize=(8, 8), dpi=100)
    drawn.text(0.5, 0.5, "small")
    before = (drawn.dpi, tuple(drawn.get_size_inches()), drawn.canvas)
    assert max(opened(image_of(drawn)).size) < 200
    assert (drawn.dpi, tuple(drawn.get_size_inches()), drawn.canvas) == before


def test_a_huge_figure_is_drawn_smaller() -> None:
    assert 1500 < max(opened(image_of(figure(100, 20))).size) <= MOST_PIXELS


@pytest.mark.parametrize("content", [PNG, JPEG, GIF])
def test_an_image_on_display_is_attached_as_it_is(content: bytes) -> None:
    assert image_of(Displayed(data=content)) == image_of(content)


@pytest.mark.parametrize(
    "png", [PNG, base64.b64encode(PNG).decode(), (PNG, {"width": 5}), base64.encodebytes(PNG).decode()]
)
def test_whatever_can_show_itself_as_png_is_attached(png: object) -> None:
    assert image_of(Shown(png)) == image_of(PNG)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (None, "This NoneType is not an image"),
        (5, "This int is not an image"),
        ([figure()], "This list is not an image"),
        (b"", "This bytes is not an image"),
        (b"<svg/>", "This bytes is not an image"),
        (b"RIFF0000WAVE", "This bytes is not an image"),
        (Shown, "This type is not an image"),
        (Shown(None), "Shown is not an image"),
        (Shown(b"text"), "Shown is not an image"),
        (Shown("ä"), "Shown is not an image"),
        (Shown("a"), "Shown is not an image"),
        (Shown(()), "Shown is not an image"),
        (Displayed(url="https://example.org/a.png"), "This IPython.core.display.Image is not an image"),
    ],
)
def test_what_is_no_image_is_named_with_what_is_possible(value: object, named: str) -> None:
    with pytest.raises(UsageError) as caught:
        image_of(value)
    assert named in str(caught.value)
    assert "it takes a path, the bytes of a PNG, JPEG, GIF or WEBP, a PIL image, a matplotlib figure" in str(
        caught.value
    )


def test_bytes_that_are_too_large_are_refused() -> None:
    with pytest.raises(UsageError, match=r"The image of this bytes has 5 MB; Claude takes up to 5"):
        image_of(PNG + b"\0" * MOST_IMAGE_BYTES)


def test_neither_pil_nor_matplotlib_nor_ipython_is_loaded_for_it() -> None:
    code = (
        "import sys; from claude_kernel.images import image_of; from claude_kernel.errors import UsageError\n"
        "try: image_of(5)\n"
        "except UsageError: print({'PIL', 'matplotlib', 'IPython', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
