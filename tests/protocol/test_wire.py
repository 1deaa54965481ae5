"""Lines to rows: the real CLI's and the five dialects' own forms."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from protocol.replay import SCENES, cli_rows, to_line

from claude_kernel.protocol import wire


def decode(row: dict[str, Any]) -> Any:
    return wire.decode_row(to_line(row))


NOT_ROWS = {
    "words": b"claude: command not found",
    "half an object": b'{"type": "result", "subty',
    "an array": b'["type", "result"]',
    "a number": b"42",
    "null": b"null",
    "a string": b'"result"',
    "two objects": b'{"type": "a"} {"type": "b"}',
    "a number of more digits than Python reads": b'{"type": "result", "num_turns": ' + b"9" * 5000 + b"}",
    "nested deeper than any parser goes": b'{"type": "x", "y": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    "bytes that are no text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("name", NOT_ROWS)
def test_a_line_that_is_no_json_object_is_not_a_row(name: str) -> None:
    with pytest.raises(wire.NotARow):
        wire.decode_row(NOT_ROWS[name])


def test_what_is_json_but_no_object_is_named() -> None:
    with pytest.raises(wire.NotARow, match="a JSON list, not an object"):
        wire.decode_row(b"[]")


@pytest.mark.parametrize("scene", SCENES)
def test_every_recorded_row_is_known(scene: str) -> None:
    unknown = [row for row in cli_rows(scene) if isinstance(decode(row), wire.UnknownRow)]
    assert unknown == []


# The dialects' own examples, and the row each becomes.
DIALECT_ROWS: list[tuple[str, dict[str, Any], type]] = [
    ("000", {"type": "control_response", "request_id": "u", "response": {"commands": []}}, wire.ControlResponseRow),
    ("000", {"type": "session.created", "session_id": "session-uuid"}, wire.SessionCreatedRow),
    ("000", {"type": "system", "subtype": "init", "tools": [{"name": "Bash", "description": "d"}]}, wire.SystemRow),
    ("000", {"type": "result", "subtype": "error_max_turns", "error": "Maximum turns exceeded"}, wire.ResultRow),
    ("000", {"type": "error", "error": {"code": "SESSION_NOT_FOUND", "message": "Session not found"}}, wire.ErrorRow),
    (
        "000",
        {"type": "callback.request", "request_id": "c", "request": {"subtype": "can_use_tool", "blocked_path": None}},
        wire.CallbackRow,
    ),
    ("001", {"type": "control_request", "request_id": "u", "request": {"subtype": "x"}}, wire.ControlRequestRow),
    ("001", {"type": "assistant", "uuid": "u", "parent_tool_use_id": None, "message": {"id": "m"}}, wire.AssistantRow),
    ("001", {"type": "user", "message": {"role": "user", "content": "words"}}, wire.UserRow),
    ("003", {"type": "stream_event", "uuid": "u", "event": {"type": "message_stop"}}, wire.StreamRow),
    ("003", {"type": "assistant", "message": {"content": [], "error": "rate_limit"}}, wire.AssistantRow),
    (
        "004",
        {"type": "control_request", "message": {"type": "control_request", "request_id": "u", "request": {}}},
        wire.ControlRequestRow,
    ),
    (
        "004",
        {"type": "assistant", "delta": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "t"}}},
        wire.AssistantRow,
    ),
    ("004", {"type": "error", "error": {"type": "invalid_request", "message": "m"}}, wire.ErrorRow),
    ("004", {"type": "user", "message": {"content": [{"type": "text", "text": "echo"}]}}, wire.UserRow),
    ("CLI", {"type": "control_cancel_request", "request_id": "u"}, wire.CancelRow),
    ("CLI", {"type": "command_lifecycle", "command_uuid": "u", "state": "queued"}, wire.LifecycleRow),
    ("CLI", {"type": "conversation_reset", "new_conversation_id": "u"}, wire.ResetRow),
    ("CLI", {"type": "rate_limit_event", "rate_limit_info": {}}, wire.RateLimitRow),
    ("CLI", {"type": "prompt_suggestion", "suggestion": "s"}, wire.SuggestionRow),
]


@pytest.mark.parametrize(("source", "row", "kind"), DIALECT_ROWS, ids=[f"{s}-{k.__name__}" for s, _, k in DIALECT_ROWS])
def test_the_rows_of_all_dialects_are_read(source: str, row: dict[str, Any], kind: type) -> None:
    assert type(decode(row)) is kind, source


@pytest.mark.parametrize(
    "row",
    [
        {"type": "never heard of"},
        {"type": 5},
        {"no": "type"},
        {},
        {"type": "stream_event"},
        {"type": "assistant", "message": {"content": 5}},
        {"type": "control_cancel_request", "request_id": None},
    ],
    ids=str,
)
def test_an_unknown_type_or_shape_is_kept_whole(row: dict[str, Any]) -> None:
    assert decode(row) == wire.UnknownRow(row)


def test_unknown_fields_are_skipped() -> None:
    row = {"type": "prompt_suggestion", "suggestion": "s"}
    assert decode({**row, "new": {"deep": [1]}}) == decode(row)


def test_a_null_where_a_word_is_expected_is_an_absent_field() -> None:
    assert decode({"type": "system", "subtype": "status", "model": None, "tools": None}) == decode(
        {"type": "system", "subtype": "status"}
    )


ODD_FIELDS: list[dict[str, Any]] = [
    {"num_turns": "two"},
    {"total_cost_usd": "1 USD", "usage": [], "duration_ms": {}},
    {"user_message_uuids": "u", "permission_denials": {"a": 1}, "modelUsage": {"m": 5}},
    {"errors": None, "origin": "task"},
    {"total_cost_usd": 10**400},
]


@pytest.mark.parametrize("odd", ODD_FIELDS, ids=lambda odd: "+".join(odd))
def test_a_result_of_an_unexpected_shape_is_still_a_result(odd: dict[str, Any]) -> None:
    row = decode({"type": "result", "subtype": "success", "result": "the answer", **odd})
    assert (type(row), row.subtype, row.result) == (wire.ResultRow, "success", "the answer")


def test_a_row_whose_very_type_is_wrong_cannot_be_saved_by_dropping_fields() -> None:
    row = {"type": "assistant", "parent_tool_use_id": 5}
    assert decode(row) == wire.UnknownRow(row)


# --- JSON-RPC 2.0 (jsonrpc) ----------------------------------------------------------------------------------------

ENVELOPES: list[tuple[str, dict[str, Any], Any]] = [
    (
        "a notification holds a row",
        {"method": "message", "params": {"type": "prompt_suggestion", "suggestion": "s"}},
        wire.SuggestionRow(suggestion="s"),
    ),
    (
        "a request is a control request",
        {"id": 7, "method": "can_use_tool", "params": {"tool_name": "Bash"}},
        wire.ControlRequestRow(request_id="7", request={"tool_name": "Bash", "subtype": "can_use_tool"}),
    ),
    ("a cancel withdraws", {"method": "cancel", "params": {"request_id": 7}}, wire.CancelRow(request_id="7")),
    ("a result answers", {"id": "7", "result": {"a": 1}}, wire.RpcReplyRow(request_id="7", result={"a": 1})),
    (
        "an error answers",
        {"id": "7", "error": {"code": -1, "message": "no"}},
        wire.RpcReplyRow(request_id="7", error={"code": -1, "message": "no"}),
    ),
]


@pytest.mark.parametrize(("name", "envelope", "row"), ENVELOPES, ids=[name for name, *_ in ENVELOPES])
def test_a_json_rpc_envelope_is_opened(name: str, envelope: dict[str, Any], row: Any) -> None:
    assert decode({"jsonrpc": "2.0", **envelope}) == row, name


@pytest.mark.parametrize(
    "envelope",
    [{}, {"id": 7}, {"method": "ping"}, {"method": "cancel", "params": {}}, {"params": {"type": "strange"}}],
    ids=str,
)
def test_a_json_rpc_envelope_around_nothing_known_is_kept(envelope: dict[str, Any]) -> None:
    inner = envelope["params"] if "type" in envelope.get("params", {}) else {"jsonrpc": "2.0", **envelope}
    assert decode({"jsonrpc": "2.0", **envelope}) == wire.UnknownRow(inner)


# --- text that is not quite Unicode ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelled", "read"),
    [
        (b"a\\ud800b", "a\ufffdb"),
        (b"\\udc00", "\ufffd"),
        (b"\\ud83d\\ude42", "🙂"),
        (b"a\xffb", "a\ufffdb"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
    ],
)
def test_text_that_is_no_unicode_is_mended(spelled: bytes, read: str) -> None:
    row = wire.decode_row(b'{"type": "prompt_suggestion", "suggestion": "' + spelled + b'"}')
    assert row == wire.SuggestionRow(suggestion=read)
    msgspec.json.encode(row)


def test_mending_reaches_keys_and_nested_text_and_leaves_the_rest() -> None:
    broken = {"a\ud800": ["\udfff", {"b": "\ud83d"}], "n": 1, "none": None, "pair": "🙂", "mark": "\ufeffx"}
    mended = wire.mend(broken)
    assert mended == {"a\ufffd": ["\ufffd", {"b": "\ufffd"}], "n": 1, "none": None, "pair": "🙂", "mark": "\ufeffx"}
    json.dumps(mended, ensure_ascii=False).encode()
