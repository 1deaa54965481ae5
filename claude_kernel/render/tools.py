"""The table of tools: one row each, and how a call and a run of calls are shown. Pure; it publishes nothing.

A new tool is one row here and, if its body is like no other, one function beside its kin (`shell`, `files`, `plans`,
`web`). Tools not in the table get a row that shows their input and what they answered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from claude_kernel.render import files, plans, shell, web
from claude_kernel.render.bundle import Bundle, Part, join_parts, publish
from claude_kernel.render.calls import CallState, ToolCall
from claude_kernel.render.cut import Room, count_of, cut_text
from claude_kernel.render.figures import seconds_text, tokens_text
from claude_kernel.render.pictures import compose_images
from claude_kernel.render.rows import (
    EMPTY,
    Note,
    View,
    compose_code,
    compose_output,
    compose_prose,
    compose_quiet,
    compose_row,
    error_text,
    list_in,
    number_in,
    pretty_json,
    text_in,
)

MOST_BYTES = 36_000
"""Of a call's HTML, images aside. With its plain text a result of any size stays under 50 KB."""

FOLD_FROM = 4
"""This many quiet calls in a row become one line."""

_STILL_SHOWN = 3
_MOST_CHILDREN = 60
_DEEPEST = 4
_GROUP_CHARS = 60_000
_PLAIN = Room(lines=60, chars=4_000)

_Subject = Callable[[ToolCall, View], str]
_Measure = Callable[[ToolCall, View], tuple[Note, ...]]
_Body = Callable[[ToolCall, View], Part]


def _no_note(call: ToolCall, view: View) -> tuple[Note, ...]:  # noqa: ARG001  # a column of the table
    return ()


@dataclass(frozen=True)
class Tool:
    title: str
    subject: _Subject = web.generic_subject
    measure: _Measure = _no_note
    body: _Body = web.generic_body
    plain: _Body | None = None
    """What the plain text shows even of a closed row."""
    opens: bool = False
    """Open once it is done. A failure is open whatever the tool."""
    folds: bool = True
    """May disappear into "12 steps"."""
    timed: bool = False
    """Its duration is of interest even if short."""
    prints: bool = False
    """Its body shows what it printed, also when it failed."""
    in_notebook: bool = False
    """What it showed stands in the notebook already."""


def _agent_subject(call: ToolCall, view: View) -> str:  # noqa: ARG001  # a column of the table
    return text_in(call.input, "description", "prompt", "subagent_type")


def _agent_note(call: ToolCall, view: View) -> tuple[Note, ...]:  # noqa: ARG001  # a column of the table
    steps = len(call.children) or number_in(call.result, "totalToolUseCount") or 0
    tokens = number_in(call.result, "totalTokens")
    told = [count_of(steps, "step") if steps else "", f"{tokens_text(tokens)} tokens" if tokens else ""]
    return ((" · ".join(word for word in told if word), ""),)


def _agent_body(call: ToolCall, view: View) -> Part:
    """Its steps, then what it came home with. The launch notice of a background agent is meant for the model only."""
    shown = call.children[-_MOST_CHILDREN:]
    narrow = replace(view, room=view.room.shrunk(1 / max(3, len(shown))), depth=view.depth + 1)
    earlier = len(call.children) - len(shown)
    parts = [compose_quiet(f"{count_of(earlier, 'earlier step')} not shown")] if earlier else []
    if view.depth >= _DEEPEST:
        parts.append(compose_quiet(f"{count_of(len(shown), 'step')} not shown"))
    elif shown:
        steps = compose_group(shown, narrow, live=call.state is CallState.RUNNING)
        parts.append(Part(f'<div class="sub">{steps.html}</div>', steps.text))
    background = isinstance(call.result, dict) and call.result.get("isAsync") is True
    if background:
        parts.append(compose_quiet("Working in the background."))
    elif call.state is CallState.DONE:
        report = _report(call)
        room = view.with_room(view.room.at_most(60, 6_000))
        parts.append(compose_prose(report, room) if report else compose_quiet("No report."))
    elif not parts:
        parts.append(compose_prose(text_in(call.input, "prompt"), view.with_room(view.room.at_most(30, 3_000))))
    return join_parts(parts)


def _report(call: ToolCall) -> str:
    """The agent's own words; the text of the result wraps them in notes for the model (subagent_tools.jsonl)."""
    said = [text_in(block, "text") for block in list_in(call.result, "content")]
    own = [words for words in said if not words.startswith("<tools-used-before-summary>")]
    structured = isinstance(call.result, dict) and isinstance(call.result.get("content"), list)
    return "\n\n".join(own).strip() if structured else call.text.strip()


