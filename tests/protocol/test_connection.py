"""One process's side of the conversation: its state, rule by rule."""

from __future__ import annotations

import json
from typing import Any

import pytest
from protocol.replay import feed, to_line
from protocol.rows import FOREIGN, Json, answer_row, asked, ends, prompted, result, text_row, turns

from claude_kernel.errors import QuestionClosed
from claude_kernel.protocol import DIALECTS, Allow, Connection, Deny
from claude_kernel.protocol import events as ev
from claude_kernel.protocol.connection import encode_line
from claude_kernel.protocol.events import Outcome

# --- one line, always -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "two\nlines\r\nand more\r",
        "\u2028 \u2029 \u0085 \x0b \x0c \x00",
        "lone \ud800 surrogate \udfff",
        "reversed \ude42\ud83d pair",
        "🙂 東京",
        "\\n \" ' </script>",
        "",
    ],
    ids=ascii,
)
def test_a_message_is_exactly_one_line(text: str) -> None:
    line = encode_line({"text": text, text: [{"deep": text}]})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert b"\r" not in line
    readable = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert json.loads(line.decode("utf-8")) == {"text": readable, readable: [{"deep": readable}]}


# --- lines that are no rows -----------------------------------------------------------------------------------------


def test_blank_lines_are_ignored() -> None:
    assert Connection().receive_data(b"\n  \n\r\n\t\n") == []


def test_a_line_that_is_not_json_is_reported_and_skipped() -> None:
    connection = Connection()
    junk = b"npm WARN deprecated " + b"\xff" * 500
    dropped, suggested = connection.receive_data(
        junk + b"\n" + to_line({"type": "prompt_suggestion", "suggestion": "s"})
    )
    assert isinstance(dropped, ev.LineDropped)
    assert dropped.reason.startswith("not a JSON object: ")
    assert dropped.size == 520
    assert dropped.excerpt == "npm WARN deprecated " + "\ufffd" * 180
    assert suggested == ev.PromptSuggested("s")


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_a_line_over_the_limit_costs_that_message_only(size: int) -> None:
    connection = Connection(line_limit=100)
    long = to_line({"type": "prompt_suggestion", "suggestion": "x" * 1000})
    data = long + to_line({"type": "prompt_suggestion", "suggestion": "s"})
    events = [
        event for start in range(0, len(data), size) for event in connection.receive_data(data[start : start + size])
    ]
    assert events == [
        ev.LineDropped("longer than the line limit", len(long) - 1, long[:200].decode()),
        ev.PromptSuggested("s"),
    ]


# --- unknown things -------------------------------------------------------------------------------------------------


def test_an_unknown_type_or_system_subtype_is_kept_and_stops_nothing() -> None:
    connection = prompted("a")
    unknown = {"type": "hologram", "beam": [1]}
    first, second, *rest = feed(connection, unknown, {"type": "system", "subtype": "mood"}, text_row("hi"), result())
    assert first == ev.Unrecognized(unknown)
    assert isinstance(second, ev.Unrecognized)
    assert (second.raw["type"], second.raw["subtype"]) == ("system", "mood")
    assert turns(rest) == [("TurnStarted", "a"), ("TurnEnded", "a")]


def test_unknown_fields_and_blocks_are_passed_over() -> None:
    blocks = [{"type": "hologram"}, {"type": "text", "text": "hi", "new": 1}]
    row = {"type": "assistant", "message": {"content": blocks, "new": 1}, "new": {"deep": []}}
    assert feed(prompted("a"), row) == [ev.TurnStarted("a"), ev.TextStreamed("hi"), ev.TextFinished("hi")]


@pytest.mark.parametrize("content", ["hi", [{"type": "text", "text": "hi"}]], ids=["string", "list"])
def test_content_may_be_a_string_or_a_list(content: Any) -> None:
    message = {"content": content}
    connection = prompted("a")
    assert feed(connection, {"type": "assistant", "message": message})[1:] == [
        ev.TextStreamed("hi"),
        ev.TextFinished("hi"),
    ]
    assert feed(connection, {"type": "user", "message": message, "uuid": "u"}) == [ev.PromptReplayed("hi", uuid="u")]


# --- questions ------------------------------------------------------------------------------------------------------


def test_a_question_is_answered_once() -> None:
    connection = Connection()
    feed(connection, asked())
    connection.answer("q1", Allow())
    assert connection.open_questions == ()
    with pytest.raises(QuestionClosed, match="q1 is not open"):
        connection.answer("q1", Deny(reason="no"))


def test_an_unknown_question_cannot_be_answered() -> None:
    with pytest.raises(QuestionClosed):
        Connection().answer("never asked", Allow())


