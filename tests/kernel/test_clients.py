"""The same turn through clients that are no notebook: nbclient, nbconvert, `jupyter console`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from support.kernels import write_spec

pytestmark = pytest.mark.real_cli

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def shell_env(kernel_env: dict[str, str], tmp_path: Path) -> dict[str, str]:
    return kernel_env | {
        "JUPYTER_PATH": str(write_spec(tmp_path / "jupyter")),
        "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kernel_env['PATH']}",
        "TERM": "dumb",
    }


def _notebook(path: Path, *cells: str) -> Path:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "claude", "display_name": "Claude", "language": "markdown"}},
    )
    nbformat.write(notebook, str(path))
    return path


def _run(command: list[str], env: dict[str, str], cwd: Path, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], env=env, cwd=cwd, input=typed, capture_output=True, text=True, timeout=90
    )


def test_nbconvert_runs_a_notebook_and_its_html_reads_well(shell_env: dict[str, str], project: Path) -> None:
    read = json.dumps([[["Read", {"file_path": str(project / "a.txt")}]], "All is **well**."])
    (project / "a.txt").write_text("one\ntwo\n")
    path = _notebook(project / "n.ipynb", "say:Hello **world**", f"steps:{read}")
    done = _run(["nbconvert", "--execute", "--to=notebook", "--inplace", path.name], shell_env, project)
    assert done.returncode == 0, done.stderr
    saved = nbformat.read(str(path), as_version=4)
    mimes = {mime for cell in saved.cells for output in cell.outputs for mime in output.data}
    assert mimes == {"text/html", "text/plain"}
    plain = [output.data["text/plain"] for output in saved.cells[1].outputs]
    assert any(line.startswith("Read a.txt") for line in plain)
    assert "All is **well**." in plain
    html = _run(["nbconvert", "--to=html", path.name], shell_env, project)
    assert html.returncode == 0, html.stderr
    page = (project / "n.html").read_text()
    assert "<strong>world</strong>" in page
    assert "<summary><b>Read</b>" in page


def test_a_failing_cell_makes_nbconvert_fail(shell_env: dict[str, str], project: Path) -> None:
    path = _notebook(project / "n.ipynb", "fail:400", "say:never")
    done = _run(["nbconvert", "--execute", "--to=notebook", "--inplace", path.name], shell_env, project)
    assert done.returncode != 0
    assert "ApiError" in done.stderr


def test_the_console_shows_the_turn_in_plain_text(shell_env: dict[str, str], project: Path) -> None:
    typed = "say:Hello **world**\nfail:400\n%claude mode\nexit\n"
    done = _run(["jupyter_console", "--kernel=claude", "--simple-prompt"], shell_env, project, typed)
    assert "Hello **world**" in done.stdout
    assert done.stdout.count("Hello **world**") == 1
    assert "opus-5-5" in done.stdout
    assert "ApiError" in done.stdout + done.stderr
    assert "acceptEdits" in done.stdout
    assert "<div" not in done.stdout


@pytest.mark.parametrize("runner", ["nbconvert", "papermill"])
def test_a_tool_that_would_need_a_person_fails_an_unattended_run_by_name(
    shell_env: dict[str, str], project: Path, runner: str
) -> None:
    path = _notebook(project / "n.ipynb", 'tool:Bash:{"command": "touch x.txt"}', "say:never")
    commands = {
        "nbconvert": ["nbconvert", "--execute", "--to=notebook", "--inplace", path.name],
        "papermill": ["papermill", "--no-progress-bar", path.name, "out.ipynb"],
    }
    done = _run(commands[runner], shell_env, project)
    assert done.returncode != 0
    assert "PermissionNeeded" in done.stderr
    assert "Bash" in done.stderr
    assert not (project / "x.txt").exists()


def test_papermill_runs_a_notebook(shell_env: dict[str, str], project: Path) -> None:
    path = _notebook(project / "n.ipynb", "say:Hello **world**")
    done = _run(["papermill", "--no-progress-bar", path.name, "out.ipynb"], shell_env, project)
    assert done.returncode == 0, done.stderr
    assert "<strong>world</strong>" in (project / "out.ipynb").read_text()
