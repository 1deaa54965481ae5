"""A person answers in the running cell: the kernel, the real CLI, and a client that clicks by comm message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prompts.person import WIDGET, Person
from support.kernels import Ran
from support.messages_api import MessagesApi
from support.model_script import find_prompt
from support.talk import wait_until

pytestmark = pytest.mark.real_cli

TOUCH = {"command": "touch a.txt && echo made", "description": "Make a file"}
COLOUR = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold", "preview": "<b>sea"}],
}
SIZES = {**COLOUR, "question": "Which sizes?", "header": "Sizes", "multiSelect": True}


def call(tool: str, **given: Any) -> str:
    return f"tool:{tool}:{json.dumps(given)}"


def errand(name: str) -> dict[str, Any]:
    """Not in the background: the cell is to wait for it."""
    return {
        "description": f"Errand {name}",
        "prompt": call("Bash", command=f"touch {name}.txt"),
        "subagent_type": "general-purpose",
        "run_in_background": False,
    }


def holds_no_widget(person: Person, ran: Ran) -> None:
    """What a notebook is left with, and what the front end still holds."""
    assert all(WIDGET not in output for output in ran.outputs)
    person.run("%claude mode")
    person.until(lambda: not person.models)


def test_a_person_allows_once_and_the_card_becomes_a_record(person: Person, project: Path) -> None:
    cell = person.run(call("Bash", **TOUCH))
    card = person.card()
    assert "Claude wants to run a command" in person.shown(card)
    assert "Make a file." in person.shown(card)
    assert not (project / "a.txt").exists()
    person.click(card, "Allow once")
    ran = person.finish(cell)
    assert ran.reply["status"] == "ok"
    assert (project / "a.txt").exists()
    assert "You allowed once" in ran.text
    assert "touch a.txt && echo made" in ran.text
    holds_no_widget(person, ran)


def test_a_denied_tool_leaves_no_effect_and_the_reason_reaches_claude(
    person: Person, project: Path, messages_api: MessagesApi
) -> None:
    cell = person.run(call("Bash", **TOUCH))
    card = person.card()
    person.type(person.find(card, "TextModel"), "use git mv instead, please")
    person.click(card, "Deny")
    ran = person.finish(cell)
    assert ran.reply["status"] == "ok"
    assert not (project / "a.txt").exists()
    assert "use git mv instead, please" in find_prompt(messages_api.last_request()).results
    assert "You denied" in ran.text
    holds_no_widget(person, ran)


def test_deny_and_stop_ends_the_turn(person: Person, project: Path) -> None:
    cell = person.run(call("Bash", **TOUCH))
    person.click(person.card(), "Deny and stop")
    ran = person.finish(cell)
    assert ran.reply["ename"] == "KeyboardInterrupt"
    assert not (project / "a.txt").exists()
    assert "You denied and stopped" in ran.text


def test_what_is_edited_is_what_runs(person: Person, project: Path) -> None:
    cell = person.run(call("Bash", **TOUCH))
    card = person.card()
    person.click(card, "Edit…")
    person.until(lambda: person.all(card, "TextareaModel"))
    box = person.find(card, "TextareaModel")
    assert box.state["value"] == TOUCH["command"]
    person.type(box, "touch edited.txt\necho 'two lines'")
    person.click(card, "Run this command")
    ran = person.finish(cell)
    assert [path.name for path in project.iterdir() if path.suffix == ".txt"] == ["edited.txt"]
    assert "two lines" in ran.text
    assert "as you edited it" in ran.text


def test_an_edited_input_that_is_no_json_is_shown_and_not_sent(person: Person, project: Path) -> None:
    path = project / "n.txt"
    cell = person.run(call("Write", file_path=str(path), content="one\n"))
    card = person.card()
    assert "wants to write n.txt" in person.shown(card)
    person.click(card, "Edit…")
    person.until(lambda: person.all(card, "TextareaModel"))
    box = person.find(card, "TextareaModel")
    person.type(box, box.state["value"] + "}")
    person.click(card, "Use this input")
    person.until(lambda: "not JSON" in person.shown(card))
    assert not path.exists()
    person.type(box, json.dumps({"file_path": str(path), "content": "two\n"}))
    person.click(card, "Use this input")
    person.finish(cell)
    assert path.read_text() == "two\n"


def test_always_allow_writes_the_rule_and_the_next_one_is_not_asked(person: Person, project: Path) -> None:
    cell = person.run(call("Bash", command="exit 3"))
    person.click(person.card(), "Always allow “exit 3”")
    ran = person.finish(cell)
    settings = json.loads((project / ".claude" / "settings.local.json").read_text())
    assert settings["permissions"]["allow"] == ["Bash(exit 3)"]
    assert "always, in this project" in ran.text
    person.finish(person.run(call("Bash", command="exit 3")))
    assert len(person.roots) == 1


def test_always_everywhere_is_behind_more_and_goes_to_the_users_settings(person: Person, cli_home: Path) -> None:
    cell = person.run(call("Bash", command="exit 4"))
    card = person.card()
    person.click(card, "More…")
    person.until(lambda: any("every project" in label for label in person.labels(card)))
    person.click(card, "in every project")
    person.finish(cell)
    settings = json.loads((cli_home / ".claude" / "settings.json").read_text())
    assert settings["permissions"]["allow"] == ["Bash(exit 4)"]


def test_allow_for_this_session_keeps_nothing_on_disk(person: Person, project: Path) -> None:
    cell = person.run(call("Bash", **TOUCH))
    person.click(person.card(), "this session")
    ran = person.finish(cell)
    assert "for this session" in ran.text
    assert "accept edits" in ran.text
    (project / "a.txt").unlink()
    person.finish(person.run(call("Bash", **TOUCH)))
    assert (project / "a.txt").exists()
    assert len(person.roots) == 1
    assert not (project / ".claude").exists()


def test_an_edit_is_shown_as_a_difference_to_the_file(person: Person, project: Path) -> None:
    path = project / "loader.py"
    path.write_text("import os\n\n\ndef load():\n    return 1\n")
    steps = [
        [["Read", {"file_path": str(path)}]],
        [["Edit", {"file_path": str(path), "old_string": "return 1", "new_string": "return 2"}]],
    ]
    cell = person.run(f"steps:{json.dumps(steps)}")
    card = person.card()
    shown = person.shown(card)
    assert "wants to edit loader.py" in shown
    assert '<span class="n">5 − </span>' in shown
    assert '<span class="n">5 + </span>' in shown
    person.click(card, "Accept edits this session")
    person.finish(cell)
    assert "return 2" in path.read_text()


def test_questions_are_one_form_and_other_takes_own_words(person: Person, messages_api: MessagesApi) -> None:
    cell = person.run(call("AskUserQuestion", questions=[COLOUR, SIZES]))
    card = person.card()
    assert "&lt;b&gt;sea" in person.shown(card)
    submit = person.find(card, "ButtonModel", "Answer")
    assert submit.state["disabled"]
    radio = person.find(card, "RadioButtonsModel")
    assert radio.state["_options_labels"] == ["Red – warm", "Blue – cold", "Other…"]
    other, several, _reason = person.all(card, "TextModel")
    person.type(other, "teal, like the sea")
    person.until(lambda: radio.state["index"] == 2)
    assert submit.state["disabled"]
    person.set(person.all(card, "CheckboxModel")[1], value=True)
    person.type(several, "and huge")
    person.until(lambda: not submit.state["disabled"])
    person.click(card, "Answer")
    ran = person.finish(cell)
    result = find_prompt(messages_api.last_request()).result
    assert '"Which colour?"="teal, like the sea"' in result
    assert "Blue, and huge" in result
    assert "Which colour? → teal, like the sea" in ran.text
    holds_no_widget(person, ran)


def test_a_choice_is_answered_by_its_label(person: Person, messages_api: MessagesApi) -> None:
    cell = person.run(call("AskUserQuestion", questions=[COLOUR]))
    card = person.card()
    person.set(person.find(card, "RadioButtonsModel"), index=1)
    person.until(lambda: not person.find(card, "ButtonModel", "Answer").state["disabled"])
    person.click(card, "Answer")
    person.finish(cell)
    assert '"Which colour?"="Blue"' in find_prompt(messages_api.last_request()).result


def test_a_form_can_be_declined_with_a_reason(person: Person, messages_api: MessagesApi) -> None:
    cell = person.run(call("AskUserQuestion", questions=[COLOUR]))
    card = person.card()
    person.type(person.all(card, "TextModel")[-1], "I would rather not say")
    person.click(card, "Decline")
    ran = person.finish(cell)
    assert "I would rather not say" in find_prompt(messages_api.last_request()).result
    assert "You declined to answer" in ran.text


def test_a_plan_is_sent_back_and_then_approved(person: Person, messages_api: MessagesApi) -> None:
    person.finish(person.run("%claude mode plan"))
    cell = person.run(call("ExitPlanMode", plan="# The plan\n1. do it **well**"))
    card = person.card()
    assert "Claude has a plan" in person.shown(card)
    assert "<strong>well</strong>" in person.shown(card)
    assert person.labels(card)[:2] == ["Approve, ask for each edit", "Approve, accept edits"]
    person.type(person.find(card, "TextModel"), "also write tests")
    person.click(card, "Keep planning")
    ran = person.finish(cell)
    assert "also write tests" in find_prompt(messages_api.last_request()).result
    assert "You sent the plan back" in ran.text
    cell = person.run(call("ExitPlanMode", plan="# The plan\n1. test it"))
    person.click(person.card(1), "Approve, accept edits")
    ran = person.finish(cell)
    assert "You approved the plan" in ran.text
    assert "User has approved" in find_prompt(messages_api.last_request()).result
    cell = person.run("say:and now")
    person.finish(cell)
    assert "acceptEdits" in person.finish(person.run("%claude mode")).text


def test_two_agents_ask_at_once_and_are_answered_in_any_order(person: Person, project: Path) -> None:
    cell = person.run(f"tools:{json.dumps([['Agent', errand(name)] for name in ('one', 'two')])}")
    cards = [person.card(0), person.card(1)]
    by_name = {name: card for card in cards for name in ("one", "two") if f"Errand {name}" in person.shown(card)}
    assert set(by_name) == {"one", "two"}
    assert "An agent (Errand two) wants to run a command" in person.shown(by_name["two"])
    person.click(by_name["two"], "Allow once")
    person.until(lambda: by_name["two"] not in person.models)
    assert by_name["one"] in person.models
    person.click(by_name["one"], "Deny")
    ran = person.finish(cell)
    assert (project / "two.txt").exists()
    assert not (project / "one.txt").exists()
    assert "asked by Errand two" in ran.text
    holds_no_widget(person, ran)


def test_an_interrupt_takes_the_question_back_and_says_so(person: Person, project: Path) -> None:
    cell = person.run(call("Bash", **TOUCH))
    card = person.card()
    button = person.find(card, "ButtonModel", "Allow once")
    person.client.interrupt()
    ran = person.finish(cell)
    assert ran.reply["ename"] == "KeyboardInterrupt"
    assert "No longer asked (" in ran.text
    holds_no_widget(person, ran)
    person.tell(button.id, {"method": "custom", "content": {"event": "click"}})
    assert "still here" in person.finish(person.run("say:still here")).text
    assert not (project / "a.txt").exists()


def test_a_restart_closes_the_card(person: Person, project: Path) -> None:
    cell = person.run(call("Bash", **TOUCH))
    person.card()
    person.client.kernel.shutdown(restart=True)
    person.until(lambda: not person.models)
    person.until(lambda: "No longer asked" in Ran({}, cell.messages).text)
    assert all(WIDGET not in output for output in Ran({}, cell.messages).outputs)
    assert not (project / "a.txt").exists()


def test_a_second_cell_waits_its_turn_behind_a_question(person: Person) -> None:
    first = person.run(call("Bash", **TOUCH))
    second = person.run("say:I am second")
    card = person.card()
    assert not second.messages
    person.click(card, "Allow once")
    assert "done: made" in person.finish(first).text
    assert "I am second" in person.finish(second).text


_DIALOG = """%%python
from claude_kernel.kernel import KernelPaper
from claude_kernel.prompts import Scene
from claude_kernel.protocol import events
from claude_kernel.screen import Screen

