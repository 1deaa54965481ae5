"""Which files can be shown to Claude as images."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from claude_kernel.errors import UsageError
from claude_kernel.images import MOST_IMAGE_BYTES, read_image

PNG = b"\x89PNG\r\n\x1a\n rest"
JPEG = b"\xff\xd8\xff\xe0 rest"
GIF = b"GIF89a rest"
WEBP = b"RIFF0000WEBP rest"


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


def test_an_image_of_a_false_kind_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"false\.png is not really a png file"):
        read_image(folder, "false.png")


@pytest.mark.parametrize(
    "name", ["missing.png", "folder.png", "sub/missing/x.gif", "nul\0.png", "~nobody-of-this-name/x.png"]
)
def test_an_image_that_cannot_be_read_says_why(folder: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be read: "):
        read_image(folder, name)
