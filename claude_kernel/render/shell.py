"""Bodies for the tools that run commands."""

from __future__ import annotations

import re

from claude_kernel.render.bundle import Part, join_parts
from claude_kernel.render.calls import CallState, ToolCall
from claude_kernel.render.rows import (
    Note,
    View,
    compose_code,
    compose_output,
    compose_quiet,
    error_text,
    text_in,
)

_EXIT = re.compile(r"\A(?:Error: )?Exit code (\d{1,3})\n?")
_KEPT_AT = re.compile(r"Full output saved to: (\S+)")
_SHORT_COMMAND = 48  # surely whole in its row, also in a narrow window


def command_of(call: ToolCall, view: View) -> str:  # noqa: ARG001  # a column of the table
    return text_in(call.input, "command")


def exit_note(call: ToolCall, view: View) -> tuple[Note, ...]:  # noqa: ARG001  # a column of the table
    found = _EXIT.match(error_text(call.text)) if call.state is CallState.FAILED else None
    return ((f"✗ exit {found[1]}", "no"),) if found else ()


def shell_body(call: ToolCall, view: View) -> Part:
    command = text_in(call.input, "command")
    parts = []
    if len(command) > _SHORT_COMMAND or "\n" in command:
        parts.append(compose_code(command, "bash", view.room.shrunk(0.4), exact=True))
    output = compose_output(_printed(call), view.room.shrunk(0.8), _kept_at(call))
    if output.html:
        parts.append(output)
    elif text_in(call.result, "backgroundTaskId"):
        parts.append(compose_quiet("Running in the background."))
    elif call.state is CallState.DONE:
        parts.append(compose_quiet("No output."))
    elif not parts:
        parts.append(compose_code(command, "bash", view.room, exact=True))
    return join_parts(parts)


def shell_plain(call: ToolCall, view: View) -> Part:
    """The row already names the command, unless there is more of it than a row can hold."""
    output = compose_output(_printed(call), view.room, _kept_at(call))
    command = text_in(call.input, "command").strip()
    if "\n" not in command:
        return output
    return join_parts([compose_code(command, "", view.room, exact=True), output])


def _printed(call: ToolCall) -> str:
    """The structured result keeps the two streams apart; a failure has only its text."""
    result = call.result
    if isinstance(result, dict) and isinstance(result.get("stdout"), str):
        return "\n".join(part.strip("\n") for part in (result["stdout"], text_in(result, "stderr")) if part.strip())
    return _EXIT.sub("", error_text(call.text))


def _kept_at(call: ToolCall) -> str:
    """The CLI saves a long output and says where, in the text for the model (tests/transcripts/big_result.jsonl)."""
    found = _KEPT_AT.search(call.text[:1_000])
    return call.kept_at or text_in(call.result, "persistedOutputPath") or (found[1] if found else "")


def code_of(call: ToolCall, view: View) -> str:  # noqa: ARG001  # a column of the table
    lines = [line.strip() for line in text_in(call.input, "code").splitlines()]
    return next((line for line in lines if line and not line.startswith("#")), "")


def code_body(call: ToolCall, view: View) -> Part:
    """The code: what it printed and drew stands in the notebook, below it. Of a failure, the last line says why."""
    code = compose_code(text_in(call.input, "code"), "python", view.room, exact=True)
    if call.state is not CallState.FAILED:
        return code
    why = error_text(call.text).strip().rpartition("\n")[2]
    return join_parts([code, compose_output(why, view.room.at_most(4, 1_000), "")])


def shell_id(call: ToolCall, view: View) -> str:  # noqa: ARG001  # a column of the table
    return text_in(call.input, "bash_id", "shell_id", "task_id", "id")