def test_a_withdrawn_question_cannot_be_answered() -> None:
    connection = Connection()
    feed(connection, asked())
    assert feed(connection, {"type": "control_cancel_request", "request_id": "q1"}) == [
        ev.QuestionWithdrawn("q1", "Claude Code withdrew it")
    ]
    with pytest.raises(QuestionClosed):
        connection.answer("q1", Allow())


def test_withdrawing_what_is_not_open_says_nothing() -> None:
    connection = Connection()
    feed(connection, asked())
    connection.answer("q1", Allow())
    assert feed(connection, {"type": "control_cancel_request", "request_id": "q1"}) == []


def test_several_questions_are_open_at_once_each_under_its_own_id() -> None:
    connection = Connection()
    feed(connection, asked("q1"), asked("q2", tool_name="Read"))
    assert [question.id for question in connection.open_questions] == ["q1", "q2"]
    assert json.loads(connection.answer("q2", Allow()))["response"]["request_id"] == "q2"
    assert [question.id for question in connection.open_questions] == ["q1"]


def test_a_question_listed_again_is_not_asked_twice() -> None:
    connection = Connection()
    assert len(feed(connection, asked(), asked())) == 1


def test_a_call_is_replied_to_once() -> None:
    hook = {"type": "control_request", "request_id": "h1", "request": {"subtype": "hook_callback", "callback_id": "c"}}
    connection = Connection()
    assert feed(connection, hook) == [ev.HookCalled("h1", "c", {})]
    connection.reply("h1", {})
    with pytest.raises(QuestionClosed, match="h1 is not open"):
        connection.reply("h1", {})
    with pytest.raises(QuestionClosed, match="h1 is not open"):
        connection.refuse("h1", "no")


def test_a_withdrawn_call_is_not_replied_to() -> None:
    message = {"subtype": "mcp_message", "server_name": "n", "message": {"id": 1}}
    connection = Connection()
    feed(connection, {"type": "control_request", "request_id": "m1", "request": message})
    assert feed(connection, {"type": "control_cancel_request", "request_id": "m1"}) == []
    with pytest.raises(QuestionClosed):
        connection.reply("m1", {})


@pytest.mark.parametrize(
    "request_",
    [{"subtype": "never_heard_of"}, {"subtype": "can_use_tool"}, {"subtype": 5}, {}, None],
    ids=str,
)
def test_a_control_request_we_do_not_know_is_refused_never_left_hanging(request_: Any) -> None:
    connection = Connection()
    (refused,) = feed(connection, {"type": "control_request", "request_id": "r1", "request": request_})
    assert isinstance(refused, ev.RequestRefused)
    response = json.loads(connection.bytes_to_send())["response"]
    assert (response["subtype"], response["request_id"]) == ("error", "r1")
    assert connection.bytes_to_send() == b""


def test_a_request_without_an_id_cannot_be_refused() -> None:
    connection = Connection()
    assert feed(
        connection, {"type": "control_request", "request": {"subtype": "can_use_tool", "tool_name": "Bash"}}
    ) == [ev.RequestRefused("", "can_use_tool")]
    assert connection.bytes_to_send() == b""


def test_refusals_add_up_until_they_are_taken() -> None:
    connection = Connection()
    feed(
        connection, *({"type": "control_request", "request_id": str(i), "request": {"subtype": "x"}} for i in range(3))
    )
    lines = connection.bytes_to_send().splitlines()
    assert [json.loads(line)["response"]["request_id"] for line in lines] == ["0", "1", "2"]


# --- our requests ---------------------------------------------------------------------------------------------------


def test_an_answer_names_the_request_it_answers() -> None:
    connection = Connection()
    first, _ = connection.request("set_model", model="opus")
    second, _ = connection.request("mcp_status")
    assert feed(connection, answer_row(second, {"mcpServers": []}), answer_row(first)) == [
        ev.RequestAnswered(second, "mcp_status", {"mcpServers": []}),
        ev.RequestAnswered(first, "set_model"),
    ]


def test_an_error_answers_too() -> None:
    connection = Connection()
    first, _ = connection.request("rewind_files")
    second, _ = connection.request("no_such_request")
    refusal = {"subtype": "error", "error": "No file checkpoint", "error_code": "no_checkpoint"}
    assert feed(connection, answer_row(first, **refusal), answer_row(second, subtype="error")) == [
        ev.RequestAnswered(first, "rewind_files", error="No file checkpoint", error_code="no_checkpoint"),
        ev.RequestAnswered(second, "no_such_request", error="refused"),
    ]


def test_a_request_is_answered_once_and_a_stray_answer_is_unrecognised() -> None:
    connection = Connection()
    request_id, _ = connection.request("mcp_status")
    feed(connection, answer_row(request_id))
    for stray in (request_id, "never sent"):
        (event,) = feed(connection, answer_row(stray))
        assert isinstance(event, ev.Unrecognized)


