"""A tool call as the screen keeps it and the renderers see it. It renders nothing and publishes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from claude_kernel.protocol.events import Image, Json, ToolFinished, ToolStarted


class CallState(Enum):
    RUNNING = "running"
    WAITING = "waiting for you"
    HELD = "waiting for a cell to ask you in"
    DONE = "done"
    FAILED = "failed"
    DENIED = "denied"
    INTERRUPTED = "interrupted"


ENDED = frozenset({CallState.DONE, CallState.FAILED, CallState.DENIED, CallState.INTERRUPTED})


@dataclass
class ToolCall:
    """Times are seconds of any one clock; only their difference is shown."""

    id: str
    name: str
    input: dict[str, Json] = field(default_factory=dict)
    state: CallState = CallState.RUNNING
    started: float | None = None
    finished: float | None = None
    text: str = ""
    images: tuple[Image, ...] = ()
    result: Json = None
    """The CLI's structured result; its shape is the tool's own."""
    kept_at: str = ""
    """Where the whole of a long result can be read."""
    display_name: str = ""
    parent: str | None = None
    children: list[ToolCall] = field(default_factory=list)
    """The steps of a sub-agent."""

    @classmethod
    def begun(cls, event: ToolStarted, now: float | None = None) -> ToolCall:
        return cls(
            id=event.tool_use_id,
            name=event.name,
            input=event.input,
            started=now,
            display_name=event.display_name,
            parent=event.parent,
        )

    def end(self, event: ToolFinished, now: float | None = None) -> None:
        self.finished = now
        self.text, self.images, self.result = event.text, event.images, event.result
        if event.refused is not None:
            self.state = CallState.DENIED
        else:
            self.state = CallState.FAILED if event.is_error else CallState.DONE

    def interrupt(self, now: float | None = None) -> None:
        """The turn ended before the call did."""
        if self.state not in ENDED:
            self.state, self.finished = CallState.INTERRUPTED, now
        for child in self.children:
            child.interrupt(now)

    def seconds(self, now: float | None = None) -> float | None:
        end = self.finished if self.finished is not None else now
        return None if self.started is None or end is None else max(0.0, end - self.started)
