"""Checklists, questions and plans: what Claude means to do and what it asked. It knows those tools' shapes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from claude_kernel.render.bundle import Part
from claude_kernel.render.calls import CallState, ToolCall
from claude_kernel.render.cut import count_of
from claude_kernel.render.rows import (
    EMPTY,
    Note,
    View,
    compose_list,
    compose_prose,
    compose_quiet,
    dict_in,
    list_in,
    text_in,
)
from claude_kernel.render.visible import loose_html, loose_text, one_line

CHECKLIST_TOOLS = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"})

_MOST_ITEMS = 60
_TASK_NUMBER = re.compile(r"#(\w{1,40})")

# status: its mark, its class, and the word that says it without colour
_MARKS = {
    "completed": ("✓", "ok"),
    "in_progress": ("◐", "q"),
    "pending": ("○", "d"),
    "deleted": ("×", "d"),
}


@dataclass(frozen=True)
class ChecklistItem:
    id: str
    text: str
    status: str = "pending"


def gather_checklist(calls: Iterable[ToolCall]) -> tuple[ChecklistItem, ...]:
    """The list as it stands after these calls: TodoWrite replaces it, the task tools change it item by item."""
    items: dict[str, ChecklistItem] = {}
    for call in calls:
        if call.state in (CallState.DENIED, CallState.FAILED):
            continue
        if call.name == "TodoWrite":
            items = {item.id: item for item in _todos(call)}
        elif call.name == "TaskList":
            items = {item.id: item for item in _listed(call)} or items
        elif call.name == "TaskCreate":
            item = _created(call, str(len(items) + 1))
            items[item.id] = item
        elif call.name == "TaskUpdate":
            key = text_in(call.input, "taskId", "task_id", "id")
            old = items.get(key, ChecklistItem(key, f"Task {key}"))
            text, status = text_in(call.input, "subject") or old.text, text_in(call.input, "status") or old.status
            items[key] = replace(old, text=text, status=status)
    return tuple(item for item in items.values() if item.status != "deleted")


def _todos(call: ToolCall) -> list[ChecklistItem]:
    todos = list_in(call.input, "todos") or list_in(call.result, "newTodos")
    return [
        ChecklistItem(str(n), text_in(todo, "content", "subject"), text_in(todo, "status"))
        for n, todo in enumerate(todos)
    ]


def _listed(call: ToolCall) -> list[ChecklistItem]:
    return [
        ChecklistItem(text_in(task, "id"), text_in(task, "subject", "content"), text_in(task, "status"))
        for task in list_in(call.result, "tasks")
    ]


def _created(call: ToolCall, fallback: str) -> ChecklistItem:
    named = _TASK_NUMBER.search(call.text)
    key = text_in(dict_in(call.result, "task"), "id") or (named[1] if named else fallback)
    return ChecklistItem(key, text_in(call.input, "subject", "description"))


def compose_checklist(items: tuple[ChecklistItem, ...]) -> Part:
    rows = []
    for item in items[:_MOST_ITEMS]:
        mark, name = _MARKS.get(item.status, _MARKS["pending"])
        text = one_line(item.text, 300)
        rows.append(Part(f'<span class="{name}">{mark}</span> {loose_html(text)}', f"{mark} {loose_text(text)}"))
    if len(items) > _MOST_ITEMS:
        more = f"{len(items) - _MOST_ITEMS:,} more"
        rows.append(Part(more, more))
    return compose_list(rows) if rows else compose_quiet("Nothing is on the list.")


def progress_of(items: tuple[ChecklistItem, ...]) -> str:
    if not items:
        return "no tasks"
    return f"{sum(item.status == 'completed' for item in items)} of {len(items)} done"


# --- as rows of the table -------------------------------------------------------------------------------------------


def checklist_subject(call: ToolCall, view: View) -> str:  # noqa: ARG001  # a column of the table
    return progress_of(gather_checklist([call]))


def checklist_body(call: ToolCall, view: View) -> Part:  # noqa: ARG001  # a column of the table
    if call.state in (CallState.DENIED, CallState.FAILED):
        return EMPTY
    return compose_checklist(gather_checklist([call]))


def question_subject(call: ToolCall, view: View) -> str:  # noqa: ARG001  # a column of the table
    return " ".join(text_in(question, "question") for question in list_in(call.input, "questions"))


def question_note(call: ToolCall, view: View) -> tuple[Note, ...]:  # noqa: ARG001  # a column of the table
    answers = dict_in(call.result, "answers")
    return ((count_of(len(answers), "answer"), ""),) if answers else ()


def question_body(call: ToolCall, view: View) -> Part:  # noqa: ARG001  # a column of the table
    answers = dict_in(call.result, "answers") or dict_in(call.input, "answers")
    rows = []
    for question in list_in(call.input, "questions")[:20]:
        asked = text_in(question, "question")
        given = answers.get(asked, "")
        answer = ", ".join(str(x) for x in given) if isinstance(given, list) else str(given)
        text, answer = one_line(asked, 500), one_line(answer, 500)
        said = f" <b>{loose_html(answer)}</b>" if answer else ""
        rows.append(Part(loose_html(text) + said, loose_text(f"{text} {answer}".strip())))
    return compose_list(rows)


def plan_subject(call: ToolCall, view: View) -> str:  # noqa: ARG001  # a column of the table
    first = _plan(call).strip().split("\n", 1)[0]
    return first.lstrip("# ") or "ready"


def plan_body(call: ToolCall, view: View) -> Part:
    plan = _plan(call)
    return compose_prose(plan, view) if plan.strip() else compose_quiet("No plan came with it.")


def _plan(call: ToolCall) -> str:
    return text_in(call.result, "plan") or text_in(call.input, "plan")


def task_subject(call: ToolCall, view: View) -> str:  # noqa: ARG001  # a column of the table
    status = text_in(call.input, "status").replace("_", " ")
    number = text_in(call.input, "taskId", "task_id", "id")
    name = text_in(call.input, "subject", "description") or (f"Task {number}" if number else "all tasks")
    return f"{name}: {status}" if status else name


def task_body(call: ToolCall, view: View) -> Part:  # noqa: ARG001  # a column of the table
    items = tuple(_listed(call))
    if items:
        return compose_checklist(items)
    described = text_in(call.input, "description") or (call.text if call.state is CallState.DONE else "")
    return compose_quiet(described) if described.strip() else EMPTY