def test_initialise_is_answered_by_what_the_cli_is() -> None:
    connection = Connection()
    request_id, _ = connection.request("initialize")
    initialised, answered = feed(connection, answer_row(request_id, {"claude_code_version": "2.1.326"}))
    assert isinstance(initialised, ev.Initialised)
    assert initialised.version == "2.1.326"
    assert isinstance(answered, ev.RequestAnswered)


def test_a_refused_initialise_is_no_initialisation() -> None:
    connection = Connection()
    request_id, _ = connection.request("initialize")
    assert feed(connection, answer_row(request_id, subtype="error", error="no")) == [
        ev.RequestAnswered(request_id, "initialize", error="no")
    ]


def test_the_bridge_dialect_puts_the_id_on_top_and_the_answer_bare() -> None:
    connection = Connection(DIALECTS["bridge"])
    request_id, _ = connection.request("initialize")
    row = {"type": "control_response", "request_id": request_id, "response": {"models": [{"value": "opus"}]}}
    initialised, _ = feed(connection, row)
    assert isinstance(initialised, ev.Initialised)
    assert initialised.models == (ev.Model("opus"),)


def test_an_error_row_that_names_a_request_answers_it() -> None:
    connection = Connection(DIALECTS["bridge"])
    request_id, _ = connection.request("mcp_status")
    error = {"type": "error", "request_id": request_id, "error": {"code": "UNSUPPORTED", "message": "no"}}
    assert feed(connection, error) == [
        ev.RequestAnswered(request_id, "mcp_status", error="no", error_code="UNSUPPORTED")
    ]
    assert feed(connection, error) == [ev.ErrorReported("no", "UNSUPPORTED")]


@pytest.mark.parametrize(
    ("reply", "answer", "error"),
    [
        ({"result": {"ok": 1}}, {"ok": 1}, None),
        ({"result": None}, {}, None),
        ({"error": {"code": -32601, "message": "no"}}, {}, "no"),
        ({"error": "no"}, {}, "no"),
    ],
    ids=str,
)
def test_a_json_rpc_reply_answers_a_request(reply: Json, answer: Json, error: str | None) -> None:
    connection = Connection(DIALECTS["jsonrpc"])
    request_id, _ = connection.request("set_model")
    envelope = {"jsonrpc": "2.0", "id": request_id, **reply}
    assert feed(connection, envelope) == [ev.RequestAnswered(request_id, "set_model", answer, error)]
    assert feed(connection, envelope) == []


# --- the end of the stream ------------------------------------------------------------------------------------------


def test_the_end_withdraws_questions_and_fails_requests() -> None:
    connection = prompted("a")
    request_id, _ = connection.request("mcp_status")
    stream = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "half a sen"}}
    feed(connection, asked("q1"), asked("q2"), {"type": "stream_event", "event": stream})
    assert connection.receive_data(b"") == [
        ev.TextFinished("half a sen"),
        ev.QuestionWithdrawn("q1", "Claude Code ended"),
        ev.QuestionWithdrawn("q2", "Claude Code ended"),
        ev.RequestAnswered(request_id, "mcp_status", error="Claude Code ended"),
        ev.StreamEnded(),
    ]
    with pytest.raises(QuestionClosed):
        connection.answer("q1", Allow())


def test_the_stream_ends_once() -> None:
    connection = Connection()
    assert connection.receive_data(b"") == [ev.StreamEnded()]
    assert connection.receive_data(b"") == []


def test_calls_cannot_be_replied_to_after_the_end() -> None:
    connection = Connection()
    hook = {"subtype": "hook_callback", "callback_id": "c"}
    feed(connection, {"type": "control_request", "request_id": "h1", "request": hook})
    connection.receive_data(b"")
    with pytest.raises(QuestionClosed):
        connection.reply("h1", {})


def test_half_a_line_at_the_end_is_reported() -> None:
    connection = Connection()
    connection.receive_data(b'{"type": "result", "sub')
    assert connection.receive_data(b"") == [
        ev.LineDropped("cut off at the end", 23, '{"type": "result", "sub'),
        ev.StreamEnded(),
    ]


def test_half_a_line_over_the_limit_is_reported_at_the_end() -> None:
    connection = Connection(line_limit=10)
    connection.receive_data(b"x" * 1000)
    assert connection.receive_data(b"") == [ev.LineDropped("cut off at the end", 1000, "x" * 200), ev.StreamEnded()]


def test_a_last_row_that_lacks_only_its_newline_is_read() -> None:
    connection = prompted("a")
    connection.receive_data(to_line(result()).rstrip(b"\n"))
    ended, over = connection.receive_data(b"")
    assert isinstance(ended, ev.TurnEnded)
    assert over == ev.StreamEnded()


