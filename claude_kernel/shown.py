"""A turn as a front end sees it: the seam between the conversation and whatever shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypedDict, Unpack

from claude_kernel.protocol import events
from claude_kernel.recording import Entry
from claude_kernel.render import Bundle


class Finish(TypedDict):
    """What the end of a turn tells besides its event."""

    last: list[Bundle]
    interrupted: bool
    spent_usd: float | None
    """By the whole notebook."""
    changed: int
    """How many files."""


class Shown(Protocol):
    """A turn as a front end sees it: `Screen`, or `Console` where outputs cannot be updated."""

    metadata: dict[str, Any]
    on_record: Callable[[Bundle], None]

    def begin(self) -> None: ...
    def take(self, event: events.Event) -> None: ...
    def notice(self, bundle: Bundle) -> None: ...
    def waiting(self, waiting: bool) -> None: ...
    def make_room(self) -> None: ...
    def close_room(self) -> None: ...
    def replay(self, past: list[Entry], seconds: float) -> None: ...
    def leave(self) -> None: ...
    def finish(self, ended: events.TurnEnded | None, **how: Unpack[Finish]) -> None: ...
