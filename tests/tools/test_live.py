"""Claude in the live namespace, for the kernel and for the magic: a plain client, the real CLI, the loopback API."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from support.kernels import Ran
from support.messages_api import MessagesApi
from support.model_script import find_prompt
from tools.conftest import Face

pytestmark = pytest.mark.real_cli

RUN_PYTHON = "mcp__notebook__run_python"


def call(tool: str, **given: Any) -> str:
    return f"tool:mcp__notebook__{tool}:{json.dumps(given)}"


def told(api: MessagesApi) -> str:
    """What the last tool said to the model."""
    return find_prompt(api.last_request()).result


def allow(face: Face, text: str) -> Ran:
    cell = face.person.run(face.prompt(text))
    face.person.click(face.person.card(), "Allow once")
    return face.person.finish(cell)


def test_a_variable_is_described_without_asking(face: Face, messages_api: MessagesApi) -> None:
    face.person.client.run(face.python("ages = {'ann': 41, 'bob': 36}"))
    ran = face.person.client.run(face.prompt(call("inspect_variable", name="ages")))
    assert ran.reply["status"] == "ok"
    assert "'ann': 41" in told(messages_api)
    assert not face.person.roots


def test_code_runs_in_the_namespace_and_its_output_is_shown_and_told(face: Face, messages_api: MessagesApi) -> None:
    face.person.client.run(face.python("x = 20"))
    code = "y = x + 1\nprint('printed', y)\ny * 2"
    cell = face.person.run(face.prompt(call("run_python", code=code)))
    card = face.person.card()
    assert "wants to run Python in this notebook" in face.person.shown(card)
    assert "Edit…" in face.person.labels(card)
    face.person.click(card, "Allow once")
    ran = face.person.finish(cell)
    assert ran.reply["status"] == "ok"
    assert "printed 21" in ran.stream
    assert [content["data"]["text/plain"] for content in ran.of("execute_result")] == ["42"]
    assert "printed 21\n42" in told(messages_api)
    after = face.person.client.run(face.python("print(y)"))
    assert after.stream.strip() == "21"


def test_what_is_edited_is_what_runs(face: Face) -> None:
    cell = face.person.run(face.prompt(call("run_python", code="z = 1")))
    card = face.person.card()
    face.person.click(card, "Edit…")
    face.person.until(lambda: face.person.all(card, "TextareaModel"))
    face.person.type(face.person.find(card, "TextareaModel"), "z = 'mine'")
    face.person.click(card, "Run this code")
    face.person.finish(cell)
    assert face.person.client.run(face.python("print(z)")).stream.strip() == "mine"


def test_an_exception_comes_back_as_an_error_and_the_cell_goes_on(face: Face, messages_api: MessagesApi) -> None:
    ran = allow(face, call("run_python", code="1 / 0"))
    assert ran.reply["status"] == "ok"
    assert "ZeroDivisionError" in ran.stream
    assert not ran.of("error")
    results = [
        block
        for message in messages_api.last_request()["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block.get("type") == "tool_result"
    ]
    assert results[-1]["is_error"] is True
    assert "ZeroDivisionError" in told(messages_api)


def test_a_plot_is_in_the_notebook_and_goes_to_the_model_as_an_image(face: Face, messages_api: MessagesApi) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()"
    ran = allow(face, "steps:" + json.dumps([[[RUN_PYTHON, {"code": "%matplotlib inline\n" + code}]], "drawn"]))
    shown = [content for content in ran.of("display_data") if "image/png" in content["data"]]
    assert len(shown) == 1
    assert "[image]" in told(messages_api)


def test_output_stands_between_what_was_said_before_and_after(face: Face) -> None:
    face.person.client.run(face.prompt("say:an earlier cell, which started the CLI"))
    script = [["Before it.", [RUN_PYTHON, {"code": "print('in between')"}]], "After it."]
    cell = face.person.run(face.prompt("steps:" + json.dumps(script)))
    face.person.click(face.person.card(), "Allow once")
    ran = face.person.finish(cell)
    order: list[str] = []
    places: dict[str, int] = {}
    for message in ran.messages:
        content = message["content"]
        if message["msg_type"] == "stream":
            order.append(content["text"])
        elif message["msg_type"] in ("display_data", "update_display_data"):
            display_id = content["transient"]["display_id"]
            if display_id not in places:
                places[display_id] = len(order)
                order.append("")
            order[places[display_id]] = content["data"].get("text/plain", "")
    page = "\n".join(order)
    assert page.index("Before it.") < page.index("in between") < page.index("After it.")


def test_stop_ends_the_code_that_runs_and_the_next_cell_works(face: Face) -> None:
    for code in ("import time\ntime.sleep(60)", "import asyncio\nawait asyncio.sleep(60)"):
        cell = face.person.run(face.prompt(call("run_python", code=f"print('begun')\n{code}")))
        face.person.click(face.person.card(len(face.person.roots)), "Allow once")
        face.person.until(lambda cell=cell: "begun" in Ran({}, cell.messages).stream)  # type: ignore[misc]
        began = time.monotonic()
        face.person.client.interrupt()
        ran = face.person.finish(cell)
        assert time.monotonic() - began < 10
        assert ran.reply["status"] == "error"
        assert "KeyboardInterrupt" in ran.reply["ename"] or "Interrupted" in ran.reply["ename"]
    after = face.person.client.run(face.prompt("say:still here"))
    assert "still here" in after.text


@pytest.mark.parametrize("pause", [0, 0.01, 0.05])
def test_a_stop_just_before_the_code_starts_is_not_lost(face: Face, pause: float) -> None:
    cell = face.person.run(face.prompt(call("run_python", code="import time\ntime.sleep(1000)")))
    face.person.click(face.person.card(), "Allow once")
    time.sleep(pause)
    face.person.client.interrupt()
    assert face.person.finish(cell).reply["status"] == "error"
    assert "still here" in face.person.client.run(face.prompt("say:still here")).text


def test_a_new_cell_is_handed_to_the_front_end_and_not_run(face: Face) -> None:
    ran = face.person.client.run(face.prompt(call("add_cell", source="made = 1")))
    (payload,) = ran.reply["payload"]
    assert payload["source"] == "set_next_input"
    assert payload["replace"] is False
    assert payload["text"] == face.python("made = 1")
    missing = face.person.client.run(face.python("print('made' in globals())"))
    assert missing.stream.strip() == "False"


def test_what_is_private_is_not_told(face: Face, messages_api: MessagesApi) -> None:
    face.person.client.run(face.python("diary = 'dear diary, so long'\napi_key = 'hunter2-hunter2'"))
    face.person.client.run("%claude private diary")
    face.person.client.run(face.prompt(call("list_variables")))
    listed = told(messages_api)
    assert "diary: private" in listed
    assert "hunter2" not in listed
    assert "dear" not in listed
    face.person.client.run(face.prompt(call("inspect_variable", name="diary")))
    assert "is private" in told(messages_api)
    assert "dear" not in told(messages_api)


def test_the_cells_so_far_can_be_read(face: Face, messages_api: MessagesApi) -> None:
    face.person.client.run(face.python("print('a line of output')\n6 * 7"))
    face.person.client.run(face.prompt(call("read_cells")))
    read = told(messages_api)
    assert "6 * 7" in read
    assert "a line of output" in read
    assert "42" in read


def test_claude_knows_that_it_is_in_a_notebook(face: Face, messages_api: MessagesApi) -> None:
    face.person.client.run(face.prompt("say:hello"))
    system = json.dumps(messages_api.last_request()["system"])
    assert "You are inside a Jupyter notebook" in system
    assert "Never edit the .ipynb file" in system
