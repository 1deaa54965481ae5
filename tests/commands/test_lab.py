"""JupyterLab is started with what was chosen; its own part is played by a small package of that name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands.keyboard import Program, Typed

from claude_kernel.commands.lab import root_advice, why_not_claude

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
RUN = "import sys; from claude_kernel.commands import main; sys.exit(main())"
STAND_IN = """
import json, os, sys
print("LAB", json.dumps({"argv": sys.argv[1:], "cli": os.environ.get("CLAUDE_KERNEL_CLI"), "cwd": os.getcwd()}))
sys.exit(7)
"""


class Started(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lab(self) -> dict[str, Any]:
        seen: dict[str, Any] = json.loads(self.out.partition("LAB ")[2])
        return seen


@pytest.fixture
def packages(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a JupyterLab that only tells how it was started, and with both kernels."""
    packages = home / "packages"
    (packages / "jupyterlab").mkdir(parents=True)
    (packages / "jupyterlab" / "__init__.py").write_text("")
    (packages / "jupyterlab" / "__main__.py").write_text(STAND_IN)
    for name in ("claude", "claude-demo"):
        place = home / "jupyter" / "kernels" / name
        place.mkdir(parents=True)
        (place / "kernel.json").write_text(json.dumps({"argv": ["x"], "display_name": name, "language": "x"}))
    monkeypatch.setenv("JUPYTER_PATH", str(home / "jupyter"))
    return packages


def lab(packages: Path, folder: Path, *words: str, **environ: str) -> Started:
    done = subprocess.run(
        [sys.executable, "-c", RUN, "lab", *words],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{packages}:{ROOT}", **environ},
        check=False,
    )
    return Started(done.returncode, done.stdout, done.stderr)


def notebook(folder: Path, kernel: str) -> Path:
    path = folder / "a.ipynb"
    path.write_text(json.dumps({"cells": [], "metadata": {"kernelspec": {"name": kernel}}, "nbformat": 4}))
    return path


def test_the_demo_can_be_asked_for_and_all_else_is_handed_on(packages: Path, folder: Path) -> None:
    before = notebook(folder, "claude").read_bytes()
    started = lab(packages, folder, "--port", "9999", "a.ipynb", "--demo", "--no-browser", "--", "--demo", "-y")
    assert started.code == 7
    assert started.lab == {
        "argv": [
            "--MultiKernelManager.default_kernel_name=claude-demo",
            *("--port", "9999", "a.ipynb", "--no-browser", "--demo", "-y"),
        ],
        "cli": "demo",
        "cwd": str(folder),
    }
    assert "The offline demo answers, because of --demo." in started.out
    assert "CLAUDE_KERNEL_CLI=demo" in started.out
    assert "a.ipynb names the Claude kernel; here that kernel runs the demo as well." in started.out
    assert (folder / "a.ipynb").read_bytes() == before


def test_with_a_key_claude_answers(packages: Path, folder: Path, program: Program) -> None:
    program("claude", "raise SystemExit('nobody starts it: the key is enough')")
    notebook(folder, "claude-demo")
    started = lab(packages, folder, "a.ipynb", ANTHROPIC_API_KEY="sk-ant-secret")
    assert started.code == 7
    assert started.lab["cli"] is None
    assert started.lab["argv"] == ["--MultiKernelManager.default_kernel_name=claude", "a.ipynb"]
    assert "Claude answers" in started.out
    assert "a.ipynb names the demo kernel: choose Claude at the top right" in started.out
    assert "secret" not in started.out


def test_a_kernel_that_a_person_chose_is_kept(packages: Path, folder: Path) -> None:
    chosen = "--MultiKernelManager.default_kernel_name=python3"
    assert lab(packages, folder, "--demo", chosen).lab["argv"] == [chosen]


def test_root_is_told_what_jupyterlab_wants_of_root() -> None:
    assert "--allow-root" in root_advice(["--no-browser"], 0)
    assert root_advice(["--no-browser"], 1000) == ""
    assert root_advice(["--allow-root"], 0) == ""
    assert root_advice(["--ServerApp.allow_root=True"], 0) == ""


def test_a_file_in_the_folder_cannot_take_the_place_of_a_module(packages: Path, folder: Path) -> None:
    (folder / "json.py").write_text("raise SystemExit('evil')")
    done = subprocess.run(
        [sys.executable, "-P", "-c", RUN, "lab", "--demo"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{packages}:{ROOT}"},
        check=False,
    )
    assert done.returncode == 7
    assert "evil" not in done.stdout + done.stderr


def test_without_jupyterlab_it_says_how_to_get_it(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jupyterlab", None)
    said = typed("lab", "--demo")
    assert said.code == 1
    assert 'pip install "claude-kernel[lab,cli]"' in said.err


def test_a_notebook_that_is_not_there_is_named(typed: Typed) -> None:
    said = typed("lab", "--demo", "missing.ipynb")
    assert said.code == 1
    assert "There is no notebook missing.ipynb." in said.err


@pytest.mark.usefixtures("folder", "claude_without_login")
def test_without_a_login_the_demo_answers_and_it_is_said_how_to_log_in() -> None:
    why = why_not_claude()
    assert why.startswith("because nobody is logged in.")
    assert "run `claude` in a terminal and choose /login" in why
    assert "ANTHROPIC_API_KEY" in why


@pytest.mark.usefixtures("folder")
def test_a_cli_that_does_not_start_or_is_not_there_means_the_demo(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("claude", "raise SystemExit(3)")
    assert why_not_claude() == "because Claude Code does not start. `claude-kernel doctor` says more."
    monkeypatch.setenv("CLAUDE_CODE_PATH", "/nowhere/claude")
    assert "/nowhere/claude" in why_not_claude()
    monkeypatch.setenv("CLAUDE_KERNEL_CLI", "demo")
    assert "the setting `cli`" in why_not_claude()