_READ = Tool("Read", files.path_of, files.read_note, files.read_body)
_CHANGE = Tool("Edit", files.path_of, files.change_note, files.change_body, opens=True, folds=False)
_FIND = Tool("Find", files.pattern_of, files.search_note, files.search_body)
_SHELL = Tool("Bash", shell.command_of, shell.exit_note, shell.shell_body, shell.shell_plain, timed=True, prints=True)
_AGENT = Tool("Agent", _agent_subject, _agent_note, _agent_body, folds=False, timed=True)
_TASK = Tool("Task", plans.task_subject, _no_note, plans.task_body)
_PLAN = Tool("Plan", plans.plan_subject, _no_note, plans.plan_body, opens=True, folds=False)
_PYTHON = Tool(
    "Python", shell.code_of, body=shell.code_body, opens=True, folds=False, timed=True, prints=True, in_notebook=True
)
_GENERIC = Tool("", timed=True)

TOOLS: dict[str, Tool] = {
    "Bash": _SHELL,
    "BashOutput": replace(_SHELL, title="Output of", subject=shell.shell_id, timed=False),
    "TaskOutput": replace(_SHELL, title="Output of", subject=shell.shell_id, timed=False),
    "KillShell": Tool("Stop", shell.shell_id),
    "TaskStop": Tool("Stop", shell.shell_id),
    "Read": _READ,
    "NotebookRead": _READ,
    "Write": replace(_CHANGE, title="Write"),
    "Edit": _CHANGE,
    "MultiEdit": _CHANGE,
    "NotebookEdit": replace(_CHANGE, title="Edit cell"),
    "Grep": Tool("Search", files.search_subject, files.search_note, files.search_body),
    "Glob": _FIND,
    "LS": replace(_FIND, title="List", subject=files.path_of),
    "WebFetch": Tool("Fetch", measure=web.fetch_note, body=web.fetch_body, timed=True),
    "WebSearch": Tool("Search the web", measure=web.web_search_note, body=web.web_search_body, timed=True),
    "TodoWrite": Tool("Plan", plans.checklist_subject, _no_note, plans.checklist_body, opens=True, folds=False),
    "TaskCreate": replace(_TASK, title="New task"),
    "TaskUpdate": _TASK,
    "TaskGet": _TASK,
    "TaskList": replace(_TASK, title="Tasks"),
    "Task": _AGENT,
    "Agent": _AGENT,
    "AskUserQuestion": Tool(
        "Question", plans.question_subject, plans.question_note, plans.question_body, opens=True, folds=False
    ),
    "EnterPlanMode": Tool("Plan mode"),
    "ExitPlanMode": _PLAN,
    "Skill": Tool("Skill"),
    "SlashCommand": Tool("Command"),
    "ToolSearch": Tool("Look for tools"),
    "mcp__notebook__run_python": _PYTHON,
    "mcp__notebook__list_variables": Tool("Variables"),
    "mcp__notebook__inspect_variable": Tool("Look at"),
    "mcp__notebook__read_cells": Tool("Read cells"),
    "mcp__notebook__show_figure": Tool("Look at the figures"),
    "mcp__notebook__add_cell": Tool("New cell"),
    "StructuredOutput": Tool("Answer", body=web.structured_body, opens=True, folds=False),
}


def find_tool(call: ToolCall) -> Tool:
    """`mcp__server__tool` is titled "server: tool"; an unknown tool by its own name."""
    if call.name in TOOLS:
        return TOOLS[call.name]
    server, _, name = call.name.removeprefix("mcp__").partition("__")
    if call.name.startswith("mcp__") and name:
        return replace(_GENERIC, title=f"{server[:40]}: {(call.display_name or name)[:60].replace('_', ' ')}")
    return replace(_GENERIC, title=(call.display_name or call.name or "Tool")[:80])


# --- one call -------------------------------------------------------------------------------------------------------

_STATE_NOTES: dict[CallState, Note] = {
    CallState.RUNNING: ("running", "d"),
    CallState.WAITING: ("waiting for you", "q"),
    CallState.HELD: ("asks you: run any cell to answer", "q"),
    CallState.DONE: ("✓", "ok"),
    CallState.FAILED: ("✗ failed", "no"),
    CallState.DENIED: ("denied", "d"),
    CallState.INTERRUPTED: ("interrupted", "d"),
}
_UNTIMED = (CallState.WAITING, CallState.HELD, CallState.DENIED)
_WORTH_TELLING_SECONDS = 2.0


def _notes(call: ToolCall, tool: Tool, view: View) -> list[Note]:
    notes = list(tool.measure(call, view))
    seconds = call.seconds(view.now)
    if seconds is not None and call.state not in _UNTIMED and (tool.timed or seconds >= _WORTH_TELLING_SECONDS):
        notes.insert(1 if notes and not notes[0][0].startswith("✗") else 0, (seconds_text(seconds), ""))
    if not any(text.startswith("✗") for text, _ in notes):
        notes.append(_STATE_NOTES[call.state])
    return notes


def _opens(call: ToolCall, tool: Tool) -> bool:
    return call.state is CallState.FAILED or (tool.opens and call.state is CallState.DONE)


