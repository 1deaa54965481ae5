"""Asking the person in real JupyterLab and Notebook 7, on the real CLI: every click is a browser's click."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest
from playwright.sync_api import Locator, expect
from support.lab import NotebookPage
from support.messages_api import MessagesApi
from support.talk import child

pytestmark = [pytest.mark.browser, pytest.mark.real_cli]

App = Literal["lab", "notebook"]
WIDGET = "application/vnd.jupyter.widget-view+json"
COLOUR = {
    "question": "Which rows should the report keep?",
    "header": "Rows",
    "multiSelect": False,
    "options": [
        {"label": "All", "description": "keep rows with missing values"},
        {"label": "Complete only", "description": "as before"},
    ],
}
FORMATS = {
    "question": "Which formats should it write?",
    "header": "Formats",
    "multiSelect": True,
    "options": [{"label": "HTML", "description": "for people"}, {"label": "CSV", "description": "for programs"}],
}


def call(tool: str, **given: Any) -> str:
    return f"tool:{tool}:{json.dumps(given)}"


def card(notebook: NotebookPage, index: int = 0) -> Locator:
    return notebook.output(index).locator(".ck-ask")


def press(notebook: NotebookPage, label: str, index: int = 0) -> None:
    card(notebook, index).get_by_role("button", name=label, exact=True).first.click()


def both_themes(notebook: NotebookPage, name: str) -> None:
    themes: tuple[Literal["light", "dark"], ...] = ("dark", "light")
    for theme in themes:
        notebook.theme(theme)
        notebook.screenshot(f"{name}-{theme}")


def no_widget_is_left(notebook: NotebookPage) -> None:
    saved = notebook.save()
    assert WIDGET not in json.dumps(saved)
    expect(notebook.panel.locator(".jupyter-widgets")).to_have_count(0)


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_allow_once_runs_exactly_what_was_shown(claude_notebook: NotebookPage, project: Path, app: App) -> None:
    command = "mkdir -p report && touch report/made.txt"
    claude_notebook.open("allow.ipynb", [call("Bash", command=command, description="Make the report folder")], app=app)
    claude_notebook.run(0)
    expect(card(claude_notebook)).to_contain_text("Claude wants to run a command")
    expect(card(claude_notebook).locator("pre").first).to_contain_text(command)
    focused = claude_notebook.page.evaluate("document.activeElement?.textContent ?? ''")
    assert not focused.startswith("Allow")
    assert not (project / "report").exists()
    if app == "lab":
        both_themes(claude_notebook, "permission")
    press(claude_notebook, "Allow once")
    claude_notebook.wait_for_output(0, "You allowed once")
    claude_notebook.wait_idle()
    assert (project / "report" / "made.txt").exists()
    no_widget_is_left(claude_notebook)
    if app == "lab":
        claude_notebook.screenshot("permission-record")
    claude_notebook.reload()
    claude_notebook.wait_for_output(0, "You allowed once")
    assert claude_notebook.page_errors == []


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_typed_reason_reaches_claude_in_full_and_nothing_was_done(
    claude_notebook: NotebookPage, project: Path, messages_api: MessagesApi, app: App
) -> None:
    claude_notebook.open("deny.ipynb", [call("Bash", command="touch no.txt")], app=app)
    claude_notebook.run(0)
    reason = card(claude_notebook).get_by_placeholder("Why not", exact=False)
    reason.click()
    reason.press_sequentially("use git mv, not touch", delay=15)
    press(claude_notebook, "Deny")
    claude_notebook.wait_for_output(0, "You denied")
    claude_notebook.wait_idle()
    assert "use git mv, not touch" in str(messages_api.last_request())
    assert not (project / "no.txt").exists()


def test_an_edited_command_is_what_runs(claude_notebook: NotebookPage, project: Path) -> None:
    claude_notebook.open("edit.ipynb", [call("Bash", command="touch original.txt")])
    claude_notebook.run(0)
    press(claude_notebook, "Edit…")
    box = card(claude_notebook).locator("textarea")
    expect(box).to_have_value("touch original.txt")
    box.fill("touch edited.txt")
    both_themes(claude_notebook, "edit")
    press(claude_notebook, "Run this command")
    claude_notebook.wait_idle()
    assert (project / "edited.txt").exists()
    assert not (project / "original.txt").exists()
    no_widget_is_left(claude_notebook)


def test_always_allow_is_kept_where_it_was_put_and_does_not_ask_again(
    claude_notebook: NotebookPage, project: Path
) -> None:
    cells = [call("Bash", command="touch kept.txt"), call("Bash", command="touch kept.txt")]
    claude_notebook.open("always.ipynb", cells)
    claude_notebook.run(0)
    card(claude_notebook).get_by_role("button", name="Always allow", exact=False).first.click()
    claude_notebook.wait_idle()
    settings = json.loads((project / ".claude" / "settings.local.json").read_text())
    assert settings["permissions"]["allow"] == ["Bash(touch kept.txt)"]
    claude_notebook.run(1)
    claude_notebook.wait_for_output(1, "done:")
    claude_notebook.wait_idle()
    expect(card(claude_notebook, 1)).to_have_count(0)
    assert "You allowed" not in claude_notebook.output_text(1)


def test_an_edit_is_asked_with_its_diff(claude_notebook: NotebookPage, project: Path) -> None:
    target = project / "loader.py"
    target.write_text("def load(path):\n    frame = read(path)\n    frame = frame.dropna()\n    return frame\n")
    edit = {"file_path": str(target), "old_string": "    frame = frame.dropna()\n", "new_string": ""}
    rounds = [[["Read", {"file_path": str(target)}]], [["Edit", edit]], "Done."]
    claude_notebook.open("diff.ipynb", [f"steps:{json.dumps(rounds)}"])
    claude_notebook.run(0)
    expect(card(claude_notebook).locator(".del")).to_contain_text("frame.dropna()")
    both_themes(claude_notebook, "edit-diff")
    card(claude_notebook).get_by_role("button", name="Accept edits this session").click()
    claude_notebook.wait_idle()
    assert "dropna" not in target.read_text()


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_form_takes_choices_and_words_of_ones_own(
    claude_notebook: NotebookPage, messages_api: MessagesApi, app: App
) -> None:
    claude_notebook.open("form.ipynb", [call("AskUserQuestion", questions=[COLOUR, FORMATS])], app=app)
    claude_notebook.run(0)
    form = card(claude_notebook)
    answer = form.get_by_role("button", name="Answer", exact=True)
    expect(answer).to_be_disabled()
    form.locator("input[type=radio]").nth(2).check()
    expect(answer).to_be_disabled()
    own = form.get_by_placeholder("in your own words")
    own.first.press_sequentially("only the last year", delay=15)
    form.locator("input[type=checkbox]").nth(0).check()
    form.locator("input[type=checkbox]").nth(1).check()
    expect(answer).to_be_enabled()
    if app == "lab":
        both_themes(claude_notebook, "form")
    answer.click()
    claude_notebook.wait_idle()
    told = str(messages_api.last_request())
    assert "only the last year" in told
    assert "HTML, CSV" in told
    assert "only the last year" in claude_notebook.output_text(0)
    no_widget_is_left(claude_notebook)


def test_a_form_can_be_declined_with_a_reason(claude_notebook: NotebookPage, messages_api: MessagesApi) -> None:
    claude_notebook.open("decline.ipynb", [call("AskUserQuestion", questions=[COLOUR])])
    claude_notebook.run(0)
    card(claude_notebook).get_by_placeholder("Why not", exact=False).fill("I would rather not say")
    press(claude_notebook, "Decline")
    claude_notebook.wait_idle()
    assert "I would rather not say" in str(messages_api.last_request())


def test_a_plan_is_sent_back_with_words_and_then_approved(
    claude_notebook: NotebookPage, messages_api: MessagesApi
) -> None:
    plan = call("ExitPlanMode", plan="# Tidy the loader\n\n1. Keep rows\n2. Mark them in a **column**")
    claude_notebook.open("plan.ipynb", [f"%claude mode plan\n{plan}", plan, "%claude status"])
    claude_notebook.run(0)
    expect(card(claude_notebook)).to_contain_text("Claude has a plan")
    expect(card(claude_notebook).locator("strong")).to_have_text("column")
    both_themes(claude_notebook, "plan")
    card(claude_notebook).get_by_placeholder("What should change", exact=False).fill("also write tests")
    press(claude_notebook, "Keep planning")
    claude_notebook.wait_idle()
    assert "also write tests" in str(messages_api.last_request())
    claude_notebook.run(1)
    press(claude_notebook, "Approve, accept edits", 1)
    claude_notebook.wait_for_output(1, "You approved the plan")
    claude_notebook.wait_idle()


def test_two_agents_ask_at_once_and_are_answered_in_any_order(claude_notebook: NotebookPage, project: Path) -> None:
    tasks = [
        [
            "Task",
            {
                "description": f"errand {number}",
                "prompt": call("Bash", command=f"touch p{number}"),
                "subagent_type": "general-purpose",
                "run_in_background": False,
            },
        ]
        for number in (1, 2)
    ]
    claude_notebook.open("two.ipynb", [f"tools:{json.dumps(tasks)}"])
    claude_notebook.run(0)
    expect(card(claude_notebook)).to_have_count(2)
    both_themes(claude_notebook, "two-agents")
    second = card(claude_notebook).filter(has_text="touch p2")
    expect(second).to_contain_text("errand 2")
    second.get_by_role("button", name="Allow once").click()
    expect(card(claude_notebook)).to_have_count(1)
    press(claude_notebook, "Deny")
    claude_notebook.wait_idle()
    assert (project / "p2").exists()
    assert not (project / "p1").exists()
    no_widget_is_left(claude_notebook)


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_stop_during_a_question_closes_its_card(claude_notebook: NotebookPage, project: Path, app: App) -> None:
    claude_notebook.open("stop.ipynb", [call("Bash", command="touch stopped.txt"), "say:still here"], app=app)
    claude_notebook.run(0)
    expect(card(claude_notebook)).to_be_visible()
    claude_notebook.interrupt()
    expect(card(claude_notebook)).to_have_count(0)
    claude_notebook.wait_for_output(0, "No longer asked (you stopped the cell)")
    claude_notebook.wait_idle()
    claude_notebook.run(1)
    claude_notebook.wait_for_output(1, "still here")
    assert not (project / "stopped.txt").exists()


def test_restart_during_a_question_leaves_no_process_and_does_nothing(
    claude_notebook: NotebookPage, project: Path
) -> None:
    claude_notebook.open("restart.ipynb", [call("Bash", command="touch restarted.txt"), "say:after"])
    claude_notebook.run(0)
    expect(card(claude_notebook)).to_be_visible()
    before = clis_in(project)
    assert before
    claude_notebook.restart()
    expect(card(claude_notebook).get_by_role("button", name="Allow once")).to_be_hidden()
    said = card(claude_notebook).evaluate("card => getComputedStyle(card, '::after').content")
    assert "No longer asked" in said
    claude_notebook.screenshot("restarted")
    claude_notebook.run(1)
    press(claude_notebook, "Go on with it", 1)
    claude_notebook.wait_for_output(1, "after")
    assert not before & clis_in(project)
    assert not (project / "restarted.txt").exists()


def clis_in(project: Path) -> set[int]:
    found = set()
    for process in psutil.process_iter():
        try:
            if "--input-format" in " ".join(process.cmdline()) and process.cwd() == str(project):
                found.add(process.pid)
        except psutil.Error:
            continue
    return found


@pytest.mark.timeout(300)
def test_an_answer_after_150_seconds_counts_and_queued_cells_keep_their_order(
    claude_notebook: NotebookPage, project: Path
) -> None:
    claude_notebook.open("late.ipynb", [call("Bash", command="touch late.txt"), "say:second", "say:third"])
    claude_notebook.run_all()
    expect(card(claude_notebook)).to_be_visible()
    asked = time.monotonic()
    claude_notebook.page.wait_for_timeout(150_000)  # nothing to synchronise: the wait itself is what is tested
    assert time.monotonic() - asked >= 150
    assert claude_notebook.output_text(1).strip() == ""
    press(claude_notebook, "Allow once")
    claude_notebook.wait_for_output(2, "third")
    claude_notebook.wait_idle()
    assert (project / "late.txt").exists()
    assert "second" in claude_notebook.output_text(1)


def test_the_keyboard_alone_is_enough(claude_notebook: NotebookPage, project: Path) -> None:
    claude_notebook.open("keys.ipynb", [call("Bash", command="touch keyed.txt")])
    claude_notebook.run(0)
    expect(card(claude_notebook)).to_be_visible()
    allow = card(claude_notebook).get_by_role("button", name="Allow once")
    for _ in range(60):
        if allow.evaluate("button => button === document.activeElement"):
            break
        claude_notebook.page.keyboard.press("Tab")
    claude_notebook.page.keyboard.press("Enter")
    claude_notebook.wait_idle()
    assert (project / "keyed.txt").exists()


def test_the_form_of_an_mcp_server_is_filled_in(claude_notebook: NotebookPage, cli_home: Path) -> None:
    _, _, server = child("asking_server")
    servers = {"travel": {"type": "stdio", "command": sys.executable, "args": [server]}}
    (cli_home / ".claude" / ".claude.json").write_text(json.dumps({"mcpServers": servers}))
    claude_notebook.open("form.ipynb", [call("mcp__travel__book")])
    claude_notebook.run(0)
    press(claude_notebook, "Allow once")
    form = card(claude_notebook)
    expect(form).to_contain_text("Where to?")
    form.locator("input[type=text]").first.fill("Oslo")
    both_themes(claude_notebook, "mcp-form")
    press(claude_notebook, "Send")
    claude_notebook.wait_for_output(0, "Oslo")
    claude_notebook.wait_idle()
    no_widget_is_left(claude_notebook)
