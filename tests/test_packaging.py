"""The wheel and the source archive hold what they must, and installing registers the kernel."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
from jupyter_client.kernelspec import KernelSpecManager

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def test_the_wheel_carries_the_kernelspec_where_jupyter_looks_for_it(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    spec = [name for name in names if name.endswith("share/jupyter/kernels/claude/kernel.json")]
    assert len(spec) == 1
    assert any(name.endswith("share/jupyter/kernels/claude/logo-svg.svg") for name in names)
    assert "claude_kernel/py.typed" in names
    assert "claude_kernel/render/sheet.py" in names
    assert not any(name.startswith("tests/") for name in names)


def test_the_source_archive_builds_the_same(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = opened.getnames()
    for wanted in ("pyproject.toml", "README.md", "LICENSE", "kernelspec/kernel.json", "tests/conftest.py"):
        assert any(name.endswith(wanted) for name in names), wanted


def test_installing_has_registered_the_kernel() -> None:
    spec = KernelSpecManager().get_kernel_spec("claude")
    assert spec.display_name == "Claude"
    assert spec.language == "markdown"
    assert spec.interrupt_mode == "message"
    assert spec.argv[1:3] == ["-m", "claude_kernel"]


def test_the_logo_is_plain_svg() -> None:
    logo = ElementTree.parse(ROOT / "kernelspec" / "logo-svg.svg").getroot()
    tags = {element.tag.rpartition("}")[2] for element in logo.iter()}
    assert tags <= {"svg", "rect", "path", "g"}
    json.loads((ROOT / "kernelspec" / "kernel.json").read_text())
