"""Every way that text of the CLI reaches the page: one text in, all outputs that could hold it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

from claude_kernel.protocol.events import ConversationCompacted, Image, RateLimited, Usage
from claude_kernel.render import (
    Bundle,
    CallState,
    ToolCall,
    render_call,
    render_checklist,
    render_compacted,
    render_footer,
    render_group,
    render_live_line,
    render_notice,
    render_printed,
    render_rate_limit,
    render_record,
    render_text,
    render_thinking,
    render_trouble,
)
from claude_kernel.render.tools import TOOLS

TURN: dict[str, Callable[[str], Bundle]] = {
    "answer": render_text,
    "answer with definitions": lambda text: render_text(text, definitions=text[:2_000]),
    "thinking": render_thinking,
    "thinking as it streams": lambda text: render_thinking(text, 2.0, streaming=True),
    "live line": lambda text: render_live_line(text, 3.0, 12),
    "footer": lambda text: render_footer(Usage(input_tokens=1, cost_usd=0.1), seconds=1, model=text),
    "trouble title": lambda text: render_trouble(text, "Try again."),
    "trouble remedy": lambda text: render_trouble("Trouble.", text),
    "trouble details": lambda text: render_trouble("Trouble.", "Try again.", text),
    "notice": render_notice,
    "printed": render_printed,
    "record": lambda text: render_record(text, text, text),
    "rate limit": lambda text: render_rate_limit(RateLimited(status=text, kind=text, resets_at=1e9)),
    "compacted": lambda text: render_compacted(ConversationCompacted(trigger=text)),
}

# one tool for each kind of body; titles and subjects all go through the same row
DISTINCT = tuple({tool.body: name for name, tool in TOOLS.items()}.values())

_KEY_NAMES = (
    "command code description prompt subagent_type file_path notebook_path path content new_source old_string "
    "new_string pattern glob type url query plan subject status taskId task_id bash_id skill edit_mode cell_type"
)


def tool_input(text: str) -> dict[str, Any]:
    """An input that every tool finds its own fields in."""
    return {
        **dict.fromkeys(_KEY_NAMES.split(), text),
        "todos": [{"content": text, "status": text}, {"content": text, "status": "completed"}],
        "edits": [{"old_string": text, "new_string": text + "x"}],
        "questions": [{"question": text, "header": text, "options": [{"label": text, "description": text}]}],
        text[:100]: {text[:100]: [text]},
    }


def tool_result(text: str) -> dict[str, Any]:
    return {
        "stdout": text,
        "stderr": text,
        "file": {"content": text, "numLines": 3, "filePath": text},
        "structuredPatch": [{"oldStart": 1, "newStart": 1, "lines": [" " + text, "-" + text, "+" + text, text]}],
        "content": [{"type": "text", "text": text}],
        "filenames": [text, text],
        "numFiles": 2,
        "results": [
            {"content": [{"title": text, "url": text}, {"title": text, "url": f"http://a.b/{text[:200]}"}]},
            text,
        ],
        "result": text,
        "answers": {text: [text, text], "x": text},
        "newTodos": [{"content": text, "status": "pending"}],
        "tasks": [{"id": text[:50], "subject": text, "status": text}],
        "task": {"id": text[:50]},
        "plan": text,
        "persistedOutputPath": text,
    }


def calls_with(text: str) -> Iterator[ToolCall]:
    """Each distinct row of the table, an unknown tool and named ones: done with everything, failed with only text."""
    picture = Image(media_type=text[:100], data=base64.b64encode(text.encode("utf-8", "replace")).decode())
    named = (f"mcp__{text[:60]}__{text[:60]}", text[:100])
    for name in (*DISTINCT, "Unheard", *named):
        given = tool_input(text)
        yield ToolCall("1", name, given, CallState.DONE, 0.0, 1.0, text, (picture,), tool_result(text), text[:200])
    for name in ("Bash", "Edit", "WebFetch", *named):
        yield ToolCall("2", name, {"x": text}, CallState.FAILED, 0.0, 1.0, text, result=f"Error: {text}")
    for state in (CallState.RUNNING, CallState.WAITING, CallState.HELD, CallState.DENIED, CallState.INTERRUPTED):
        yield ToolCall("3", "Bash", tool_input(text), state, 0.0, text=text, display_name=text[:100])


def outputs_with(text: str) -> Iterator[tuple[str, Bundle]]:
    for name, render in TURN.items():
        yield name, render(text)
    calls = list(calls_with(text))
    for call in calls:
        yield f"{call.name[:30]} {call.state.value}", render_call(call, now=9.0, project="/home/me/project")
    yield "checklist", render_checklist(calls)
    quiet = [ToolCall(str(n), "Read", tool_input(text), CallState.DONE, text=text) for n in range(5)]
    yield "folded group", render_group(quiet)
    agent = ToolCall("5", "Task", tool_input(text), CallState.DONE, text=text, children=quiet)
    yield "sub-agent", render_call(agent)
