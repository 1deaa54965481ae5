"""What the browser tests stand on, proved with the stock Python kernel. It must not know the Claude kernel."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.lab import App, LabServer, NotebookPage

from .conftest import Chromium

pytestmark = pytest.mark.browser

both_apps = pytest.mark.parametrize("app", ["lab", "notebook"])

WAIT_FOR_A_CLICK = """\
import asyncio, ipywidgets
clicked = asyncio.Event()
button, other = (ipywidgets.Button(description=label) for label in ("Allow", "Allow always"))
button.on_click(lambda _: clicked.set())
display(button, other)
await clicked.wait()
print("went on")"""

LEAVE = """() => {
  new Image().src = 'http://192.0.2.1/a';
  new WebSocket('ws://b.invalid/');
  setTimeout(() => { throw Error('seen'); });
}"""

SHRINK_TO_A_PIXEL = """async png => {
  const picture = await createImageBitmap(await (await fetch('data:image/png;base64,' + png)).blob());
  const canvas = new OffscreenCanvas(1, 1).getContext('2d');
  canvas.imageSmoothingQuality = 'high';
  canvas.drawImage(picture, 0, 0, 1, 1);
  return canvas.getImageData(0, 0, 1, 1).data[1];
}"""


@both_apps
def test_a_notebook_is_written_run_saved_read_again_and_photographed(notebook: NotebookPage, app: App) -> None:
    notebook.open("cells.ipynb", ["print('one')", "'two'"], kernel="python3", app=app)
    notebook.run(0)
    notebook.wait_idle()
    assert notebook.output_text(0).strip() == "one"
    assert notebook.output_text(1) == ""

    added = notebook.add_cell("for n in range(99):\n    if n:\n        print('line', n)\nprint('end')")
    notebook.write(1, "'two and a half'")
    notebook.run_all()
    notebook.wait_idle()
    assert [notebook.prompt(index) for index in range(3)] == ["[2]:", "[3]:", "[4]:"]
    assert notebook.output_text(1) == "'two and a half'"
    assert notebook.output_text(added).split("\n")[:2] == ["line 1", "line 2"]
    assert notebook.output_text(added).strip().endswith("end")

    assert notebook.save()["cells"][1]["source"] == "'two and a half'"
    notebook.write(1, "never saved")
    notebook.reload()
    expect(notebook.editor(1)).to_have_text("'two and a half'")
    assert notebook.output_text(1) == "'two and a half'"
    assert notebook.saved()["cells"][1]["outputs"][0]["data"]["text/plain"] == "'two and a half'"

    notebook.theme("dark")
    dark = notebook.screenshot(f"harness-{app}-dark")
    notebook.theme("light")
    light = notebook.screenshot(f"harness-{app}-light")
    assert brightness_of(notebook, dark) < 100 < 200 < brightness_of(notebook, light)
    whole = notebook.screenshot(f"harness-{app}-whole", whole=True)
    assert png_height(light) < 900 < 1800 < png_height(whole)
    assert notebook.page_errors == []
    assert notebook.console_errors == []


@both_apps
def test_a_running_cell_takes_a_click_then_a_stop_and_its_kernel_a_restart(notebook: NotebookPage, app: App) -> None:
    sleep = "import time\nprint('asleep', flush=True)\ntime.sleep(600)"
    notebook.open("run.ipynb", [WAIT_FOR_A_CLICK, sleep, "print('clicked' in globals())"], kernel="python3", app=app)
    notebook.run_all()
    notebook.wait_for_output(0, selector="button.jupyter-button")
    expect(notebook.widget_button("Allow always")).to_have_count(1)
    assert [notebook.prompt(index) for index in range(3)] == ["[*]:", "[*]:", "[*]:"]
    assert notebook.output_text(1) == ""
    notebook.widget_button("Allow").click()
    notebook.wait_for_output(0, "went on")

    notebook.wait_for_output(1, "asleep")
    assert notebook.kernel_status() == "busy"
    with pytest.raises(AssertionError, match="did not become idle"):
        notebook.wait_idle(timeout_seconds=0.1)
    notebook.interrupt()
    notebook.wait_for_output(1, "KeyboardInterrupt")
    notebook.wait_idle()

    notebook.run(2)
    notebook.wait_for_output(2, "True")
    notebook.restart()
    notebook.run(2)
    notebook.wait_for_output(2, "False")


def test_a_kernel_chosen_in_the_launcher_runs_the_working_tree_in_the_environment_of_the_test(
    lab: LabServer, notebook: NotebookPage, tmp_path: Path
) -> None:
    argv = ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (tmp_path / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Probe", "language": "python"}))
    lab.install_kernel("probe", tmp_path, {"PRICE": "$PATH"})
    notebook.open_launcher()
    assert {"Python 3 (ipykernel)", "Probe"} <= set(notebook.card_labels())
    notebook.choose_card("Probe")
    notebook.write(0, "import os, claude_kernel\nprint(os.environ['PRICE'], os.getcwd(), claude_kernel.__file__)")
    notebook.run(0)
    package = Path(__file__).parents[2] / "claude_kernel" / "__init__.py"
    notebook.wait_for_output(0, f"$PATH {notebook.folder} {package}")
    assert notebook.save()["metadata"]["kernelspec"]["name"] == "probe"
    assert notebook.path == notebook.folder / "Untitled.ipynb"


def test_what_leaves_the_machine_is_refused_and_recorded(lab: LabServer, notebook: NotebookPage) -> None:
    """On a bare page: the trap is the browser context's. Not one under /api, whose policy refuses all by itself."""
    page = notebook.page
    bare = notebook.folder / "bare.html"
    bare.write_text("<!doctype html>")
    page.goto(f"{lab.url}/files/{bare.relative_to(lab.root)}")
    with (
        page.expect_console_message(lambda message: "192.0.2.1" in message.location["url"]),
        page.expect_websocket(),
        page.expect_event("pageerror"),
    ):
        page.evaluate(LEAVE)
    assert sorted(lab.foreign_requests) == ["http://192.0.2.1/a", "ws://b.invalid/"]
    assert notebook.page_errors == ["seen"]
    assert any("192.0.2.1" in error for error in notebook.console_errors)
    lab.foreign_requests.clear()


def test_an_unknown_kernel_is_named_at_once(notebook: NotebookPage) -> None:
    with pytest.raises(LookupError, match="no kernel named 'absent'"):
        notebook.open("absent.ipynb", kernel="absent")


def test_asyncio_still_runs_beside_the_browser(chromium: Chromium) -> None:
    assert chromium.loop is not None
    assert asyncio.run(asyncio.sleep(0, "ran")) == "ran"


def test_a_stopped_server_leaves_no_process(tmp_path: Path) -> None:
    lab = LabServer(tmp_path)
    with lab:
        lab.request("POST", "/api/kernels")
        assert len(lab.processes()) >= 2
    assert lab.processes() == []
    with pytest.raises(RuntimeError, match="not running"):
        lab.request("GET", "/api/status")


def png_height(path: Path) -> int:
    return int.from_bytes(path.read_bytes()[20:24])


def brightness_of(notebook: NotebookPage, path: Path) -> int:
    """From 0 (black) to 255, reckoned by the browser: it has a PNG decoder at hand."""
    return int(notebook.page.evaluate(SHRINK_TO_A_PIXEL, base64.b64encode(path.read_bytes()).decode()))
