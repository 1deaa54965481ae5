"""The exact words of every command in every dialect, as each dialect's own examples have them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from protocol.replay import feed

from claude_kernel.errors import UsageError
from claude_kernel.protocol import DIALECTS, Allow, Answers, Connection, Decision, Deny, Filled, Prompt, find_dialect
from claude_kernel.protocol import events as ev

Json = dict[str, Any]
IMAGE = ev.Image("image/png", "iVBO")
IMAGE_BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}
RULE = {"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow", "destination": "session"}
ASKING = ["direct", "bridge", "jsonrpc", "indexed"]
"""The dialects with control messages."""


def read(line: bytes) -> Json:
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    message: Json = json.loads(line)
    return message


def test_there_are_five_dialects_each_under_its_own_name() -> None:
    assert list(DIALECTS) == ["direct", "bridge", "host-tools", "jsonrpc", "indexed"]
    assert all(find_dialect(name).name == name for name in DIALECTS)
    assert Connection().dialect is DIALECTS["direct"]


def test_an_unknown_dialect_is_named_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"no dialect 'latin'.*direct.*indexed"):
        find_dialect("latin")


# --- arguments ------------------------------------------------------------------------------------------------------

STREAM = {"--output-format=stream-json", "--input-format=stream-json", "--verbose"}
ARGUMENTS = {
    "direct": STREAM | {"--permission-prompt-tool=stdio", "--include-partial-messages"},
    "bridge": STREAM | {"--permission-prompt-tool=stdio"},
    "host-tools": STREAM | {"-p", "--dangerously-skip-permissions"},
    "jsonrpc": STREAM | {"--permission-prompt-tool=stdio"},
    "indexed": STREAM | {"--permission-prompt-tool=stdio"},
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_dialect_has_arguments_of_its_own(name: str) -> None:
    assert set(DIALECTS[name].arguments) == ARGUMENTS[name]


def test_only_the_bridge_passes_the_folder_and_only_host_tools_runs_tools() -> None:
    assert [name for name, dialect in DIALECTS.items() if dialect.passes_cwd] == ["bridge"]
    assert [name for name, dialect in DIALECTS.items() if dialect.host_runs_tools] == ["host-tools"]
    assert [name for name, dialect in DIALECTS.items() if not dialect.interrupts] == ["host-tools"]
    assert [name for name, dialect in DIALECTS.items() if not dialect.initialises] == ["host-tools", "indexed"]


# --- prompts --------------------------------------------------------------------------------------------------------

PROMPTS: dict[str, Json] = {
    "direct": {
        "type": "user",
        "session_id": "",
        "message": {"role": "user", "content": "Hello"},
        "parent_tool_use_id": None,
        "uuid": "p1",
    },
    "bridge": {"type": "session.create", "message": {"role": "user", "content": "Hello"}},
    "host-tools": {"type": "user", "message": {"role": "user", "content": "Hello"}},
    "jsonrpc": {
        "jsonrpc": "2.0",
        "id": "p1",
        "method": "run",
        "params": {"message": {"role": "user", "content": "Hello"}, "uuid": "p1"},
    },
    "indexed": {
        "type": "user",
        "session_id": "",
        "message": {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
        "parent_tool_use_id": None,
    },
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_prompt_is_written_in_each_dialects_words(name: str) -> None:
    assert read(Connection(DIALECTS[name]).send_prompt(Prompt(text="Hello", id="p1"))) == PROMPTS[name]


@pytest.mark.parametrize("name", DIALECTS)
def test_a_second_prompt_is_written_like_the_first_but_for_the_bridge(name: str) -> None:
    connection = Connection(DIALECTS[name])
    connection.send_prompt(Prompt(text="Hello"))
    expected = {**PROMPTS[name], "type": "session.send"} if name == "bridge" else PROMPTS[name]
    assert read(connection.send_prompt(Prompt(text="Hello", id="p1"))) == expected


@pytest.mark.parametrize("name", DIALECTS)
def test_images_come_before_the_text(name: str) -> None:
    message = read(Connection(DIALECTS[name]).send_prompt(Prompt(text="What is it?", images=(IMAGE,))))
    inner = message["params"] if name == "jsonrpc" else message
    assert inner["message"] == {"role": "user", "content": [IMAGE_BLOCK, {"type": "text", "text": "What is it?"}]}


def test_every_prompt_has_an_id_of_its_own() -> None:
    assert Prompt(text="x").id != Prompt(text="x").id


# --- requests -------------------------------------------------------------------------------------------------------

INITIALISE = {
    "system_prompt": "be brief",
    "append_system_prompt": "and kind",
    "mcp_servers": {},
    "agents": {},
    "hooks": {},
}
INITIALISE_CAMEL = {
    "systemPrompt": "be brief",
    "appendSystemPrompt": "and kind",
    "mcpServers": {},
    "agents": {},
    "hooks": {},
}
REQUESTS: list[tuple[str, Json]] = [
    ("set_model", {"model": None}),
    ("set_permission_mode", {"mode": "plan"}),
    ("rewind_files", {"user_message_id": "u", "dry_run": True}),
    ("get_context_usage", {}),
    ("get_usage", {}),
    ("list_models", {}),
    ("mcp_status", {}),
    ("mcp_reconnect", {"serverName": "s"}),
    ("mcp_toggle", {"serverName": "s", "enabled": False}),
    ("stop_task", {"task_id": "k"}),
]


def enveloped(name: str, request_id: str, subtype: str, fields: Json) -> Json:
    if name == "jsonrpc":
        return {"jsonrpc": "2.0", "id": request_id, "method": subtype, "params": fields}
    return {"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}}


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize(("subtype", "fields"), REQUESTS, ids=[subtype for subtype, _ in REQUESTS])
def test_a_request_carries_its_fields_as_given(name: str, subtype: str, fields: Json) -> None:
    request_id, line = Connection(DIALECTS[name]).request(subtype, **fields)
    assert read(line) == enveloped(name, request_id, subtype, fields)


@pytest.mark.parametrize("name", ASKING)
def test_initialise_is_spelled_as_each_dialect_spells_it(name: str) -> None:
    request_id, line = Connection(DIALECTS[name]).request("initialize", **INITIALISE)
    fields = INITIALISE if name == "bridge" else INITIALISE_CAMEL
    assert read(line) == enveloped(name, request_id, "initialize", fields)


@pytest.mark.parametrize("name", ASKING)
def test_an_interrupt_is_a_request_without_fields(name: str) -> None:
    request_id, line = Connection(DIALECTS[name]).interrupt()
    assert read(line) == enveloped(name, request_id, "interrupt", {})


# --- answers --------------------------------------------------------------------------------------------------------

BASH = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, "tool_use_id": "toolu_1"}
QUESTIONS = [
    {"question": "Go on?", "header": "Go", "options": [{"label": "Yes"}, {"label": "No"}], "multiSelect": False},
    {"question": "Which?", "header": "W", "options": [{"label": "A"}, {"label": "B"}], "multiSelect": True},
]
FORM = {
    "subtype": "can_use_tool",
    "tool_name": "AskUserQuestion",
    "input": {"questions": QUESTIONS},
    "tool_use_id": "toolu_1",
}
DIALOG = {"subtype": "elicitation", "mcp_server_name": "db", "message": "Which table?"}


def ask(name: str, request: Json) -> Connection:
    """A connection with the question `q1` open, asked as the dialect asks."""
    fields = {key: value for key, value in request.items() if key != "subtype"}
    row: Json = {"type": "control_request", "request_id": "q1", "request": request}
    asked = {
        "direct": row,
        "bridge": {**row, "type": "callback.request"},
        "jsonrpc": {"jsonrpc": "2.0", "id": "q1", "method": request["subtype"], "params": fields},
        "indexed": {"type": "control_request", "message": row},
    }[name]
    connection = Connection(DIALECTS[name])
    (event,) = feed(connection, asked)
    assert isinstance(event, ev.QuestionAsked)
    return connection


def replied(name: str, response: Json) -> Json:
    if name == "jsonrpc":
        return {"jsonrpc": "2.0", "id": "q1", "result": response}
    kind = "callback.response" if name == "bridge" else "control_response"
    return {"type": kind, "response": {"subtype": "success", "request_id": "q1", "response": response}}


CAMEL: list[tuple[str, Json, Decision, Json]] = [
    (
        "allow",
        BASH,
        Allow(),
        {"behavior": "allow", "updatedInput": {"command": "ls"}, "toolUseID": "toolu_1"},
    ),
    (
        "allow another input",
        BASH,
        Allow(input={"command": "ls -l"}),
        {"behavior": "allow", "updatedInput": {"command": "ls -l"}, "toolUseID": "toolu_1"},
    ),
    (
        "allow always",
        BASH,
        Allow(permissions=(RULE,)),
        {"behavior": "allow", "updatedInput": {"command": "ls"}, "updatedPermissions": [RULE], "toolUseID": "toolu_1"},
    ),
    (
        "allow where no tool call was named",
        {"subtype": "can_use_tool", "tool_name": "Bash"},
        Allow(),
        {"behavior": "allow", "updatedInput": {}},
    ),
    (
        "deny",
        BASH,
        Deny(reason="User declined this operation"),
        {"behavior": "deny", "message": "User declined this operation", "toolUseID": "toolu_1"},
    ),
    (
        "deny and stop",
        BASH,
        Deny(reason="Stop", stop=True),
        {"behavior": "deny", "message": "Stop", "interrupt": True, "toolUseID": "toolu_1"},
    ),
    ("fill in", DIALOG, Filled({"table": "users"}), {"action": "accept", "content": {"table": "users"}}),
    ("visit", DIALOG, Allow(), {"action": "accept", "content": {}}),
    ("decline", DIALOG, Deny(reason="no"), {"action": "decline"}),
]
SNAKE = {"updatedInput": "updated_input", "updatedPermissions": "updated_permissions", "toolUseID": "tool_use_id"}


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize(("title", "request_", "decision", "response"), CAMEL, ids=[title for title, *_ in CAMEL])
def test_a_decision_is_written_in_each_dialects_words(
    name: str, title: str, request_: Json, decision: Decision, response: Json
) -> None:
    if name == "bridge":
        response = {SNAKE.get(key, key): value for key, value in response.items()}
    assert read(ask(name, request_).answer("q1", decision)) == replied(name, response), title


ANSWERS = Answers({"Go on?": "Yes", "Which?": ["A", "B"]})
BY_TEXT = {"questions": QUESTIONS, "answers": {"Go on?": "Yes", "Which?": "A, B"}}
ANSWERED = {
    "direct": {"behavior": "allow", "updatedInput": BY_TEXT, "toolUseID": "toolu_1"},
    "bridge": {"behavior": "allow", "updated_input": BY_TEXT, "tool_use_id": "toolu_1"},
    "jsonrpc": {"behavior": "allow", "updatedInput": BY_TEXT, "toolUseID": "toolu_1"},
    "indexed": {
        "behavior": "allow",
        "updatedInput": {"answers": {"0": "Yes", "1": ["A", "B"]}},
        "toolUseID": "toolu_1",
    },
}


@pytest.mark.parametrize("name", ASKING)
def test_a_form_is_answered_by_text_or_in_the_indexed_dialect_by_index(name: str) -> None:
    assert read(ask(name, FORM).answer("q1", ANSWERS)) == replied(name, ANSWERED[name])


def test_by_index_an_unanswered_question_leaves_a_gap() -> None:
    answered = read(ask("indexed", FORM).answer("q1", Answers({"Which?": "B"})))
    assert answered["response"]["response"]["updatedInput"] == {"answers": {"1": "B"}}


@pytest.mark.parametrize("name", ASKING)
def test_an_answer_to_a_question_that_the_form_does_not_ask_is_refused_here(name: str) -> None:
    connection = ask(name, FORM)
    with pytest.raises(UsageError, match=r"no question '0'.*'Go on\?'"):
        connection.answer("q1", Answers({"0": "Yes"}))
    assert [question.id for question in connection.open_questions] == ["q1"]


@pytest.mark.parametrize("name", ASKING)
def test_a_tools_question_cannot_be_filled_in(name: str) -> None:
    with pytest.raises(UsageError, match="MCP server's dialog"):
        ask(name, BASH).answer("q1", Filled({}))


# --- replies and refusals -------------------------------------------------------------------------------------------

REFUSED: dict[str, Json] = {
    "direct": {"type": "control_response", "response": {"subtype": "error", "request_id": "q1", "error": "no"}},
    "bridge": {"type": "callback.response", "response": {"subtype": "error", "request_id": "q1", "error": "no"}},
    "jsonrpc": {"jsonrpc": "2.0", "id": "q1", "error": {"code": -32601, "message": "no"}},
    "indexed": {"type": "control_response", "response": {"subtype": "error", "request_id": "q1", "error": "no"}},
}
HOOK = {"type": "control_request", "request_id": "q1", "request": {"subtype": "hook_callback", "callback_id": "h"}}


@pytest.mark.parametrize("name", ASKING)
def test_a_call_is_replied_to_or_refused_in_each_dialects_words(name: str) -> None:
    connection = Connection(DIALECTS[name])
    feed(connection, HOOK)
    assert read(connection.reply("q1", {"continue": True})) == replied(name, {"continue": True})
    feed(connection, HOOK)
    assert read(connection.refuse("q1", "no")) == REFUSED[name]


# --- host-tools -----------------------------------------------------------------------------------------------------


def call(name: str, tool_input: Json) -> Connection:
    block = {"type": "tool_use", "id": "toolu_123", "name": name, "input": tool_input}
    connection = Connection(DIALECTS["host-tools"])
    connection.send_prompt(Prompt(text="x", id="p1"))
    row = {"type": "assistant", "message": {"id": "msg_1", "role": "assistant", "content": [block]}}
    events = feed(connection, row)
    assert [type(event) for event in events] == [ev.TurnStarted, ev.ToolStarted, ev.QuestionAsked]
    return connection


def tool_result(*content: Json, **more: Any) -> Json:
    block = {"tool_use_id": "toolu_123", "type": "tool_result", "content": list(content), **more}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def test_an_allowed_host_tool_puts_nothing_on_the_wire_until_it_has_run() -> None:
    connection = call("read_file", {"path": "foo.rs"})
    assert connection.answer("toolu_123", Allow()) == b""
    assert read(connection.send_tool_result("toolu_123", "file contents here")) == tool_result(
        {"type": "text", "text": "file contents here"}
    )


def test_a_host_tools_result_may_hold_images_and_may_be_an_error() -> None:
    connection = call("read_file", {})
    connection.answer("toolu_123", Allow())
    line = connection.send_tool_result("toolu_123", "boom", (IMAGE,), is_error=True)
    assert read(line) == tool_result({"type": "text", "text": "boom"}, IMAGE_BLOCK, is_error=True)


def test_a_denied_host_tool_has_failed_for_the_reason_given() -> None:
    line = call("Bash", {}).answer("toolu_123", Deny(reason="not here"))
    assert read(line) == tool_result({"type": "text", "text": "not here"}, is_error=True)


def test_a_host_tools_form_is_answered_by_its_result() -> None:
    line = call("AskUserQuestion", {"questions": QUESTIONS}).answer("toolu_123", ANSWERS)
    assert read(line) == tool_result({"type": "text", "text": "Go on? Yes\nWhich? A, B"})


def test_what_cannot_be_said_in_host_tools_is_an_error_of_the_caller() -> None:
    connection = call("Bash", {})
    for attempt in (connection.interrupt, lambda: connection.request("initialize")):
        with pytest.raises(UsageError, match="no control messages"):
            attempt()
    with pytest.raises(UsageError, match="answered by its result"):
        connection.answer("toolu_123", Filled({}))
    assert [question.id for question in connection.open_questions] == ["toolu_123"]


def test_an_interrupt_that_could_not_be_sent_did_not_happen() -> None:
    connection = call("Bash", {})
    with pytest.raises(UsageError):
        connection.interrupt()
    (ended,) = feed(connection, {"type": "result", "subtype": "error_during_execution"})
    assert isinstance(ended, ev.TurnEnded)
    assert ended.outcome is ev.Outcome.FAILED


@pytest.mark.parametrize("name", ASKING)
def test_only_a_host_sends_tool_results(name: str) -> None:
    with pytest.raises(UsageError, match=f"in the {name} dialect the CLI runs its tools itself"):
        Connection(DIALECTS[name]).send_tool_result("t", "x")


@pytest.mark.parametrize("subtype", ["can_use_tool", "hook_callback", "never_heard_of"])
def test_in_host_tools_every_control_request_is_refused_and_none_left_hanging(subtype: str) -> None:
    connection = Connection(DIALECTS["host-tools"])
    request = {"subtype": subtype, "tool_name": "Bash", "callback_id": "h"}
    assert feed(connection, {"type": "control_request", "request_id": "q1", "request": request}) == [
        ev.RequestRefused("q1", subtype)
    ]
    refusal = {"subtype": "error", "request_id": "q1", "error": f"Unsupported control request subtype: {subtype}"}
    assert read(connection.bytes_to_send()) == {"type": "control_response", "response": refusal}


def test_the_echo_of_a_result_that_this_side_sent_is_not_a_second_one() -> None:
    connection = call("Bash", {})
    connection.answer("toolu_123", Allow())
    echo = read(connection.send_tool_result("toolu_123", "done"))
    other = {"type": "tool_result", "tool_use_id": "theirs", "content": "ran inside"}
    echo["message"]["content"].append(other)
    assert feed(connection, echo) == [ev.ToolFinished("theirs", text="ran inside")]
