"""Rows as the CLI writes them, for tests to build conversations from. It knows no scene."""

from __future__ import annotations

from typing import Any

from claude_kernel.protocol import DIALECTS, Connection, Prompt
from claude_kernel.protocol import events as ev

Json = dict[str, Any]


def asked(request_id: str = "q1", **request: Any) -> Json:
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}, **request}
    return {"type": "control_request", "request_id": request_id, "request": request}


def answer_row(request_id: str, response: Any = None, **more: Any) -> Json:
    body = {"subtype": "success", "request_id": request_id, "response": response, **more}
    return {"type": "control_response", "response": body}


def text_row(text: str, **more: Any) -> Json:
    return {"type": "assistant", "message": {"id": text, "content": [{"type": "text", "text": text}]}, **more}


def lifecycle(prompt_id: str, state: str) -> Json:
    return {"type": "command_lifecycle", "command_uuid": prompt_id, "state": state}


def result(**fields: Any) -> Json:
    return {"type": "result", "subtype": "success", "is_error": False, "session_id": "s", **fields}


ABORTED = {"subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_streaming"}
FOREIGN = {"origin": {"kind": "task-notification"}}


def prompted(*prompt_ids: str, dialect: str = "direct") -> Connection:
    connection = Connection(DIALECTS[dialect])
    for prompt_id in prompt_ids:
        connection.send_prompt(Prompt(text="x", id=prompt_id))
    return connection


def turns(events: list[ev.Event]) -> list[tuple[str, str | None]]:
    """The turns' own events, each with the prompt it names."""
    kinds = (ev.TurnStarted, ev.TurnEnded, ev.UnaskedTurnStarted, ev.UnaskedTurnEnded)
    return [(type(event).__name__, getattr(event, "prompt_id", None)) for event in events if isinstance(event, kinds)]


def ends(events: list[ev.Event]) -> list[ev.TurnEnded]:
    return [event for event in events if isinstance(event, ev.TurnEnded)]
