"""A turn's answer as one value: what a program wants of it. It knows events, not how they came."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec

from claude_kernel.errors import TurnFailed
from claude_kernel.protocol import events

_FENCE = re.compile(
    r"^(?P<fence>```+|~~~+)[ \t]*(?P<language>[^\s`]*)[^\n]*\n(?P<code>.*?)^(?P=fence)[ \t]*$", re.M | re.S
)


class CodeBlock(NamedTuple):
    language: str
    code: str


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    """All that Claude said in this turn, sub-agents left out."""
    data: Any = None
    """The structured answer, where a JSON schema was asked for."""
    cost: float | None = None
    """US dollars, as the CLI counts them; `None` where it does not."""
    session_id: str = ""
    seconds: float | None = None
    usage: events.Usage = events.Usage()
    tools: tuple[str, ...] = ()
    """The tools used, in order."""

    @property
    def code(self) -> list[CodeBlock]:
        return [CodeBlock(found["language"], found["code"]) for found in _FENCE.finditer(self.text)]


class ReplyMaker:
    """Collects a turn's events; the reply is made of them when it has ended."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._tools: list[str] = []
        self._started: dict[str, events.ToolStarted] = {}
        self._files: list[str] = []

    def note(self, event: events.Event) -> None:
        if isinstance(event, events.TextFinished | events.LocalCommandPrinted):
            if getattr(event, "parent", None) is None:
                self._texts.append(event.text)
        elif isinstance(event, events.ToolStarted):
            self._tools.append(event.name)
            self._started[event.tool_use_id] = event
        elif isinstance(event, events.ToolFinished) and not event.is_error and event.parent is None:
            started = self._started.get(event.tool_use_id)
            path = changed_file(started) if started is not None else None
            if path is not None and path not in self._files:
                self._files.append(path)

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def files(self) -> tuple[str, ...]:
        """Those that Claude's own edits changed, so far; for those of agents Claude Code keeps no checkpoint."""
        return tuple(self._files)

    def make(self, ended: events.TurnEnded) -> Reply:
        """Raises `TurnFailed` where the turn did not come to its end."""
        if ended.outcome is not events.Outcome.FINISHED:
            message = ended.error or f"The turn ended early: {ended.outcome.value}."
            raise TurnFailed(message, outcome=ended.outcome.value, session_id=ended.session_id)
        return Reply(
            text="\n\n".join(self._texts) or ended.text,
            data=ended.structured,
            cost=ended.usage.cost_usd,
            session_id=ended.session_id,
            seconds=ended.seconds,
            usage=ended.usage,
            tools=self.tools,
        )


_EDITS = {"Write": "file_path", "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path"}


def changed_file(started: events.ToolStarted) -> str | None:
    """The file that a call of an editing tool is about."""
    path = started.input.get(_EDITS.get(started.name, ""))
    return path if isinstance(path, str) else None


async def collect_reply(turn: AsyncIterator[events.Event]) -> Reply:
    maker = ReplyMaker()
    async for event in turn:
        maker.note(event)
        if isinstance(event, events.TurnEnded):
            return maker.make(event)
    raise AssertionError("a turn ends with TurnEnded")
