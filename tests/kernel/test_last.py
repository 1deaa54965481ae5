"""`%claude last` while a turn runs: it goes on in the cell that asks for it, as after a tab was closed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompts.person import Cell, Person
from support.kernels import Ran, running_kernel, write_spec, write_stock_spec
from support.messages_api import MessagesApi

pytestmark = pytest.mark.real_cli

ELSEWHERE = "This turn goes on in another cell."


@pytest.fixture
def notebook_env(kernel_env: dict[str, str], project: Path) -> dict[str, str]:
    return kernel_env | {"JPY_SESSION_NAME": str(project / "nb.ipynb")}


@pytest.fixture
def person(notebook_env: dict[str, str], project: Path, tmp_path: Path) -> Iterator[Person]:
    with running_kernel(write_spec(tmp_path / "jupyter"), notebook_env, project) as client:
        yield Person(client)


def ticks(ran: Ran) -> list[int]:
    return [int(number) for number in re.findall(r"tick (\d+)", ran.text)]


def shows(cell: Cell, words: str) -> bool:
    return any(words in json.dumps(message["content"]) for message in cell.messages)


def test_a_running_turn_moves_on_twice_and_no_word_is_lost_or_doubled(person: Person) -> None:
    first = person.run("slow:14")
    person.until(lambda: shows(first, "tick 2"))
    second = person.run("%claude last")
    ran = person.finish(first)
    assert ran.reply["status"] == "ok"
    assert ran.text.strip().endswith(ELSEWHERE)
    told = ticks(ran)
    assert told == list(range(len(told)))
    assert told[-1] >= 2

    person.until(lambda: shows(second, "tick 6"))
    third = person.run("%claude last")
    behind = person.run("say:behind")
    assert person.finish(second).text.strip().endswith(ELSEWHERE)
    ran = person.finish(third)
    assert ran.reply["status"] == "ok"
    assert ticks(ran) == list(range(14))
    assert "opus" in ran.text.splitlines()[-1]
    assert "behind" in person.finish(behind).text
    again = person.finish(person.run("%claude last"))
    assert "behind" in again.text
    assert "tick" not in again.text


def test_an_open_question_moves_and_is_answered_once(person: Person, project: Path, messages_api: MessagesApi) -> None:
    first = person.run(f"tool:Bash:{json.dumps({'command': 'echo ran >> ran.txt'})}")
    old = person.card(0)
    person.until(lambda: person.labels(old))
    button = person.find(old, "ButtonModel", person.labels(old)[0])
    second = person.run("%claude last")
    ran = person.finish(first)
    assert ran.reply["status"] == "ok"
    assert ran.text.strip().endswith(ELSEWHERE)
    assert "it is asked again in the cell that shows the turn now" in ran.text
    new = person.card(1)
    person.until(lambda: person.labels(new))
    assert person.is_gone(old)
    person.tell(button.id, {"method": "custom", "content": {"event": "click"}})  # a page that was asleep
    assert not (project / "ran.txt").exists()
    person.click(new, person.labels(new)[0])
    ran = person.finish(second)
    assert ran.reply["status"] == "ok"
    assert "asked again" not in ran.text
    assert "done:" in ran.text
    assert (project / "ran.txt").read_text() == "ran\n"
    results = [str(request["messages"][-1]).count("tool_result") for request in messages_api.requests]
    assert sum(results) >= 1


def test_a_cell_that_was_queued_before_shows_the_turn_to_its_end_and_then_its_own(person: Person) -> None:
    first = person.run("slow:8")
    person.until(lambda: shows(first, "tick 1"))
    queued, last = person.run("say:queued"), person.run("%claude last")
    assert person.finish(first).text.strip().endswith(ELSEWHERE)
    ran = person.finish(queued)
    assert ran.reply["status"] == "ok"
    assert ticks(ran) == list(range(8))
    assert ran.text.index("tick 7") < ran.text.index("queued")
    assert "queued" in person.finish(last).text


def test_stop_works_in_the_new_cell_and_a_new_kernel_still_has_the_turn(
    person: Person, notebook_env: dict[str, str], project: Path, tmp_path: Path
) -> None:
    nothing = person.finish(person.run("%claude last"))
    assert nothing.reply["status"] == "error"
    assert "nothing to show" in nothing.text.lower()
    first = person.run("slow:100")
    person.until(lambda: shows(first, "tick 1"))
    second = person.run("%claude last")
    person.finish(first)
    person.until(lambda: shows(second, "tick 3"))
    person.client.interrupt()
    ran = person.finish(second)
    assert "Interrupted." in ran.text
    shown = ticks(ran)
    assert shown == list(range(len(shown)))
    assert ticks(person.finish(person.run("%claude last"))) == shown

    person.run("slow:100")
    running = list(person.cells.values())[-1]
    person.until(lambda: shows(running, "tick 4"))
    person.client.manager.shutdown_kernel(now=False)
    with running_kernel(write_spec(tmp_path / "again"), notebook_env, project) as client:
        ran = client.run("%claude last")
        told = ticks(ran)
        assert told == list(range(len(told)))
        assert told[-1] >= 4


def test_the_undo_question_is_answered_by_typing_and_by_stopping(
    notebook_env: dict[str, str], project: Path, tmp_path: Path
) -> None:
    (project / "a.txt").write_text("before\n")
    reading = [["Read", {"file_path": str(project / "a.txt")}]]
    editing = [["Edit", {"file_path": str(project / "a.txt"), "old_string": "before", "new_string": "after"}]]
    environment = notebook_env | {"CLAUDE_KERNEL_MODE": "acceptEdits"}
    with running_kernel(write_spec(tmp_path / "jupyter"), environment, project) as client:
        typing = Person(client, sees_cards=False, types=True)
        assert typing.finish(typing.run(f"steps:{json.dumps([reading, editing])}")).reply["status"] == "ok"
        assert (project / "a.txt").read_text() == "after\n"
        cell = typing.run("%claude undo")
        typing.answer("Put them back", "n")
        assert "Nothing was put back" in typing.finish(cell).text
        cell = typing.run("%claude undo")
        typing.answer("Put them back", "y")
        assert "Put back: `a.txt`" in typing.finish(cell).text
        assert (project / "a.txt").read_text() == "before\n"

        clicking = Person(client)
        typing.finish(typing.run(f"steps:{json.dumps([reading, editing])}"))
        cell = clicking.run("%claude undo")
        card = clicking.card(0)
        clicking.until(lambda: clicking.labels(card))
        client.interrupt()
        ran = clicking.finish(cell)
        assert "The cell was stopped, so nothing was put back" in ran.text
        assert (project / "a.txt").read_text() == "after\n"

    # A new kernel asks whether to go on, once; typed here.
    with running_kernel(write_spec(tmp_path / "again"), environment, project) as client:
        typing = Person(client, sees_cards=False, types=True)
        cell = typing.run("say:hello again")
        typing.answer("Go on with it", "c")
        ran = typing.finish(cell)
        assert "Going on" in ran.text
        assert "| prompts |" in typing.finish(typing.run("%claude sessions")).text


def test_in_a_python_notebook_each_name_has_a_memory_of_its_own(
    notebook_env: dict[str, str], project: Path, tmp_path: Path, messages_api: MessagesApi
) -> None:
    spec = write_stock_spec(tmp_path / "jupyter")
    with running_kernel(spec, notebook_env, project, "python3") as client:
        client.run("%load_ext claude_kernel")
        assert "This cell was run" not in client.run("%claude say:walnut\n%claude say:second", cell_id="both").text
        client.run("%%claude --name other\nsay:pecan")
        assert "pecan" in client.run("%claude --name other last").text
        assert "second" in client.run("%claude last").text
        assert "This cell was run before" in client.run("%claude say:again", cell_id="both").text
    with running_kernel(spec, notebook_env | {"CLAUDE_KERNEL_RESUME": "always"}, project, "python3") as client:
        client.run("%load_ext claude_kernel")
        assert "again" in client.run("%claude last").text
        assert "Going on with this notebook's conversation (3 prompts" in client.run("%%claude\nsay:more").text
        assert "walnut" in str(messages_api.last_request())
        assert "(1 prompt" in client.run("%%claude --name other\nsay:more").text
        assert "walnut" not in str(messages_api.last_request())
        assert "pecan" in str(messages_api.last_request())
