"""What one output of a turn is made of: runs of text, rows of tool calls, the checklist, fixed bundles.

A piece knows how to render itself and whether it can still change. It publishes nothing and keeps no time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from claude_kernel.render import (
    ENDED,
    Bundle,
    MarkdownSplitter,
    ToolCall,
    join_bundles,
    render_checklist,
    render_group,
    render_text,
    render_thinking,
)


class Piece(Protocol):
    @property
    def settled(self) -> bool:
        """It will not change any more."""

    def render(self, now: float, project: str) -> Bundle: ...


@dataclass(eq=False)
class Fixed:
    """A bundle that is final."""

    bundle: Bundle
    settled: bool = True

    def render(self, _now: float, _project: str) -> Bundle:
        return self.bundle


@dataclass(eq=False)
class Prose:
    """Text that grows. Segments that can no longer change are handed back, to be fixed where they stand."""

    splitter: MarkdownSplitter
    finished: bool = False

    @property
    def settled(self) -> bool:
        return self.finished

    def feed(self, text: str, minimum: int) -> list[str]:
        self.splitter.minimum = minimum
        return self.splitter.feed(text)

    def render(self, _now: float, project: str) -> Bundle:
        return render_text(self.splitter.tail, project=project, definitions=self.splitter.definitions)


@dataclass(eq=False)
class Thought:
    text: str = ""
    seconds: float | None = None
    finished: bool = False


@dataclass(eq=False)
class Rows:
    """Thoughts and tool calls in a row, in the order in which they began."""

    items: list[Thought | ToolCall] = field(default_factory=list)
    growing: bool = True

    @property
    def settled(self) -> bool:
        return not self.growing and all(
            item.finished if isinstance(item, Thought) else item.state in ENDED for item in self.items
        )

    def render(self, now: float, project: str) -> Bundle:
        bundles: list[Bundle] = []
        run: list[ToolCall] = []
        for item in [*self.items, None]:
            if isinstance(item, ToolCall):
                run.append(item)
                continue
            if run:
                last = item is None and self.growing
                bundles.append(render_group(run, live=last, now=now, project=project))
                run = []
            if isinstance(item, Thought):
                bundles.append(render_thinking(item.text, item.seconds, streaming=not item.finished))
        return join_bundles(bundles)


@dataclass(eq=False)
class Checklist:
    """The turn's one checklist; every later call to a task tool changes it where it stands."""

    calls: list[ToolCall] = field(default_factory=list)
    growing: bool = True

    @property
    def settled(self) -> bool:
        return not self.growing

    def render(self, _now: float, _project: str) -> Bundle:
        return render_checklist(self.calls)


@dataclass(eq=False)
class Foreign:
    """An output whose content is somebody else's until it is settled: the card of a question."""

    mime: dict[str, Any] = field(default_factory=dict)
    bundle: Bundle | None = None

    @property
    def settled(self) -> bool:
        return self.bundle is not None

    def render(self, _now: float, _project: str) -> Bundle:
        return self.bundle or Bundle("", "")


@dataclass(eq=False)
class Block:
    """One output: its pieces from top to bottom, and what is known of how it was last shown."""

    display_id: str
    pieces: list[Piece] = field(default_factory=list)
    settled_bytes: int = 0
    shown_bytes: int = 0
    grown: int = 0
    """Characters of text since it was last shown."""
    shown_at: float = float("-inf")
    dirty: bool = True
    closed: bool = False
    """Nothing is added to it; calls in it may still end."""
    final: bool = False
    """It was shown as it will stay, with its plain text."""
    _cache: dict[int, Bundle] = field(default_factory=dict)

    def add(self, piece: Piece) -> None:
        self.pieces.append(piece)
        self.dirty = True

    def changed(self, piece: Piece) -> None:
        """It is not what it was, though it may have settled: an agent that came home after its cell ended."""
        forgotten = self._cache.pop(next(index for index, held in enumerate(self.pieces) if held is piece), None)
        self.settled_bytes -= len(forgotten.html) if forgotten is not None else 0
        self.dirty, self.final = True, False

    def needs_showing(self) -> bool:
        return self.dirty or (self.settled and not self.final)

    @property
    def settled(self) -> bool:
        return self.closed and all(piece.settled for piece in self.pieces)

    def render(self, now: float, project: str) -> Bundle:
        bundles = []
        for index, piece in enumerate(self.pieces):
            bundle = self._cache.get(index)
            if bundle is None:
                bundle = piece.render(now, project)
                if piece.settled:
                    self._cache[index] = bundle
                    self.settled_bytes += len(bundle.html)
            bundles.append(bundle)
        return join_bundles(bundles)

    def find(self, call: ToolCall) -> Rows | None:
        rows = (piece for piece in self.pieces if isinstance(piece, Rows))
        return next((piece for piece in rows if any(item is call for item in piece.items)), None)
