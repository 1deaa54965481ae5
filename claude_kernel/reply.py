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


async def collect_reply(turn: AsyncIterator[events.Event]) -> Reply:
    texts: list[str] = []
    tools: list[str] = []
    async for event in turn:
        if isinstance(event, events.TextFinished | events.LocalCommandPrinted):
            if getattr(event, "parent", None) is None:
                texts.append(event.text)
        elif isinstance(event, events.ToolStarted):
            tools.append(event.name)
        elif isinstance(event, events.TurnEnded):
            return _to_reply(event, texts, tools)
    raise AssertionError("a turn ends with TurnEnded")


def _to_reply(ended: events.TurnEnded, texts: list[str], tools: list[str]) -> Reply:
    if ended.outcome is not events.Outcome.FINISHED:
        message = ended.error or f"The turn ended early: {ended.outcome.value}."
        raise TurnFailed(message, outcome=ended.outcome.value, session_id=ended.session_id)
    return Reply(
        text="\n\n".join(texts) or ended.text,
        data=ended.structured,
        cost=ended.usage.cost_usd,
        session_id=ended.session_id,
        seconds=ended.seconds,
        usage=ended.usage,
        tools=tuple(tools),
    )