def _ending(call: ToolCall, tool: Tool, view: View) -> Part:
    """Why it failed or never ran."""
    if call.state is CallState.FAILED and not tool.prints:
        return compose_output(error_text(call.text), view.room.at_most(40, 4_000), call.kept_at)
    if call.state is CallState.DENIED and call.text.strip():
        return compose_quiet("Not run: " + error_text(call.text))
    return EMPTY


def compose_call(call: ToolCall, view: View) -> Part:
    tool = find_tool(call)
    body = join_parts([tool.body(call, view), _ending(call, tool, view)])
    pictures = compose_images(call.images) if call.images and not tool.in_notebook else EMPTY
    if not body.html and not pictures.html:
        given = compose_code(pretty_json(call.input), "json", view.room, exact=True) if call.input else None
        body = Part(given.html if given else compose_quiet("No input.").html, "")
    body = join_parts([body, pictures])
    opened = _opens(call, tool) or bool(pictures.html)
    plain = body if opened else tool.plain(call, view.with_room(Room(20, 2_000))) if tool.plain else EMPTY
    plain = Part("", cut_text(plain.text, _PLAIN).joined())
    return compose_row(tool.title, tool.subject(call, view), _notes(call, tool, view), body, opened=opened, plain=plain)


def render_call(call: ToolCall, *, now: float | None = None, project: str = "") -> Bundle:
    """`now` is the clock that `call.started` was read from; a running call then says how long it has run."""
    allowed = MOST_BYTES + sum(len(image.data) for image in call.images)
    for factor in (1.0, 0.4, 0.15, 0.05):
        bundle = publish(compose_call(call, View(now, project, Room().shrunk(factor))))
        if len(bundle.html.encode()) <= allowed:
            break
    return bundle


# --- runs of calls --------------------------------------------------------------------------------------------------


def is_quiet(call: ToolCall) -> bool:
    """Done, closed and with nothing to look at: it may fold away."""
    return call.state is CallState.DONE and find_tool(call).folds and not call.images


def render_group(
    calls: Sequence[ToolCall], *, live: bool = False, now: float | None = None, project: str = ""
) -> Bundle:
    """A run of calls in one output. `live` while more may follow (see `compose_group`)."""
    for factor in (1.0, 0.3, 0.1):
        room = Room().shrunk(factor * min(1.0, _GROUP_CHARS / Room().chars / max(1, len(calls))))
        bundle = publish(compose_group(calls, View(now, project, room), live=live))
        if bundle.size <= 4 * MOST_BYTES:
            break
    return bundle


def compose_group(calls: Sequence[ToolCall], view: View, *, live: bool = False) -> Part:
    """Runs of quiet calls fold into one line.

    While the run still grows its last rows stay in sight and only those before them fold: the height grows to four
    rows and then stands still, where folding at the fourth would make the page jump.
    """
    parts: list[Part] = []
    run: list[ToolCall] = []
    for call in calls:
        if is_quiet(call):
            run.append(call)
        else:
            parts += _fold(run, view, shown=0)
            run = []
            parts.append(compose_call(call, view))
    parts += _fold(run, view, shown=_STILL_SHOWN if live else 0)
    return join_parts(parts)


def _fold(run: Sequence[ToolCall], view: View, shown: int) -> Iterable[Part]:
    rows = [compose_call(call, view) for call in run]
    if len(run) < FOLD_FROM + (1 if shown else 0):
        return rows
    hidden = len(run) - shown
    return [_folded(run[:hidden], rows[:hidden], view), *rows[hidden:]]


def _folded(run: Sequence[ToolCall], rows: Sequence[Part], view: View) -> Part:
    tallies = Counter(find_tool(call).title for call in run)
    told = ", ".join(f"{title} {count}" if count > 1 else title for title, count in tallies.most_common(8))
    seconds = sum(call.seconds(view.now) or 0.0 for call in run)
    notes: list[Note] = [(seconds_text(seconds), "") if seconds >= _WORTH_TELLING_SECONDS else ("", ""), ("✓", "ok")]
    steps = join_parts(rows)
    body = Part(f'<div class="sub">{steps.html}</div>', steps.text)
    return compose_row(count_of(len(run), "step"), told, notes, body, opened=False, plain=steps)


def render_checklist(calls: Sequence[ToolCall]) -> Bundle:
    """The one checklist of a turn, as it stands after these calls."""
    items = plans.gather_checklist(calls)
    refused = [call for call in calls if call.state in (CallState.FAILED, CallState.DENIED)]
    if not items and refused:  # there is no list, and a reason
        return publish(compose_call(refused[-1], View()))
    body = plans.compose_checklist(items)
    opened = bool(items)
    plain = body if opened else EMPTY
    return publish(compose_row("Plan", plans.progress_of(items), [], body, opened=opened, plain=plain))
