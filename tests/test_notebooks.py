"""What is saved in `notebooks/`: it reads well on any machine, and a run without a browser shows the same."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.kernels import write_spec
from support.tour import NAMES, NOTEBOOKS, copy_notebooks, read, tidy, words

ROOT = Path(__file__).parent.parent
KERNELS = {
    "conversation.ipynb": ("claude", "markdown"),
    "live-data.ipynb": ("python3", "python"),
    "permissions-and-questions.ipynb": ("claude", "markdown"),
    "quickstart.ipynb": ("claude", "markdown"),
}


def test_these_are_the_notebooks() -> None:
    assert tuple(KERNELS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_saved_as_a_whole_run_from_the_top(name: str) -> None:
    notebook = read(NOTEBOOKS / name)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(output["output_type"] != "error" for cell in code for output in cell["outputs"])
    assert "Offline demo: these words come from a script" in json.dumps(code), "it says who answered"


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_says_nothing_of_the_machine_it_was_run_on(name: str) -> None:
    notebook = read(NOTEBOOKS / name)
    kernel, language = KERNELS[name]
    assert notebook["metadata"]["kernelspec"]["name"] == kernel
    assert notebook["metadata"]["language_info"] == {"name": language}
    assert notebook == tidy(notebook)
    written = (NOTEBOOKS / name).read_text()
    assert not re.search(r"/(home|root|tmp|Users|work|usr|opt)/", re.sub(r'"image/png": "[^"]*"', "", written))
    assert "widget-view" not in written, "a card leaves a record, and no widget that nobody else has"
    assert "stderr" not in written


@pytest.mark.parametrize("name", NAMES)
def test_what_a_notebook_links_to_is_there(name: str) -> None:
    prose = "\n".join(cell["source"] for cell in read(NOTEBOOKS / name)["cells"] if cell["cell_type"] == "markdown")
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        assert (NOTEBOOKS / target).is_file(), target


@pytest.mark.slow
def test_the_quickstart_shows_the_same_without_a_browser(tmp_path: Path) -> None:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    copy_notebooks(folder)
    done = subprocess.run(
        [sys.executable, "-m", "nbconvert", "--execute", "--to=notebook", "--inplace", "quickstart.ipynb"],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "JUPYTER_PATH": str(write_spec(tmp_path / "jupyter")),
            "PYTHONPATH": str(ROOT),
            "CLAUDE_KERNEL_CLI": "demo",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = tidy(read(folder / "quickstart.ipynb"))
    for saved, now in zip(read(NOTEBOOKS / "quickstart.ipynb")["cells"], made["cells"], strict=True):
        if now["cell_type"] == "code":
            assert words(now) == words(saved)
