"""The rows the CLI writes, typed, and how a line becomes one. All five dialects are read here.

Only fields that something uses are named; msgspec skips the rest. A row of an unknown type, or one whose known
fields have an unexpected shape, is an `UnknownRow`, never an error. Wire spellings live here and in `dialects`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec


class Row(msgspec.Struct, tag_field="type"):
    """The base of rows."""


class Block(msgspec.Struct):
    """A content block of any kind; `type` decides which fields mean something."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: Any = None
    tool_use_id: str = ""
    content: Any = None
    is_error: bool | None = None
    source: dict[str, Any] | None = None


class Message(msgspec.Struct):
    content: str | list[Block] | None = None
    id: str | None = None
    model: str = ""
    usage: dict[str, Any] | None = None
    stop_reason: str | None = None
    error: str | None = None  # jsonrpc puts it here, the CLI beside the message


# The three of a delta, which come by the ten thousand: JSON has no cycles for the collector to look for.
class Delta(msgspec.Struct, gc=False):
    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class StreamBody(msgspec.Struct, gc=False):
    """An event of the Messages API's own stream."""

    type: str
    index: int = 0
    delta: Delta | None = None
    content_block: Block | None = None
    message: Message | None = None
    usage: dict[str, Any] | None = None


class StreamRow(Row, tag="stream_event", gc=False):
    event: StreamBody
    parent_tool_use_id: str | None = None


class AssistantRow(Row, tag="assistant"):
    message: Message | None = None
    delta: StreamBody | None = None  # indexed: deltas ride in assistant rows
    parent_tool_use_id: str | None = None
    error: str | None = None
    is_api_error_message: bool = False
    api_error_status: int | None = None
    thinking_duration_ms: float | None = None
    tool_use_meta: list[dict[str, Any]] = []
    usage: dict[str, Any] | None = None  # bridge puts it beside the message
    uuid: str | None = None


class UserRow(Row, tag="user"):
    message: Message | None = None
    uuid: str | None = None
    parent_tool_use_id: str | None = None
    tool_use_result: Any = None
    tool_result_meta: list[dict[str, Any]] = []
    is_replay: bool | None = msgspec.field(name="isReplay", default=None)
    is_synthetic: bool | None = msgspec.field(name="isSynthetic", default=None)


class SystemRow(Row, tag="system"):
    """One row type for every `system` subtype: the table in `connection` reads what each one means."""

    subtype: str = ""
    session_id: str = ""
    cwd: str = ""
    model: str = ""
    permission_mode: str | None = msgspec.field(name="permissionMode", default=None)
    claude_code_version: str = ""
    tools: list[Any] = []
    mcp_servers: list[Any] = []
    slash_commands: list[Any] = []
    status: str | None = None
    estimated_tokens: int = 0
    task_id: str = ""
    tool_use_id: str | None = None
    description: str = ""
    task_type: str = ""
    subagent_type: str = ""
    is_backgrounded: bool = False
    patch: dict[str, Any] = {}
    last_tool_name: str = ""
    usage: dict[str, Any] = {}
    summary: str = ""
    output_file: str = ""
    tasks: list[dict[str, Any]] = []
    compact_metadata: dict[str, Any] = {}
    attempt: int = 0
    max_retries: int = 0
    retry_delay_ms: float | None = None
    error_status: int | None = None
    error: Any = None


class ResultRow(Row, tag="result"):
    subtype: str = ""
    is_error: bool | None = None
    result: Any = None
    structured_output: Any = None
    errors: list[Any] = []
    error: Any = None
    session_id: str = ""
    terminal_reason: str | None = None
    api_error_status: int | None = None
    api_error_type: str | None = None
    total_cost_usd: float | None = None
    usage: dict[str, Any] | None = None
    model_usage: dict[str, dict[str, Any]] | None = msgspec.field(name="modelUsage", default=None)
    model_usage_since_last_result: dict[str, dict[str, Any]] | None = None
    duration_ms: float | None = None
    duration_seconds: float | None = None
    num_turns: int | None = None
    turn_count: int | None = None
    permission_denials: list[dict[str, Any]] | None = None
    origin: dict[str, Any] | None = None
    user_message_uuids: list[str] = []
    user_message_uuid: str | None = None
    local_command: str = ""


class ControlRequestRow(Row, tag="control_request"):
    request_id: str = ""
    request: dict[str, Any] | None = None
    message: dict[str, Any] | None = None  # indexed nests the whole request here


class CallbackRow(Row, tag="callback.request"):
    request_id: str
    request: dict[str, Any]


class ControlResponseRow(Row, tag="control_response"):
    response: dict[str, Any]
    request_id: str = ""  # bridge puts it on top, and the answer bare in `response`


