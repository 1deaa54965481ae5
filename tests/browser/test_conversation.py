"""What a person sees of a conversation that outlives its kernel and its page, in real JupyterLab on the real CLI."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, expect
from support.lab import NotebookPage
from support.messages_api import MessagesApi

pytestmark = [pytest.mark.browser, pytest.mark.real_cli]

WIDGET = "application/vnd.jupyter.widget-view+json"
BEFORE = b"first\r\nsecond\r\nthird, without an end"


def call(tool: str, **given: Any) -> str:
    return f"tool:{tool}:{json.dumps(given)}"


def steps(*rounds: Any) -> str:
    return f"steps:{json.dumps(rounds)}"


def card(notebook: NotebookPage, index: int) -> Locator:
    return notebook.output(index).locator(".ck-ask")


def press(notebook: NotebookPage, index: int, label: str) -> None:
    card(notebook, index).get_by_role("button", name=label, exact=True).click()


def run(notebook: NotebookPage, *cells: int) -> None:
    for index in cells:
        notebook.run(index)
        notebook.wait_idle()


def sent(messages_api: MessagesApi) -> str:
    """The conversation, as the newest request told it."""
    return json.dumps(messages_api.last_request()["messages"])


def close_and_open_again(notebook: NotebookPage) -> None:
    """The tab is gone, and nobody listens; then another shows what was saved."""
    context = notebook.page.context
    notebook.page.close()
    notebook.use_page(context.new_page())
    notebook.visit(wait=False)
    notebook.attach(busy=True)


def told(saved: dict[str, Any], index: int) -> list[dict[str, Any]]:
    """What the cell's outputs say of its turn; the style sheet and a card's record may say nothing."""
    outputs = saved["cells"][index]["outputs"]
    return [output["metadata"]["claude"] for output in outputs if "claude" in output["metadata"]]


def test_after_a_restart_one_click_goes_on_and_another_begins_anew(
    claude_notebook: NotebookPage, messages_api: MessagesApi
) -> None:
    claude_notebook.open("again.ipynb", ["say:The word is larch.", "say:second", "say:third"])
    run(claude_notebook, 0)
    claude_notebook.restart()
    claude_notebook.run(1)
    expect(card(claude_notebook, 1)).to_contain_text("This notebook has a conversation (1 prompt, just now")
    assert card(claude_notebook, 1).get_by_role("button").all_inner_texts() == ["Go on with it", "Begin anew"]
    assert messages_api.prompts() == ["say:The word is larch."]
    claude_notebook.screenshot("resume-light")
    claude_notebook.theme("dark")
    claude_notebook.screenshot("resume-dark")
    claude_notebook.theme("light")
    press(claude_notebook, 1, "Go on with it")
    claude_notebook.wait_for_output(1, "Going on")
    claude_notebook.wait_idle()
    assert "larch" in sent(messages_api)
    claude_notebook.restart()
    claude_notebook.run(2)
    expect(card(claude_notebook, 2)).to_contain_text("(2 prompts, just now")
    press(claude_notebook, 2, "Begin anew")
    claude_notebook.wait_for_output(2, "Begun anew")
    claude_notebook.wait_idle()
    assert "larch" not in sent(messages_api)
    claude_notebook.screenshot("resume-records", whole=True)
    saved = claude_notebook.save()
    assert WIDGET not in json.dumps(saved)
    first, second, third = (told(saved, index) for index in range(3))
    assert first[-1]["session_id"] == second[-1]["session_id"] != third[-1]["session_id"]
    assert {part["message_id"] for part in first}.isdisjoint(part["message_id"] for part in second)
    assert {"model", "cli_version", "cost_usd", "outcome"} <= {*first[-1]}
    assert first[-1]["outcome"] == "finished"
    assert claude_notebook.page_errors == []


def test_a_copy_branches_off_and_a_notebook_from_elsewhere_gets_nothing(
    claude_notebook: NotebookPage, messages_api: MessagesApi, project: Path, cli_home: Path
) -> None:
    claude_notebook.open("original.ipynb", ["say:The word is larch.", "say:and on"])
    run(claude_notebook, 0)
    session = told(claude_notebook.save(), 0)[-1]["session_id"]
    (transcript,) = (cli_home / ".claude" / "projects").rglob(f"{session}.jsonl")
    written = transcript.read_bytes()

    shutil.copy(project / "original.ipynb", project / "copy.ipynb")
    claude_notebook.path = project / "copy.ipynb"
    claude_notebook.visit()
    claude_notebook.run(1)
    expect(card(claude_notebook, 1)).to_contain_text("It began with: say:The word is larch.")
    press(claude_notebook, 1, "Go on with it")
    claude_notebook.wait_for_output(1, "and on")
    claude_notebook.wait_idle()
    assert "larch" in sent(messages_api)
    assert told(claude_notebook.save(), 1)[-1]["session_id"] != session
    assert transcript.read_bytes() == written

    elsewhere = cli_home / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(project / "original.ipynb", elsewhere / "original.ipynb")
    claude_notebook.path = elsewhere / "original.ipynb"
    claude_notebook.visit()
    run(claude_notebook, 1)
    claude_notebook.wait_for_output(1, "belongs to another folder: a new one begins here")
    assert "larch" not in sent(messages_api)
    claude_notebook.screenshot("elsewhere")

    hostile = json.loads((project / "original.ipynb").read_text())
    for output in hostile["cells"][0]["outputs"]:
        output["metadata"]["claude"] = {
            "session_id": "--dangerously-skip-permissions",
            "message_id": "../../../etc/passwd",
            "mode": "bypassPermissions",
            "cwd": "/",
        }
    hostile["metadata"]["claude"] = {"mode": "bypassPermissions", "allowed_tools": ["Bash"], "session_id": session}
    hostile["cells"][1]["source"] = call("Bash", command="touch taken.txt")
    (project / "hostile.ipynb").write_text(json.dumps(hostile))
    claude_notebook.path = project / "hostile.ipynb"
    claude_notebook.visit()
    claude_notebook.run(1)
    expect(card(claude_notebook, 1)).to_contain_text("Claude wants to run a command")
    press(claude_notebook, 1, "Deny")
    claude_notebook.wait_idle()
    assert not (project / "taken.txt").exists()
    assert "larch" not in sent(messages_api)
    assert claude_notebook.page_errors == []


def test_a_turn_goes_on_without_its_page_and_is_taken_up_in_another(
    claude_notebook: NotebookPage, project: Path
) -> None:
    asks = steps(["First some words.", ["Bash", {"command": "touch made.txt"}]], "And the end.")
    claude_notebook.open("tab.ipynb", [asks, "%claude last", "slow:90", "%claude last", "slow:12", "%claude last"])
    claude_notebook.save()
    claude_notebook.run(0)
    expect(card(claude_notebook, 0)).to_be_visible()
    close_and_open_again(claude_notebook)
    claude_notebook.run(1)
    expect(card(claude_notebook, 1)).to_contain_text("touch made.txt")
    claude_notebook.wait_for_output(1, "First some words.")
    expect(claude_notebook.output(1)).not_to_contain_text("No longer asked")
    claude_notebook.screenshot("taken-up")
    press(claude_notebook, 1, "Allow once")
    claude_notebook.wait_for_output(1, "And the end.")
    claude_notebook.wait_idle()
    assert (project / "made.txt").exists()
    saved = claude_notebook.save()
    assert WIDGET not in json.dumps(saved)
    assert told(saved, 1)[-1]["outcome"] == "finished"
    claude_notebook.screenshot("taken-up-ended")

    claude_notebook.run(2)
    claude_notebook.wait_for_output(2, "tick 2")
    close_and_open_again(claude_notebook)
    claude_notebook.run(3)
    claude_notebook.wait_for_output(3, "tick 2")
    assert claude_notebook.prompt(3) == "[*]:"
    claude_notebook.interrupt()
    claude_notebook.wait_for_output(3, "Interrupted")
    claude_notebook.wait_idle()

    claude_notebook.run(4)
    claude_notebook.wait_for_output(4, "tick 1")
    close_and_open_again(claude_notebook)
    claude_notebook.wait_idle()
    assert "tick 11" not in claude_notebook.output_text(4)
    claude_notebook.run(5)
    shown = claude_notebook.wait_for_output(5, "tick 11").inner_text()
    assert all(f"tick {number}" in shown for number in range(12))
    assert claude_notebook.page_errors == []


def test_undo_shows_asks_and_puts_every_byte_back(claude_notebook: NotebookPage, project: Path, cli_home: Path) -> None:
    (cli_home / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Edit", "Write"]}}))
    kept, new = project / "kept.txt", project / "new.txt"
    kept.write_bytes(BEFORE)
    turn = steps(
        [["Read", {"file_path": str(kept)}]],
        [["Edit", {"file_path": str(kept), "old_string": "second", "new_string": "another"}]],
        [["Write", {"file_path": str(new), "content": "new\n"}]],
        "Done.",
    )
    claude_notebook.open("undo.ipynb", [turn, "say:Some words.", "%claude undo", "%claude undo"])
    run(claude_notebook, 0, 1)
    claude_notebook.wait_for_output(0, "2 files changed: %claude undo")
    claude_notebook.screenshot("undo-footer")
    claude_notebook.run(2)
    claude_notebook.wait_for_output(2, selector=".ck-ask")
    claude_notebook.wait_for_output(2, "It did not exist before: it would be removed.")
    claude_notebook.screenshot("undo-light", whole=True)
    claude_notebook.theme("dark")
    claude_notebook.screenshot("undo-dark", whole=True)
    claude_notebook.theme("light")
    expect(claude_notebook.output(2).locator(".add")).to_contain_text("another")
    press(claude_notebook, 2, "Leave them")
    claude_notebook.wait_for_output(2, "Nothing was put back.")
    claude_notebook.wait_idle()
    assert b"another" in kept.read_bytes()
    claude_notebook.run(3)
    press(claude_notebook, 3, "Put them back")
    claude_notebook.wait_for_output(3, "Put back: kept.txt. Removed: new.txt.")
    claude_notebook.wait_idle()
    assert kept.read_bytes() == BEFORE
    assert not new.exists()
    assert WIDGET not in json.dumps(claude_notebook.save())
    claude_notebook.screenshot("undo-record", whole=True)
    assert claude_notebook.page_errors == []


def test_a_cell_run_again_goes_on_or_back_and_the_budget_ends_it(
    claude_notebook: NotebookPage, messages_api: MessagesApi
) -> None:
    claude_notebook.open("back.ipynb", ["say:one", "say:two", "say:three", "%claude budget 0.001", "say:four"])
    run(claude_notebook, 0, 1, 2, 1)
    claude_notebook.wait_for_output(1, "This cell was run before")
    assert "say:three" in sent(messages_api)
    claude_notebook.screenshot("rerun")
    claude_notebook.write(1, "%claude rewind\nsay:Two, otherwise.")
    run(claude_notebook, 1)
    claude_notebook.wait_for_output(1, "Went back to before this cell")
    assert "say:one" in sent(messages_api)
    assert "say:two" not in sent(messages_api)
    assert "say:three" not in sent(messages_api)
    asked = len(messages_api.requests)
    run(claude_notebook, 3, 4)
    expect(claude_notebook.output(4).locator(".trouble")).to_contain_text("This notebook has cost")
    assert len(messages_api.requests) == asked
    claude_notebook.screenshot("rewind", whole=True)
    assert claude_notebook.page_errors == []
