"""What the CLI asks of this process, and what it says of itself: control payloads to events. A table by subtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from claude_kernel.protocol import events as ev

Payload = dict[str, Any]


class _Option(msgspec.Struct):
    label: str
    description: str | None = None
    preview: str | None = None


class _Asked(msgspec.Struct, rename="camel"):
    question: str
    header: str | None = None
    options: list[_Option] = []
    multi_select: bool | None = None


class _CanUseTool(msgspec.Struct):
    tool_name: str
    input: Payload = {}
    tool_use_id: str | None = None
    display_name: str | None = None
    description: str | None = None
    decision_reason: str | None = None
    blocked_path: str | None = None
    permission_suggestions: list[Payload] | None = None
    requires_user_interaction: bool = False
    agent_id: str | None = None


class _Elicitation(msgspec.Struct):
    mcp_server_name: str = ""
    message: str = ""
    requested_schema: Payload | None = None
    url: str | None = None


def _can_use_tool(request_id: str, request: Payload) -> ev.Event | None:
    try:
        asked = msgspec.convert(_without_nulls(request), _CanUseTool)
    except msgspec.ValidationError:
        return None
    question = ev.Question(
        id=request_id,
        tool_name=asked.tool_name,
        input=asked.input,
        tool_use_id=asked.tool_use_id,
        display_name=asked.display_name or asked.tool_name,
        description=asked.description or "",
        reason=asked.decision_reason or "",
        blocked_path=asked.blocked_path,
        suggestions=tuple(asked.permission_suggestions or ()),
        needs_person=asked.requires_user_interaction or asked.tool_name in ALWAYS_A_PERSON,
        agent_id=asked.agent_id,
        form=decode_form(asked.tool_name, asked.input),
    )
    return ev.QuestionAsked(question=question)


ALWAYS_A_PERSON = frozenset({"AskUserQuestion", "ExitPlanMode"})


def decode_form(tool_name: str, tool_input: Payload) -> tuple[ev.FormQuestion, ...]:
    if tool_name != "AskUserQuestion":
        return ()
    try:
        asked = msgspec.convert(tool_input.get("questions") or [], list[_Asked])
    except msgspec.ValidationError:
        return ()
    return tuple(
        ev.FormQuestion(
            text=entry.question,
            header=entry.header or "",
            choices=tuple(
                ev.Choice(option.label, option.description or "", option.preview or "") for option in entry.options
            ),
            multiple=bool(entry.multi_select),
        )
        for entry in asked
    )


def question_of_host_tool(started: ev.ToolStarted) -> ev.Question:
    """In the host-tools dialect nobody but us asks: each tool call is a question first."""
    return ev.Question(
        id=started.tool_use_id,
        tool_name=started.name,
        input=started.input,
        tool_use_id=started.tool_use_id,
        display_name=started.display_name or started.name,
        needs_person=started.name in ALWAYS_A_PERSON,
        form=decode_form(started.name, started.input),
    )


def _elicitation(request_id: str, request: Payload) -> ev.Event | None:
    try:
        asked = msgspec.convert(_without_nulls(request), _Elicitation)
    except msgspec.ValidationError:
        return None
    dialog = ev.Dialog(asked.mcp_server_name, asked.message, asked.requested_schema or {}, asked.url or "")
    question = ev.Question(
        id=request_id, tool_name="elicitation", input={}, description=asked.message, needs_person=True, dialog=dialog
    )
    return ev.QuestionAsked(question=question)


def _mcp_message(request_id: str, request: Payload) -> ev.Event | None:
    server, message = request.get("server_name"), request.get("message")
    if not isinstance(server, str) or not isinstance(message, dict):
        return None
    return ev.McpCalled(request_id=request_id, server=server, message=message)


def _hook_callback(request_id: str, request: Payload) -> ev.Event | None:
    callback_id, hook_input = request.get("callback_id"), request.get("input")
    if not isinstance(callback_id, str):
        return None
    tool_use_id = request.get("tool_use_id")
    return ev.HookCalled(
        request_id=request_id,
        callback_id=callback_id,
        input=hook_input if isinstance(hook_input, dict) else {},
        tool_use_id=tool_use_id if isinstance(tool_use_id, str) else None,
    )


REQUESTS: dict[str, Callable[[str, Payload], ev.Event | None]] = {
    "can_use_tool": _can_use_tool,
    "elicitation": _elicitation,
    "mcp_message": _mcp_message,
    "hook_callback": _hook_callback,
}


def decode_initialised(answer: Payload) -> ev.Initialised:
    account = answer.get("account")
    account = account if isinstance(account, dict) else {}
    return ev.Initialised(
        version=_word(answer, "claude_code_version"),
        mode=_word(answer, "current_permission_mode"),
        commands=tuple(
            ev.SlashCommand(_word(entry, "name").lstrip("/"), _word(entry, "description"), _word(entry, "argumentHint"))
            for entry in _dicts(answer.get("commands"))
        ),
        models=tuple(
            ev.Model(
                _word(entry, "value"),
                _word(entry, "displayName") or _word(entry, "display"),
                _word(entry, "description"),
                _word(entry, "resolvedModel"),
                _words(entry.get("supportedEffortLevels")),
            )
            for entry in _dicts(answer.get("models"))
        ),
        agents=tuple(
            ev.AgentKind(_word(entry, "name"), _word(entry, "description")) for entry in _dicts(answer.get("agents"))
        ),
        output_style=_word(answer, "output_style"),
        output_styles=_words(answer.get("available_output_styles")),
        account=account,
        logged_in=_logged_in(account),
    )


def _logged_in(account: Payload) -> bool | None:
    """`tokenSource: none` and no key is "not logged in" (scene `not_logged_in`); other CLIs may not say."""
    if account.get("tokenSource") != "none":
        return True if account else None
    return bool(account.get("apiKeySource")) or account.get("apiProvider") not in (None, "firstParty")


def _without_nulls(payload: Payload) -> Payload:
    return {key: value for key, value in payload.items() if value is not None}


def _dicts(value: Any) -> list[Payload]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _words(value: Any) -> tuple[str, ...]:
    return tuple(entry for entry in value if isinstance(entry, str)) if isinstance(value, list) else ()


def _word(payload: Payload, key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""
