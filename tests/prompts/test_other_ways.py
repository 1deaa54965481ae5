"""People without buttons, cells without people, and those who would answer in a person's place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from prompts.person import WIDGET, Person
from support.kernels import running_kernel, write_spec
from support.messages_api import MessagesApi
from support.model_script import find_prompt

pytestmark = pytest.mark.real_cli

TOUCH = {"command": "touch a.txt && echo made"}
CLICK = {"method": "custom", "content": {"event": "click"}}
COLOUR = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}
SIZES = {**COLOUR, "question": "Which sizes?", "header": "Sizes", "multiSelect": True}


def call(tool: str, **given: Any) -> str:
    return f"tool:{tool}:{json.dumps(given)}"


@pytest.fixture
def typist(kernel_env: dict[str, str], project: Path, tmp_path: Path) -> Iterator[Person]:
    """At a front end that shows no widgets but has an input box."""
    with running_kernel(write_spec(tmp_path / "jupyter"), kernel_env, project) as client:
        yield Person(client, sees_cards=False, types=True)


@pytest.fixture
def nobody(kernel_env: dict[str, str], project: Path, tmp_path: Path) -> Iterator[Person]:
    with running_kernel(write_spec(tmp_path / "jupyter"), kernel_env, project) as client:
        yield Person(client, sees_cards=False)


# --- typed input ------------------------------------------------------------------------------------------------------


def test_a_typist_is_asked_once_the_card_is_gone(typist: Person, project: Path) -> None:
    cell = typist.run(call("Bash", **TOUCH))
    prompt = typist.answer("Allow?", "y")
    assert "[y]es once, [s]ession, [a]lways here" in prompt
    ran = typist.finish(cell)
    assert not typist.models
    assert typist.roots
    assert (project / "a.txt").exists()
    assert "You allowed once" in ran.text
    assert all(WIDGET not in output for output in ran.outputs)


@pytest.mark.parametrize("typed", ["", "n", "no", "n use git mv instead", "yes, but in a folder", "ja"])
def test_only_a_clear_yes_is_a_yes(typist: Person, project: Path, messages_api: MessagesApi, typed: str) -> None:
    typist.finish(typist.run("%claude mode"))
    cell = typist.run(call("Bash", **TOUCH), cell_id=None)
    typist.answer("Allow?", typed)
    if typed[:1] in ("y", "j"):
        typist.answer("Allow?", "n because")
    typist.finish(cell)
    assert not (project / "a.txt").exists()
    if typed.startswith("n use"):
        assert find_prompt(messages_api.last_request()).result == "use git mv instead"


def test_a_typist_edits_the_command(typist: Person, project: Path) -> None:
    cell = typist.run(call("Bash", **TOUCH), cell_id=None)
    typist.answer("Allow?", "e")
    typist.answer("Command to run instead", "touch typed.txt")
    ran = typist.finish(cell)
    assert (project / "typed.txt").exists()
    assert not (project / "a.txt").exists()
    assert "as you edited it" in ran.stream


def test_a_typist_answers_questions_one_after_another(typist: Person, messages_api: MessagesApi) -> None:
    cell = typist.run(call("AskUserQuestion", questions=[COLOUR, SIZES]), cell_id=None)
    typist.answer("Colour", "2")
    typist.answer("Sizes", "1, 2, huge")
    typist.finish(cell)
    result = find_prompt(messages_api.last_request()).result
    assert '"Which colour?"="Blue"' in result
    assert "Red, Blue, huge" in result


def test_a_typist_approves_a_plan(typist: Person) -> None:
    typist.finish(typist.run("%claude mode plan", cell_id=None))
    cell = typist.run(call("ExitPlanMode", plan="# The plan"), cell_id=None)
    typist.answer("Approve?", "y")
    assert "You approved the plan" in typist.finish(cell).stream


def test_an_interrupt_takes_a_typed_question_back(typist: Person, project: Path) -> None:
    cell = typist.run(call("Bash", **TOUCH), cell_id=None)
    typist.client.kernel.get_stdin_msg(timeout=20)
    typist.client.interrupt()
    ran = typist.finish(cell)
    assert ran.reply["ename"] == "KeyboardInterrupt"
    assert "No longer asked" in ran.stream
    typist.client.kernel.input("y")  # what was typed for the question that is gone
    cell = typist.run(call("Bash", **TOUCH), cell_id=None)
    typist.answer("Allow?", "n")
    typist.finish(cell)
    assert not (project / "a.txt").exists()


# --- nobody -----------------------------------------------------------------------------------------------------------


def test_where_nobody_can_be_asked_the_cell_fails_and_names_the_setting(nobody: Person, project: Path) -> None:
    ran = nobody.finish(nobody.run(call("Bash", command="npm test"), cell_id=None))
    assert ran.reply["ename"] == "PermissionNeeded"
    assert "Bash" in ran.reply["evalue"]
    assert "Bash(npm test *)" in ran.text
    assert "permissions.allow" in ran.text
    assert ran.of("error")
    assert not nobody.models
    ran = nobody.finish(nobody.run(call("Write", file_path=str(project / "n.txt"), content="x")))
    assert "%claude mode acceptEdits" in ran.text
    assert not (project / "n.txt").exists()
    assert nobody.finish(nobody.run("say:the next cell works")).reply["status"] == "ok"


@pytest.mark.parametrize("tool", ["AskUserQuestion", "ExitPlanMode"])
def test_what_only_a_person_may_answer_stops_the_turn(nobody: Person, messages_api: MessagesApi, tool: str) -> None:
    given: dict[str, Any] = {"questions": [COLOUR]} if tool == "AskUserQuestion" else {"plan": "# Plan"}
    nobody.finish(nobody.run("%claude mode plan" if tool == "ExitPlanMode" else "%claude mode acceptEdits"))
    ran = nobody.finish(nobody.run(call(tool, **given)))
    assert ran.reply["ename"] == "PermissionNeeded"
    assert tool in ran.reply["evalue"]
    assert "approved" not in json.dumps(messages_api.last_request()["messages"])


def test_nbconvert_exits_with_an_error_that_names_the_tool(
    kernel_env: dict[str, str], project: Path, tmp_path: Path
) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(call("Bash", **TOUCH)), nbformat.v4.new_code_cell("say:never")],
        metadata={"kernelspec": {"name": "claude", "display_name": "Claude", "language": "markdown"}},
    )
    nbformat.write(notebook, str(project / "n.ipynb"))
    env = kernel_env | {
        "JUPYTER_PATH": str(write_spec(tmp_path / "jupyter")),
        "PYTHONPATH": str(Path(__file__).parent.parent.parent),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kernel_env['PATH']}",
    }
    command = [sys.executable, "-m", "nbconvert", "--execute", "--to=notebook", "n.ipynb"]
    done = subprocess.run(command, env=env, cwd=project, capture_output=True, text=True, timeout=90)
    assert done.returncode != 0
    assert "PermissionNeeded" in done.stderr
    assert "Bash" in done.stderr
    assert not (project / "a.txt").exists()


# --- those who would answer in a person's place -----------------------------------------------------------------------


def test_no_message_but_a_persons_click_gets_through(person: Person, project: Path) -> None:
    cell = person.run(call("Bash", **TOUCH))
    first = person.card()
    allow = person.find(first, "ButtonModel", "Allow once")
    person.click(first, "Deny")
    person.tell(allow.id, CLICK)  # at once, while the card may still stand
    person.until(lambda: first not in person.models)
    person.tell(allow.id, CLICK)  # for a request that is closed
    ran = person.finish(cell)
    assert "You denied" in ran.text
    assert not (project / "a.txt").exists()

    cell = person.run(call("Bash", **TOUCH))
    second = person.card(1)
    wrong: list[tuple[str, Any]] = [
        (allow.id, CLICK),  # replayed: the button of the first request
        ("0" * 32, CLICK),  # an id that never was
        (second, CLICK),  # something that is no button
        (person.find(second, "HTMLModel").id, {"method": "update", "state": {"value": "<b>forged"}}),
    ]
    button = person.find(second, "ButtonModel", "Allow once").id
    shapes: list[Any] = [
        None,
        [],
        "click",
        {},
        {"method": "custom"},
        {"method": "custom", "content": "click"},
        {"method": "custom", "content": {"event": ["click"]}},
        {"method": "custom", "content": {"event": "click", "decision": "allow"}},
        {"method": "custom", "content": {"event": "submit"}},
        {"method": "update", "state": {"description": "Deny"}},
        {"method": "update", "state": [["_dom_classes", []]]},
        {"method": "allow", "content": {"event": "click"}},
    ]
    for model_id, told in [*wrong, *((button, shape) for shape in shapes)]:
        person.tell(model_id, told)
    person.click(second, "Deny")
    ran = person.finish(cell)
    assert "You denied" in ran.text
    assert not (project / "a.txt").exists()
    assert not ran.of("error")
    assert [content["text"] for content in ran.of("stream")] == [f"No such comm: {'0' * 32}\n"]
    logged = person.finish(person.run("%claude log")).text
    assert logged.count("ignored a message that no") == 2 + len(shapes)
    # ipykernel looks a comm up more than once for a message, so this is no count
    assert "ignored a message to a card that is closed" in logged


def test_an_incomplete_form_cannot_be_forced(person: Person, messages_api: MessagesApi) -> None:
    cell = person.run(call("AskUserQuestion", questions=[COLOUR, SIZES]))
    card = person.card()
    person.click(card, "Answer")  # it is disabled: no honest front end sends this
    person.set(person.find(card, "RadioButtonsModel"), index=7)
    person.set(person.find(card, "ButtonModel", "Answer"), disabled=False)
    person.click(card, "Answer")
    person.type(person.all(card, "TextModel")[-1], "no thanks")
    person.click(card, "Decline")
    person.finish(cell)
    assert find_prompt(messages_api.last_request()).result == "no thanks"


def test_the_way_to_ask_can_be_chosen(nobody: Person, project: Path) -> None:
    cell = nobody.run("%%python\nget_ipython().kernel.conversation.ask_person.way = 'never'")
    assert nobody.finish(cell).reply["status"] == "ok"
    ran = nobody.finish(nobody.run(call("Bash", **TOUCH), allow_stdin=True))
    assert ran.reply["ename"] == "PermissionNeeded"
    assert not nobody.roots
    assert not (project / "a.txt").exists()
