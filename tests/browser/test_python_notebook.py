"""`%%claude` in a Python notebook in real JupyterLab and Notebook 7: a stock kernel, the real CLI, real clicks."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from playwright.sync_api import Locator, expect
from support.lab import NotebookPage
from support.messages_api import MessagesApi
from support.model_script import find_prompt

pytestmark = [pytest.mark.browser, pytest.mark.real_cli]

App = Literal["lab", "notebook"]
LOAD = "%load_ext claude_kernel"
RUN_PYTHON = "mcp__notebook__run_python"
FRAME = "import pandas as pd\nsales = pd.DataFrame({'day': ['Mon', 'Tue', 'Wed'], 'sold': [3, 5, 2]})"
PLOT = "total = int(sales.sold.sum())\nax = sales.plot(x='day', kind='bar', legend=False)\nprint('total', total)"


def call(tool: str, **given: Any) -> str:
    return f"tool:mcp__notebook__{tool}:{json.dumps(given)}"


def card(notebook: NotebookPage, index: int) -> Locator:
    return notebook.output(index).locator(".ck-ask")


def press(notebook: NotebookPage, label: str, index: int) -> None:
    card(notebook, index).get_by_role("button", name=label, exact=True).first.click()


def both_themes(notebook: NotebookPage, name: str) -> None:
    themes: tuple[Literal["light", "dark"], ...] = ("dark", "light")
    for theme in themes:
        notebook.theme(theme)
        notebook.screenshot(f"{name}-{theme}", whole=True)


def open_python(notebook: NotebookPage, *cells: str, app: App = "lab") -> None:
    notebook.open("python.ipynb", [f"{LOAD}\n{FRAME}", *cells], app=app, kernel="python3")
    notebook.run(0)
    notebook.wait_idle()


def test_a_frame_is_described_without_asking_and_code_makes_a_variable_and_a_plot(
    claude_notebook: NotebookPage, messages_api: MessagesApi
) -> None:
    look = f"%%claude\n{call('inspect_variable', name='sales')}"
    script = [["I will draw the sales.", [RUN_PYTHON, {"code": PLOT}]], "Tuesday was the **best** day."]
    open_python(claude_notebook, look, f"%%claude\nsteps:{json.dumps(script)}", "print(total)")
    claude_notebook.run(1)
    claude_notebook.wait_for_output(1, "done:")
    assert "3 rows" in (told := find_prompt(messages_api.last_request()).result) or "(3, 2)" in told
    claude_notebook.run(2)
    expect(card(claude_notebook, 2)).to_contain_text("Claude wants to run Python in this notebook")
    both_themes(claude_notebook, "python-question")
    press(claude_notebook, "Allow once", 2)
    claude_notebook.wait_for_output(2, "Tuesday was the best day.")
    claude_notebook.wait_idle()
    expect(claude_notebook.output(2).locator("img")).to_have_count(1)
    assert "[image]" in find_prompt(messages_api.last_request()).result
    assert "total 10" in claude_notebook.output_text(2)
    both_themes(claude_notebook, "python-plot")
    claude_notebook.run(3)
    claude_notebook.wait_for_output(3, "10")
    assert "widget-view" not in json.dumps(claude_notebook.save())
    assert claude_notebook.page_errors == []


def test_an_exception_is_shown_and_comes_back_as_an_error_and_the_turn_goes_on(
    claude_notebook: NotebookPage, messages_api: MessagesApi
) -> None:
    script = [["First the mean.", [RUN_PYTHON, {"code": "sales['price'].mean()"}]], "There is no **price** here."]
    open_python(claude_notebook, f"%%claude\nsteps:{json.dumps(script)}")
    claude_notebook.run(1)
    press(claude_notebook, "Allow once", 1)
    claude_notebook.wait_for_output(1, "There is no price here.")
    claude_notebook.wait_idle()
    both_themes(claude_notebook, "python-error")
    (told,) = (
        block
        for message in messages_api.last_request()["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result"
    )
    assert told["is_error"] is True
    assert "KeyError: 'price'" in json.dumps(told)
    assert "KeyError" in claude_notebook.output_text(1)
    assert all(output["output_type"] != "error" for output in claude_notebook.save()["cells"][1]["outputs"])


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_typed_reason_arrives_in_full_while_the_cell_runs(
    claude_notebook: NotebookPage, messages_api: MessagesApi, app: App
) -> None:
    open_python(claude_notebook, f"%%claude\n{call('run_python', code='sales.drop()')}", app=app)
    claude_notebook.run(1)
    reason = card(claude_notebook, 1).get_by_placeholder("Why not", exact=False)
    reason.click()
    reason.press_sequentially("never drop my sales", delay=15)
    press(claude_notebook, "Deny", 1)
    claude_notebook.wait_for_output(1, "You denied")
    claude_notebook.wait_idle()
    assert "never drop my sales" in str(messages_api.last_request())


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_an_added_cell_stands_below_and_was_not_run(claude_notebook: NotebookPage, app: App) -> None:
    open_python(claude_notebook, f"%%claude\n{call('add_cell', source='sales.describe()')}", app=app)
    before = claude_notebook.cells().count()
    claude_notebook.run(1)
    claude_notebook.wait_for_output(1, "done:")
    claude_notebook.wait_idle()
    expect(claude_notebook.cells()).to_have_count(before + 1)
    expect(claude_notebook.editor(2)).to_contain_text("sales.describe()")
    assert claude_notebook.prompt(2).strip() in ("[ ]:", "")


def test_stop_ends_the_code_and_the_same_conversation_goes_on(claude_notebook: NotebookPage) -> None:
    code = "import time\nprint('be' + 'gun', flush=True)\ntime.sleep(100)"  # the question shows the code: another word
    open_python(claude_notebook, f"%%claude\n{call('run_python', code=code)}", "%claude say:Still here.")
    claude_notebook.run(1)
    press(claude_notebook, "Allow once", 1)
    claude_notebook.wait_for_output(1, "begun")
    claude_notebook.interrupt()
    claude_notebook.wait_idle()
    claude_notebook.run(2)
    claude_notebook.wait_for_output(2, "Still here.")