def test_blanks_at_the_end_are_nothing() -> None:
    connection = Connection()
    connection.receive_data(b" \r")
    assert connection.receive_data(b"") == [ev.StreamEnded()]


# --- the rows that remain -------------------------------------------------------------------------------------------


def test_the_session_id_follows_the_conversation() -> None:
    connection = Connection()
    ids = []
    for row in (
        {"type": "session.created", "session_id": "one"},
        {"type": "system", "subtype": "init", "session_id": "two"},
        {"type": "system", "subtype": "status", "session_id": "not an init"},
        result(session_id="three"),
        {"type": "conversation_reset"},
        result(session_id=""),
        {"type": "system", "subtype": "init", "session_id": "four"},
    ):
        feed(connection, row)
        ids.append(connection.session_id)
    assert ids == ["one", "two", "two", "three", "three", "three", "four"]


def test_a_reset_starts_the_cost_again() -> None:
    connection = prompted("a", "b")
    rows = (
        result(total_cost_usd=0.5),
        {"type": "conversation_reset", "new_conversation_id": "n"},
        result(total_cost_usd=0.25),
    )
    first, reset, second = feed(connection, *rows)
    assert reset == ev.ConversationReset("n")
    assert [end.usage.cost_usd for end in ends([first, second])] == [0.5, 0.25]


@pytest.mark.parametrize(
    "row",
    [
        text_row("Not logged in", error="authentication_failed"),
        {"type": "assistant", "message": {"content": "Not logged in", "error": "authentication_failed"}},
    ],
    ids=["beside the message", "in it (jsonrpc)"],
)
def test_an_api_error_is_not_something_that_claude_said(row: Json) -> None:
    connection = prompted("a")
    failure = result(is_error=True, terminal_reason="api_error", result="Not logged in")
    _, reported, ended = feed(connection, row, failure)
    assert reported == ev.ErrorReported("Not logged in", "authentication_failed")
    assert isinstance(ended, ev.TurnEnded)
    assert (ended.outcome, ended.error_kind) == (Outcome.API_ERROR, "authentication_failed")
    (later,) = ends(feed(prompted("b"), failure))
    assert later.error_kind == ""


def test_an_unnamed_api_error_is_an_error_too() -> None:
    row = {"type": "assistant", "is_api_error_message": True}
    assert feed(prompted("a"), row)[1:] == [ev.ErrorReported("")]


def test_the_kind_of_an_error_does_not_outlive_its_turn() -> None:
    connection = prompted("a")
    feed(connection, {"type": "error", "error": {"code": "OVERLOADED", "message": "m"}}, result(**FOREIGN))
    (end,) = ends(feed(connection, result(is_error=True)))
    assert end.error_kind == ""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_a_local_command_prints_is_told_from_a_prompt(stream: str) -> None:
    printed = f"<local-command-{stream}>one\ntwo</local-command-{stream}>"
    row = {"type": "user", "message": {"content": printed + printed}, "isReplay": True}
    assert feed(Connection(), row) == [ev.LocalCommandPrinted("one\ntwo")] * 2


def test_a_replayed_prompt_says_where_it_came_from() -> None:
    message = {"content": [{"type": "text", "text": "look"}]}
    row = {"type": "user", "message": message, "uuid": "u", "parent_tool_use_id": "t", "isSynthetic": True}
    assert feed(Connection(), row, {"type": "user"}) == [
        ev.PromptReplayed("look", uuid="u", parent="t", synthetic=True),
        ev.PromptReplayed(""),
    ]


def test_the_small_rows_are_events() -> None:
    limit = {"status": "allowed_warning"}
    assert feed(
        Connection(),
        {"type": "rate_limit_event", "rate_limit_info": limit},
        {"type": "prompt_suggestion", "suggestion": "and now?"},
        {"type": "session.created", "session_id": "s"},
    ) == [ev.RateLimited("allowed_warning", details=limit), ev.PromptSuggested("and now?"), ev.SessionStarted("s")]


def test_the_indexed_dialect_streams_inside_assistant_rows() -> None:
    def delta(text: str) -> Json:
        inner = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        return {"type": "assistant", "delta": inner}

    connection = prompted("a", dialect="indexed")
    events = feed(connection, delta("Hel"), delta("lo"), text_row("Hello"), delta("bye"), text_row("bye"))
    assert events == [
        ev.TurnStarted("a"),
        ev.TextStreamed("Hel"),
        ev.TextStreamed("lo"),
        ev.TextFinished("Hello"),
        ev.TextStreamed("bye"),
        ev.TextFinished("bye"),
    ]