class CancelRow(Row, tag="control_cancel_request"):
    request_id: str


class LifecycleRow(Row, tag="command_lifecycle"):
    command_uuid: str
    state: str


class ResetRow(Row, tag="conversation_reset"):
    new_conversation_id: str = ""
    session_id: str = ""


class RateLimitRow(Row, tag="rate_limit_event"):
    rate_limit_info: dict[str, Any] = {}


class SuggestionRow(Row, tag="prompt_suggestion"):
    suggestion: str = ""


class SessionCreatedRow(Row, tag="session.created"):
    session_id: str = ""


class ErrorRow(Row, tag="error"):
    error: Any = None
    request_id: str = ""  # where it refuses one of our requests


class RpcReplyRow(Row, tag="rpc.reply"):
    """A JSON-RPC response; the type name is ours, the wire has none."""

    request_id: str
    result: Any = None
    error: Any = None


class UnknownRow(msgspec.Struct):
    raw: dict[str, Any]


KnownRow = (
    StreamRow
    | AssistantRow
    | UserRow
    | SystemRow
    | ResultRow
    | ControlRequestRow
    | CallbackRow
    | ControlResponseRow
    | CancelRow
    | LifecycleRow
    | ResetRow
    | RateLimitRow
    | SuggestionRow
    | SessionCreatedRow
    | ErrorRow
)

AnyRow = KnownRow | RpcReplyRow | UnknownRow

_decode: Callable[[bytes], KnownRow] = msgspec.json.Decoder(KnownRow).decode


class NotARow(ValueError):
    """The line holds no JSON object."""


def decode_row(line: bytes) -> AnyRow:
    """One line to one row. Raises `NotARow` for what is not a JSON object."""
    try:
        return _decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return _decode_loosely(line)


def decode_unknown(line: bytes) -> UnknownRow:
    """A row of a known type but an unknown kind, with all it holds. Raises `NotARow` where that is too deep."""
    try:
        raw = mend(json.loads(line.decode("utf-8", "replace")))
    except RecursionError as error:
        raise NotARow(str(error)) from None
    return UnknownRow(raw.get("params", raw) if "jsonrpc" in raw else raw)


def _decode_loosely(line: bytes) -> AnyRow:
    """The slow road: unknown types, other envelopes, broken UTF-8, lone surrogates."""
    try:
        raw = mend(json.loads(line.decode("utf-8", "replace")))
    except (ValueError, RecursionError) as error:
        raise NotARow(str(error)) from None
    if not isinstance(raw, dict):
        raise NotARow(f"a JSON {type(raw).__name__}, not an object")
    if "jsonrpc" in raw:
        return _open_envelope(raw)
    return _to_row(raw)


_FIELD_AT_FAULT = re.compile(r"`\$\.(\w+)")
_NEVER_LOST = ("result", "system")


def _to_row(raw: dict[str, Any]) -> KnownRow | UnknownRow:
    attempt = raw
    while True:
        try:
            row: KnownRow = msgspec.convert(attempt, KnownRow)
            return row
        except msgspec.ValidationError as error:
            if attempt is raw:  # a field that is null where we expect a word is only absent
                attempt = {key: value for key, value in raw.items() if value is not None}
                continue
            # A turn whose `result` is not read never ends: there, a field of another shape costs that field only.
            found = _FIELD_AT_FAULT.search(str(error))
            if found is None or found[1] not in attempt or raw.get("type") not in _NEVER_LOST:
                return UnknownRow(raw)
            attempt = {key: value for key, value in attempt.items() if key != found[1]}


def _open_envelope(raw: dict[str, Any]) -> AnyRow:
    """JSON-RPC 2.0 around the same messages (jsonrpc): notification, request, or reply."""
    params = raw.get("params")
    method, request_id = raw.get("method"), raw.get("id")
    if isinstance(params, dict) and "type" in params:
        return _to_row(params)
    if isinstance(method, str) and isinstance(params, dict):
        if request_id is not None:
            return ControlRequestRow(request_id=str(request_id), request={**params, "subtype": method})
        if method == "cancel" and "request_id" in params:
            return CancelRow(request_id=str(params["request_id"]))
    if request_id is not None and ("result" in raw or "error" in raw):
        return RpcReplyRow(request_id=str(request_id), result=raw.get("result"), error=raw.get("error"))
    return UnknownRow(raw)


def mend(value: Any) -> Any:
    """Lone surrogates cannot be encoded again: replaced, wherever they stand."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [mend(item) for item in value]
    if isinstance(value, dict):
        return {mend(key): mend(item) for key, item in value.items()}
    return value