kernel = get_ipython().kernel
schema = {schema}
dialog = events.Dialog("weather", "Where are you?", schema, "{url}")
question = events.Question(id="q", tool_name="elicitation", input={{}}, needs_person=True, dialog=dialog)
screen = Screen(KernelPaper(kernel))
screen.begin()
print(await kernel.conversation.ask_person(question, screen, Scene()))
screen.finish(None, last=[], interrupted=False)
"""


def test_the_form_of_an_mcp_server_is_filled_in(person: Person) -> None:
    schema = {
        "properties": {
            "city": {"type": "string", "title": "City"},
            "days": {"type": "integer"},
            "unit": {"type": "string", "enum": ["C", "F"]},
            "rain": {"type": "boolean", "title": "Rain too"},
        },
        "required": ["city", "days"],
    }
    cell = person.run(_DIALOG.format(schema=schema, url=""))
    card = person.card()
    assert "weather asks" in person.shown(card)
    city, days, _reason = person.all(card, "TextModel")
    person.type(city, "Oslo")
    person.click(card, "Send")
    person.until(lambda: "days is missing" in person.shown(card))
    person.type(days, "many")
    person.click(card, "Send")
    person.until(lambda: "whole number" in person.shown(card))
    person.type(days, "3")
    person.set(person.find(card, "DropdownModel"), index=1)
    person.set(person.find(card, "CheckboxModel"), value=True)
    person.click(card, "Send")
    ran = person.finish(cell)
    assert "Filled(content={'city': 'Oslo', 'days': 3, 'unit': 'F', 'rain': True})" in ran.stream
    holds_no_widget(person, ran)


def test_a_page_to_visit_is_named_and_confirmed(person: Person) -> None:
    cell = person.run(_DIALOG.format(schema={}, url="https://example.com/login"))
    card = person.card()
    assert "https://example.com/login" in person.shown(card)
    person.click(card, "I have visited the page")
    assert "Allow(" in person.finish(cell).stream


class Gate:
    """A command that Claude may run unasked, and that ends when the test opens it."""

    def __init__(self, project: Path, own_folder: Path) -> None:
        self.call = ("Bash", {"command": "./gate"})
        self._open = project / "open"
        script = project / "gate"
        script.write_text("#!/bin/sh\nuntil [ -e open ]; do sleep 0.05; done\n")
        script.chmod(0o755)
        own_folder.mkdir(parents=True, exist_ok=True)
        allowed = {"permissions": {"allow": ["Bash(./gate)"]}}
        (own_folder / "settings.json").write_text(json.dumps(allowed))

    def open(self) -> None:
        self._open.touch()


@pytest.fixture
def gate(project: Path, cli_env: dict[str, str]) -> Gate:
    """To be asked for before `person`: the CLI reads its settings when it starts."""
    return Gate(project, Path(cli_env["CLAUDE_CONFIG_DIR"]))


def steps(*rounds: tuple[str, dict[str, Any]]) -> str:
    return f"steps:{json.dumps([[round_] for round_ in rounds])}"


def far_errand(*before: tuple[str, dict[str, Any]]) -> tuple[str, dict[str, Any]]:
    """An agent in the background, which does this before it asks."""
    touch = ("Bash", {"command": "touch far.txt"})
    return "Agent", errand("far") | {"prompt": steps(*before, touch), "run_in_background": True}


def test_the_cell_waits_for_a_question_of_an_agent_in_the_background(gate: Gate, person: Person, project: Path) -> None:
    cell = person.run(steps(far_errand(), gate.call))
    card = person.card()
    gate.open()
    person.until(lambda: "done: " in Ran({}, cell.messages).html)
    assert not cell.idle
    person.click(card, "Allow once")
    ran = person.finish(cell)
    assert "You allowed once" in ran.text
    assert wait_until((project / "far.txt").exists)


def test_a_question_of_an_agent_in_the_background_can_be_stopped(gate: Gate, person: Person, project: Path) -> None:
    cell = person.run(steps(far_errand(), gate.call))
    person.card()
    gate.open()
    person.until(lambda: "done: " in Ran({}, cell.messages).html)
    person.client.interrupt()
    ran = person.finish(cell)
    assert "No longer asked" in ran.text
    assert not (project / "far.txt").exists()
    holds_no_widget(person, ran)


def test_an_agent_that_asks_when_no_cell_runs_says_so_and_is_answered_in_the_next(
    gate: Gate, person: Person, project: Path
) -> None:
    first = person.run(steps(far_errand(gate.call)))
    person.finish(first)
    gate.open()
    person.until(lambda: any("asks you: run any cell to answer" in update for update in person.updates))
    assert not person.roots
    second = person.run("say:hello")
    person.click(person.card(), "Allow once")
    ran = person.finish(second)
    assert "You allowed once" in ran.text
    assert "hello" in ran.text
    assert wait_until((project / "far.txt").exists)
