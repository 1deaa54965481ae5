"""The wheel and the source archive hold what they must, and installing registers the kernel."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from jupyter_client.kernelspec import KernelSpecManager

from claude_kernel import __version__

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
    assert any(name.endswith("share/jupyter/kernels/claude-demo/kernel.json") for name in names)
    assert not any(name.startswith(("tests/", "notebooks/", "scripts/")) for name in names)


def test_the_source_archive_builds_the_same(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = opened.getnames()
    for wanted in (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "kernelspec/kernel.json",
        "tests/conftest.py",
        "scripts/lab",
        "notebooks/quickstart.ipynb",
    ):
        assert any(name.endswith(wanted) for name in names), wanted


class Installed(NamedTuple):
    python: Path
    before: set[str]
    """What was in the environment before."""

    @property
    def folder(self) -> Path:
        return self.python.parent.parent

    def pip(self, *words: str) -> None:
        done = subprocess.run(
            [self.python, "-m", "pip", "--disable-pip-version-check", *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def files(self) -> set[str]:
        found = {path.relative_to(self.folder) for path in self.folder.rglob("*") if not path.is_dir()}
        return {str(path) for path in found if "__pycache__" not in path.parts}


@pytest.fixture(scope="module", params=["*.whl", "*.tar.gz"], ids=["wheel", "sdist"])
def installed(request: pytest.FixtureRequest, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment with our package from the archive; what it needs is borrowed from the environment of the tests."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
    python = folder / "bin" / "python"
    (site,) = folder.glob("lib/python*/site-packages")
    # By its path and not as a site: else our editable install would be found by its own .pth file.
    (site / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    made = Installed(python, set())
    made = Installed(python, made.files())
    (archive,) = built.glob(request.param)
    # The borrowed one has the same name and version; --ignore-installed leaves it alone.
    made.pip("install", "--no-deps", "--no-build-isolation", "--no-index", "--ignore-installed", str(archive))
    return made


SAY_HELLO = """
import sys
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import start_new_kernel

for name in ("claude", "claude-demo"):
    spec = KernelSpecManager().get_kernel_spec(name)
    assert spec.resource_dir.startswith(sys.prefix), spec.resource_dir
manager, client = start_new_kernel(kernel_name="claude-demo")
try:
    said = []
    hear = lambda message: said.append(message["content"].get("text", ""))
    reply = client.execute_interactive("Hello!", output_hook=hear, timeout=60)
    assert reply["content"]["status"] == "ok", reply
    print("".join(said))
    client.execute_interactive("%%python\\nimport claude_kernel; print(claude_kernel.__file__)", timeout=60)
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""


def test_an_installed_archive_brings_both_kernels_and_its_command(installed: Installed, tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "CLAUDE_KERNEL_DEMO_PACE": "0"}

    def run(*words: str | Path) -> str:
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert __version__ in run(installed.folder / "bin" / "claude-kernel", "version")
    said = run(installed.python, "-c", SAY_HELLO)
    assert "I am the offline demo" in said
    assert f"{installed.folder}/lib" in said, "the installed package answered, not the working tree"


def test_uninstalling_leaves_nothing(installed: Installed) -> None:
    assert installed.files() > installed.before
    installed.pip("uninstall", "--yes", "claude-kernel")
    assert installed.files() == installed.before
    assert not [*installed.folder.glob("**/kernels/claude*")], "no folder of a kernel either"


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
