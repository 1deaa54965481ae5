"""What is known around a question: the project, the calls and agents of this conversation. It asks nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from claude_kernel.protocol import events

Kept = TypeVar("Kept")

_MOST_KEPT = 2_000
_LARGEST_COMPARED_BYTES = 1_000_000


class Scene(msgspec.Struct):
    """Filled by the conversation from the events it sees; read by whoever words a question."""

    project: str = ""
    calls: dict[str, events.ToolStarted] = msgspec.field(default_factory=dict)
    agents: dict[str, events.TaskStarted] = msgspec.field(default_factory=dict)
    withdrawn: dict[str, str] = msgspec.field(default_factory=dict)
    """Why a question is no longer asked, by its id."""
    unanswered: list[events.Question] = msgspec.field(default_factory=list)
    """What was refused because nobody could be asked."""

    def note(self, event: events.Event) -> None:
        if isinstance(event, events.ToolStarted):
            _keep(self.calls, event.tool_use_id, event)
        elif isinstance(event, events.TaskStarted):
            _keep(self.agents, event.task_id, event)
        elif isinstance(event, events.QuestionWithdrawn):
            _keep(self.withdrawn, event.question_id, event.reason)

    def find_plan(self, question: events.Question) -> str:
        """The request's own input may be empty, with the plan in the tool call (scene `plan`, CLI 2.1.326), or in the
        plan file that Claude wrote before."""
        call = self.calls.get(question.tool_use_id or "")
        for held in (question.input, call.input if call else {}):
            plan = held.get("plan")
            if isinstance(plan, str) and plan.strip():
                return plan
        return next(_written_plans(reversed(self.calls.values())), "")

    def find_agent(self, question: events.Question) -> str:
        """What the sub-agent that asks was sent to do; empty where the conversation itself asks."""
        agent = self.agents.get(question.agent_id or "")
        if agent is not None:
            return agent.description or agent.agent or agent.task_id
        return "an agent" if question.agent_id else ""

    def path(self, given: str) -> Path:
        return Path(self.project or ".", os.path.expanduser(given))

    def short_path(self, given: str) -> str:
        """Relative to the project inside it, whole outside."""
        return given if self.is_outside(given) else given.removeprefix(self.project.rstrip(os.sep) + os.sep)

    def is_outside(self, given: str) -> bool:
        if not self.project:
            return False
        inside, project = os.path.realpath(self.path(given)), os.path.realpath(self.project)
        return inside != project and not inside.startswith(project.rstrip(os.sep) + os.sep)

    def read_before(self, question: events.Question) -> str | None:
        """The text of the file that is about to be changed; None where there is none, or none to compare."""
        given = question.input.get("file_path")
        if question.tool_name not in ("Edit", "MultiEdit", "Write") or not isinstance(given, str):
            return None
        path = self.path(given)
        try:
            # Never a pipe or a device: opening one can wait for ever.
            if not path.is_file() or path.stat().st_size > _LARGEST_COMPARED_BYTES:
                return None
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None


def _keep(kept: dict[str, Kept], key: str, value: Kept) -> None:
    if len(kept) >= _MOST_KEPT:
        del kept[next(iter(kept))]
    kept[key] = value


def _written_plans(calls: Iterable[events.ToolStarted]) -> Iterator[str]:
    for call in calls:
        path, content = call.input.get("file_path"), call.input.get("content")
        written = call.name == "Write" and isinstance(path, str) and path.endswith(".md") and "/plans/" in path
        if written and isinstance(content, str) and content.strip():
            yield content
