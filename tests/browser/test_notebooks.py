"""The notebooks of `notebooks/` in real JupyterLab, clicked through with the offline demo, and `claude-kernel lab`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support.lab import LabServer, NotebookPage
from support.tour import NAMES, NOTEBOOKS, copy_notebooks, demo_environment, play, read, words

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("name", NAMES)
def test_what_a_notebook_has_saved_is_what_a_run_shows(lab: LabServer, notebook: NotebookPage, name: str) -> None:
    """Where this fails although the notebook behaves as it should, `scripts/notebooks` saves it anew."""
    lab.set_environment(demo_environment())
    made = play(notebook, name, lambda cell: notebook.screenshot(f"{Path(name).stem}-{cell}"))
    for saved, now in zip(read(NOTEBOOKS / name)["cells"], made["cells"], strict=True):
        assert (now["id"], now["source"]) == (saved["id"], saved["source"])
        if now["cell_type"] == "code":
            assert now["execution_count"] == saved["execution_count"]
            assert words(now) == words(saved)
    left = {path.name for path in notebook.folder.iterdir()} - {".ipynb_checkpoints"}
    assert left == {*NAMES}, "a notebook tidies up after itself"
    assert notebook.page_errors == []


@pytest.fixture
def address(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """What a person sees of the command behind `scripts/lab`: its address, in a folder like that of the project."""
    (tmp_path / "notebooks").mkdir()
    copy_notebooks(tmp_path / "notebooks")
    script = (NOTEBOOKS.parent / "scripts" / "lab").read_text().replace("\\\n", " ")
    ((_, *given),) = re.findall(r"^exec (\S+) (lab .*)\"\$@\"$", script, re.MULTILINE)
    command = [str(Path(sys.executable).parent / "claude-kernel"), *" ".join(given).split()]
    environment = {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(NOTEBOOKS.parent),
        **demo_environment(),
    }
    with subprocess.Popen(
        [*command, "--no-browser", "--allow-root", "--port=0"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        said: list[str] = []
        try:
            for line in process.stdout:
                said.append(line)
                if found := re.search(r"http://127\.0\.0\.1\S+", line):
                    break
            else:
                pytest.fail(f"no address:\n{''.join(said)}")
            request.node.add_report_section("call", "said", "".join(said))
            yield found[0]
        finally:
            process.terminate()
            process.communicate()


def test_the_address_that_the_script_prints_is_that_of_the_quickstart_and_its_first_cell_runs(
    address: str, page: Page
) -> None:
    page.goto(address)
    panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    # The status bar: the notebook's own circle is idle also before there is a kernel.
    expect(page.get_by_role("button", name="Claude | Idle")).to_be_visible(timeout=60_000)
    first = panel.locator(".jp-CodeCell").first
    expect(first.locator(".jp-OutputArea-output")).to_have_count(0)
    first.locator(".cm-content").click()
    page.keyboard.press("Control+Enter")
    expect(first.locator(".jp-OutputArea")).to_contain_text("not from a model", timeout=60_000)
    expect(first.locator(".jp-InputPrompt").first).to_have_text("[1]:")
