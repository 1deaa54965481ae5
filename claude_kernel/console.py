"""A turn in plain text, for front ends that only append: `jupyter console`, qtconsole. No HTML, no updates.

Claude's words are written as they come; everything else is one line, or a few, when it has happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from claude_kernel.paper import Paper
from claude_kernel.protocol import events as ev
from claude_kernel.render import (
    CHECKLIST_TOOLS,
    Bundle,
    ToolCall,
    render_call,
    render_checklist,
    render_compacted,
    render_footer,
    render_interrupted,
    render_notice,
    render_printed,
    render_rate_limit,
    render_thinking,
)
from claude_kernel.render.ansi import strip_ansi
from claude_kernel.render.visible import loose_text


class Console:
    """The same promises as `Screen`, on paper that cannot be rubbed out."""

    def __init__(self, paper: Paper, *, project: str = "") -> None:
        self._paper = paper
        self._project = project
        self._loop = asyncio.get_running_loop()
        self._replaying: float | None = None
        self._began = self._clock()
        self._calls: dict[str, ToolCall] = {}
        self._model = ""
        self._in_text = False
        self._held = ""
        self.metadata: dict[str, Any] = {}
        self.on_record: Callable[[Bundle], None] = lambda _bundle: None

    def begin(self) -> None:
        """Nothing to show before there is something to say."""

    def take(self, event: ev.Event) -> None:
        row = _TAKE.get(type(event))
        if row is not None:
            row(self, event)

    def replay(self, past: list[tuple[float, ev.Event | Bundle]], seconds: float) -> None:
        self._began = self._clock() - seconds
        for when, what in past:
            self._replaying = self._began + when
            if isinstance(what, Bundle):
                self._line(what.text)
            else:
                self.take(what)
        self._replaying = None

    def leave(self) -> None:
        self.on_record = lambda _bundle: None
        self._line(render_notice("This turn goes on in another cell.").text)

    def notice(self, bundle: Bundle) -> None:
        self.on_record(bundle)
        self._line(bundle.text)

    def waiting(self, waiting: bool) -> None:
        """The question itself is what is seen."""

    def make_room(self) -> None:
        """Code will print lines of its own."""
        self._end_text()

    def close_room(self) -> None:
        """Nothing stands below what was printed."""

    def finish(
        self,
        ended: ev.TurnEnded | None,
        *,
        last: list[Bundle],
        interrupted: bool,
        spent_usd: float | None = None,
        changed: int = 0,
    ) -> None:
        for bundle in [*last, *([render_interrupted()] if interrupted else [])]:
            self._line(bundle.text)
        usage = ended.usage if ended is not None else ev.Usage()
        seconds = self._clock() - self._began
        footer = render_footer(usage, seconds=seconds, model=self._model, notebook_cost_usd=spent_usd, changed=changed)
        self._line(footer.text)

    def _text(self, event: ev.TextStreamed) -> None:
        if event.parent is not None:
            return
        self._in_text = True
        # An escape sequence may be cut between two increments: hold its beginning back until the rest has come.
        text = self._held + event.text
        cut = text.rfind("\x1b")
        self._held = text[cut:] if cut >= 0 and len(text) - cut < 64 and event.text else ""
        ready = text[: len(text) - len(self._held)] if self._held else text
        self._paper.write(loose_text(strip_ansi(ready)))

    def _text_finished(self, event: ev.TextFinished) -> None:
        if event.parent is None:
            self._end_text()

    def _end_text(self) -> None:
        if self._in_text:
            self._paper.write(loose_text(strip_ansi(self._held)) + "\n\n")
            self._in_text, self._held = False, ""

    def _thought(self, event: ev.ThinkingFinished) -> None:
        if event.parent is None:
            self._line(render_thinking(event.text, event.seconds).text)

    def _tool_started(self, event: ev.ToolStarted) -> None:
        call = self._calls[event.tool_use_id] = ToolCall.begun(event, self._clock())
        parent = self._calls.get(event.parent or "")
        if parent is not None:
            parent.children.append(call)

    def _tool_finished(self, event: ev.ToolFinished) -> None:
        call = self._calls.get(event.tool_use_id)
        if call is None:
            return
        call.end(event, self._clock())
        if call.parent is not None:
            return
        if call.name in CHECKLIST_TOOLS:
            done = [known for known in self._calls.values() if known.name in CHECKLIST_TOOLS]
            self._line(render_checklist(done).text)
        else:
            self._line(render_call(call, now=self._clock(), project=self._project).text)

    def _started(self, event: ev.SessionStarted) -> None:
        self._model = event.model

    def _printed(self, event: ev.LocalCommandPrinted) -> None:
        if event.text.strip():
            self._line(render_printed(event.text).text)

    def _compacted(self, event: ev.ConversationCompacted) -> None:
        self._line(render_compacted(event).text)

    def _limited(self, event: ev.RateLimited) -> None:
        if event.status not in ("", "allowed"):
            self._line(render_rate_limit(event).text)

    def _lost(self, _event: ev.ConversationLost) -> None:
        self._line(render_notice("The conversation so far could not be resumed; this is a new one.").text)

    def _clock(self) -> float:
        return self._loop.time() if self._replaying is None else self._replaying

    def _line(self, text: str) -> None:
        if text:
            self._end_text()
            self._paper.write(text + "\n\n")


_TAKE: dict[type, Callable[[Console, Any], None]] = {
    ev.TextStreamed: Console._text,
    ev.TextFinished: Console._text_finished,
    ev.ThinkingFinished: Console._thought,
    ev.ToolStarted: Console._tool_started,
    ev.ToolFinished: Console._tool_finished,
    ev.SessionStarted: Console._started,
    ev.LocalCommandPrinted: Console._printed,
    ev.ConversationCompacted: Console._compacted,
    ev.RateLimited: Console._limited,
    ev.ConversationLost: Console._lost,
}
