"""The Claude kernel in real JupyterLab and Notebook 7, on the real CLI: choose, run, watch, stop, restart, save."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import expect
from support.lab import NotebookPage
from support.messages_api import MessagesApi
from support.model_script import choose_answer

pytestmark = [pytest.mark.browser, pytest.mark.real_cli]

App = Literal["lab", "notebook"]
ASKED = "The report loses rows with missing values. Find out why, and fix it."
LOADER = """import pandas as pd


def load(path, strict=False):
    frame = pd.read_csv(path)
    if strict:
        frame = frame.dropna()
    return frame
"""
ANSWER = r"""I looked at how the loader treats missing values.

| case | before | now |
|---|---:|---:|
| strict | 4 rows | 5 rows |
| lenient | 5 rows | 5 rows |

The rule is $\hat{y} = \beta_0 + \beta_1 x$, and the fix is small:

```python
missing = frame.isna().any(axis=1)
frame = frame.assign(missing=missing)
```

1. Rows with missing values are **kept**.
2. They are marked in a column called `missing`.
"""


def steps(*rounds: Any) -> str:
    return f"steps:{json.dumps(list(rounds))}"


def showcase(project: Path) -> str:
    """One turn with most of what a turn can hold, on real files, with real tools."""
    (project / "src").mkdir(exist_ok=True)
    for name in ("loader.py", "merge.py", "report.py", "plot.py", "cli.py"):
        (project / "src" / name).write_text(LOADER)
    (project / "run-tests.sh").write_text(
        "printf '\\033[31mE   AssertionError: 4 != 5\\033[0m\\n1 failed, 7 passed\\n'; exit 1\n"
    )
    loader = str(project / "src" / "loader.py")
    edit = {
        "file_path": loader,
        "old_string": "        frame = frame.dropna()",
        "new_string": "        missing = frame.isna().any(axis=1)\n        frame = frame.assign(missing=missing)",
    }
    errand = {
        "description": "Find every caller that relies on dropped rows",
        "prompt": steps([["Read", {"file_path": str(project / "src" / "report.py")}]], "Only the **report** does."),
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }
    reads = [
        ["Read", {"file_path": str(project / "src" / name)}] for name in ("merge.py", "report.py", "plot.py", "cli.py")
    ]
    return steps(
        ["I'll look at how the loader handles missing values, then fix it.", ["Read", {"file_path": loader}]],
        ["Who else loads data this way?", *reads],
        ["The rows are dropped here.", ["Edit", edit]],
        ["Now the tests.", ["Bash", {"command": "sh run-tests.sh", "description": "Run the tests"}]],
        ["One is left. Does anybody rely on the old way?", ["Task", errand]],
        ANSWER,
    )


def allow_everything_needed(project: Path, home: Path) -> None:
    """Rules of the person's own settings, so that this turn asks nothing."""
    settings = {"permissions": {"allow": ["Bash(sh run-tests.sh)", "Edit"]}}
    (home / ".claude").mkdir(exist_ok=True)
    (home / ".claude" / "settings.json").write_text(json.dumps(settings))
    assert project.is_dir()


def test_claude_is_chosen_from_the_launcher_and_answers(claude_notebook: NotebookPage) -> None:
    cards = claude_notebook.open_launcher()
    assert "Claude" in cards.all_inner_texts()
    logo = cards.filter(has_text="Claude").locator("img, svg").first
    expect(logo).to_be_visible()
    claude_notebook.page.locator(".jp-Launcher").screenshot(path=".artifacts/screens/launcher.png")
    claude_notebook.choose_card("Claude")
    claude_notebook.write(0, "say:Hello **world**")
    claude_notebook.run(0)
    expect(claude_notebook.wait_for_output(0, "Hello world").locator("strong")).to_have_text("world")


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_text_appears_while_the_turn_runs_and_the_footer_at_its_end(claude_notebook: NotebookPage, app: App) -> None:
    claude_notebook.open("stream.ipynb", ["slow:8"], app=app)
    claude_notebook.run(0)
    claude_notebook.wait_for_output(0, "tick 0")
    assert claude_notebook.prompt(0) == "[*]:"
    assert "tick 7" not in claude_notebook.output_text(0)
    claude_notebook.wait_for_output(0, selector=".live")
    claude_notebook.wait_idle()
    text = claude_notebook.output_text(0)
    assert "tick 7" in text
    assert "opus" in text.splitlines()[-1]
    expect(claude_notebook.output(0).locator(".live")).to_have_count(0)


def test_a_whole_turn_looks_right_in_both_themes(
    claude_notebook: NotebookPage, project: Path, cli_home: Path, messages_api: MessagesApi
) -> None:
    allow_everything_needed(project, cli_home)
    played = json.dumps(showcase(project))[1:-1]

    def play(request: dict[str, Any]) -> list[dict[str, Any]] | None:
        """A person's words in the cell; the model reads them as the script of the showcase."""
        told = json.dumps(request)
        return choose_answer(json.loads(told.replace(ASKED, played))).blocks if ASKED in told else None

    messages_api.script(play)
    try:
        claude_notebook.open("showcase.ipynb", [ASKED])
        claude_notebook.run(0)
        claude_notebook.wait_idle(timeout_seconds=60)
    finally:
        messages_api.script(None)
    output = claude_notebook.output(0)
    expect(output.locator("summary b", has_text="Edit").first).to_be_visible()
    expect(output.locator(".add")).to_have_count(2)
    expect(output.locator(".del")).to_have_count(1)
    expect(output.locator("i.no", has_text="exit 1")).to_be_visible()
    expect(output.locator("table td").first).to_be_visible()
    expect(output.locator("mjx-container").first).to_be_visible()
    expect(output.locator("summary b", has_text="steps").first).to_be_visible()
    claude_notebook.page.set_viewport_size({"width": 1280, "height": 1040})
    for theme in ("light", "dark"):
        claude_notebook.theme(theme)
        claude_notebook.screenshot(f"turn-{theme}")
    claude_notebook.page.set_viewport_size({"width": 760, "height": 900})
    claude_notebook.screenshot("turn-narrow", whole=True)
    assert claude_notebook.page_errors == []


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_the_stop_button_stops_the_turn_and_the_next_cell_goes_on(claude_notebook: NotebookPage, app: App) -> None:
    claude_notebook.open("stop.ipynb", ["slow:300", "say:still here"], app=app)
    claude_notebook.run(0)
    claude_notebook.wait_for_output(0, "tick 1")
    claude_notebook.interrupt()
    began = time.monotonic()
    claude_notebook.wait_for_output(0, "Interrupted")
    claude_notebook.wait_idle()
    assert time.monotonic() - began < 3  # the page's own polling included
    assert "tick 0" in claude_notebook.output_text(0)
    claude_notebook.run(1)
    claude_notebook.wait_for_output(1, "still here")


def test_run_all_keeps_order_and_a_failure_stops_it(claude_notebook: NotebookPage, messages_api: MessagesApi) -> None:
    claude_notebook.open("all.ipynb", ["say:one", "say:two", "fail:400", "say:never"])
    claude_notebook.run_all()
    claude_notebook.wait_for_output(2, selector=".trouble")
    claude_notebook.wait_idle()
    assert "one" in claude_notebook.output_text(0)
    assert "two" in claude_notebook.output_text(1)
    assert claude_notebook.output_text(3).strip() == ""
    assert "never" not in str(messages_api.prompts())


def test_restart_save_and_reload_lose_nothing(claude_notebook: NotebookPage) -> None:
    claude_notebook.open("keep.ipynb", ["say:kept **words**", "say:after the restart"])
    claude_notebook.run(0)
    claude_notebook.wait_for_output(0, "kept words")
    claude_notebook.wait_idle()
    claude_notebook.restart()
    claude_notebook.write(1, "%claude resume\nsay:after the restart")
    claude_notebook.run(1)
    claude_notebook.wait_for_output(1, "after the restart")
    claude_notebook.wait_idle()
    saved = claude_notebook.save()
    mimes = {mime for cell in saved["cells"] for output in cell["outputs"] for mime in output["data"]}
    assert mimes == {"text/html", "text/plain"}
    claude_notebook.reload()
    claude_notebook.wait_for_output(0, "kept words")


def test_a_notebook_that_is_not_trusted_still_reads_well(claude_notebook: NotebookPage, project: Path) -> None:
    """JupyterLab then drops the style sheet and keeps the elements."""
    (project / "a.txt").write_text("one\ntwo\n")
    read = [["Read", {"file_path": str(project / "a.txt")}]]
    claude_notebook.open("mine.ipynb", [steps(read, "All is **well**.")])
    claude_notebook.run(0)
    claude_notebook.wait_for_output(0, "All is well.")
    claude_notebook.wait_idle()
    saved = claude_notebook.save()
    saved["cells"][0]["outputs"][0]["data"]["text/plain"] = "changed, so that no signature fits"
    claude_notebook.path = project / "foreign.ipynb"
    claude_notebook.path.write_text(json.dumps(saved))
    claude_notebook.visit()
    output = claude_notebook.wait_for_output(0, "All is well.")
    expect(output.locator("style")).to_have_count(0)
    expect(output.locator("details summary")).to_contain_text("Read a.txt")
    expect(output.locator("strong")).to_have_text("well")
    claude_notebook.screenshot("untrusted")


def test_200_tool_calls_and_500_kb_of_text_stay_on_the_screen(claude_notebook: NotebookPage, project: Path) -> None:
    """JupyterLab shows at most 50 outputs of a cell: stay under it by construction."""
    (project / "a.txt").write_text("a line\n")
    rounds: list[Any] = []
    for number in range(100):
        text = f"Paragraph {number}. " + "Many words follow here, and none of them is lost. " * 100
        read = ["Read", {"file_path": str(project / "a.txt")}]
        rounds.append([text, read, read])
    claude_notebook.open("long.ipynb", [steps(*rounds, "The very end.")])
    claude_notebook.run(0)
    claude_notebook.wait_for_output(0, "The very end.", timeout_seconds=100)
    claude_notebook.wait_idle(timeout_seconds=30)
    outputs = claude_notebook.output(0).locator(".jp-OutputArea-child")
    assert outputs.count() < 50
    text = claude_notebook.output_text(0)
    assert all(f"Paragraph {number}." in text for number in range(100))
    assert "Show more outputs" not in text


def test_steering_and_trouble_look_right(claude_notebook: NotebookPage) -> None:
    claude_notebook.open("trouble.ipynb", ["%claude status", "fail:400", "%claude mode yolo", "%claude help"])
    for index in range(4):
        claude_notebook.run(index)
        claude_notebook.wait_idle()
    expect(claude_notebook.output(0).locator("table")).to_be_visible()
    expect(claude_notebook.output(1).locator(".trouble")).to_be_visible()
    expect(claude_notebook.output(2).locator(".trouble")).to_contain_text("acceptEdits")
    for theme in ("light", "dark"):
        claude_notebook.theme(theme)
        claude_notebook.screenshot(f"trouble-{theme}", whole=True)
