"""A turn on the screen: the only module that publishes. It owns display ids, repainting, and a cell's output budget.

Three rules keep streaming cheap and calm. What is settled is never sent again: text is cut into segments, and only
the last one is repainted, the slower the larger it is. The last output is always the live line; a new block takes its
place and a new line is shown below, so that nothing jumps, and at the end the line becomes the footer. The number of
outputs stays under what JupyterLab shows of a cell (50), because blocks grow the larger the more there are.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

from claude_kernel.paper import Paper
from claude_kernel.pieces import Block, Checklist, Fixed, Foreign, Piece, Prose, Rows, Thought
from claude_kernel.protocol import events as ev
from claude_kernel.render import (
    CHECKLIST_TOOLS,
    Bundle,
    CallState,
    MarkdownSplitter,
    ToolCall,
    render_compacted,
    render_footer,
    render_interrupted,
    render_live_line,
    render_notice,
    render_printed,
    render_rate_limit,
    render_text,
    render_trouble,
    style_tag,
)
from claude_kernel.render.doing import describe_call

FASTEST_REPAINT_SECONDS = 0.05
SHORTEST_TIMER_SECONDS = 0.01
REPAINT_BYTES_PER_SECOND = 10_000
TICK_SECONDS = 1.0
ROWS_IN_A_BLOCK = 12
RETRIES_BEFORE_A_WORD = 2
SLOW_START_SECONDS = 5.0
_STARTING = "Starting"

_RETRY_WORDS = {
    True: (
        "Claude cannot be reached so far.",
        "Claude Code tries again by itself. Check the network, or stop the cell if you do not want to wait.",
    ),
    False: (
        "Claude's service did not answer as it should.",
        "Claude Code tries again by itself, with longer and longer pauses; stop the cell if you do not want to wait.",
    ),
}
"""Title and remedy, by whether no server was reached at all."""

# How large a block may grow before the next one is begun, by the number of blocks there are.
_GROWTH = ((12, 4_096), (20, 16_384), (28, 65_536), (34, 262_144))
_LAST_GROWTH = 1 << 62
_HTML_PER_CHARACTER = 2  # from 1.1 for prose to 2.7 for tables and coloured code
_SEPARATE_BLOCKS = 20
"""Up to here text and rows stand in outputs of their own; beyond, they share."""
_MOST_BLOCKS = 44
"""From here on even a block that was closed, below an image, is opened again."""


class Screen:
    """One cell's turn. Feed it events; call `finish` once."""

    def __init__(
        self, paper: Paper, *, project: str = "", calls: dict[str, tuple[ToolCall, Screen]] | None = None
    ) -> None:
        self._paper = paper
        self._project = project
        self._loop = asyncio.get_running_loop()
        self._replaying: float | None = None
        """The time of what is shown again just now."""
        self._began = self._now()
        self._blocks: list[Block] = []
        self._live_id = ""
        self._live_shown = ""
        self._card: Slot | None = None
        """A question's card that stands in the place of the live line."""
        self._calls = {} if calls is None else calls
        """Shared by the cells of a notebook: an agent of an earlier cell may still be at work."""
        self._checklist: Checklist | None = None
        self._doing = _STARTING
        self._waiting = False
        self._tokens = 0
        self._model = ""
        self._timer: asyncio.TimerHandle | None = None
        self._next_tick = self._began + TICK_SECONDS
        self._finished = False
        self.metadata: dict[str, Any] = {}
        """Rides on every output of the turn."""
        self.on_record: Callable[[Bundle], None] = _forget
        """Hears of every line of ours, so that it can be shown again."""

    # --- the life of a turn ---------------------------------------------------------------------------------------

    def begin(self) -> None:
        self._paper.show({"text/html": style_tag(), "text/plain": ""}, _new_id(), self.metadata)
        self._show_live()
        self._schedule()

    def take(self, event: ev.Event) -> None:
        row = _TAKE.get(type(event))
        if row is not None:
            row(self, event)
            self._paint()

    def replay(self, past: list[tuple[float, ev.Event | Bundle]], seconds: float) -> None:
        """What happened in a turn so far, each with its time, at once. The turn began so many seconds ago."""
        self._began = self._now() - seconds
        for when, what in past:
            self._replaying = self._began + when
            if isinstance(what, Bundle):
                self._add(Fixed(what))
            elif (row := _TAKE.get(type(what))) is not None:
                row(self, what)
        self._replaying = None
        self._paint(everything=True)

    def leave(self) -> None:
        """The turn goes on in another cell; here it has come to rest."""
        self.on_record = _forget
        self._rest(over=False)
        for block in self._blocks:
            block.dirty = block.dirty or not block.settled  # it stays as it is, and is read as text too
        self._paint(everything=True)
        self._paper.update(render_notice("This turn goes on in another cell.").to_mime(), self._live_id, self.metadata)

    def notice(self, bundle: Bundle) -> None:
        """Something of ours: a record, a notice. It stands where it happened."""
        self.on_record(bundle)
        self._add(Fixed(bundle))
        self._paint()

    def slot(self, tool_use_id: str = "") -> Slot:
        """A place for a question's card, where the turn has got to; `tool_use_id` is the call that waits for it."""
        self._keep_card()
        self._card = Slot(self, tool_use_id)
        return self._card

    def waiting(self, waiting: bool) -> None:
        """A person is being asked: the clock on the live line stops."""
        self._waiting = waiting
        self._set_doing("Waiting for you" if waiting else "Working")

    def make_room(self) -> None:
        """Code will show outputs of its own: all that led to them is seen first."""
        self._paint(everything=True)

    def close_room(self) -> None:
        """It has; the live line is above them now, and goes on below."""
        if self._card is not None:
            self._keep_card()
            return
        self._close_last()
        self._blocks.append(Block(self._live_id, [Fixed(Bundle("", ""))], closed=True))
        self._show_live()
        self._paint(everything=True)

    def finish(
        self,
        ended: ev.TurnEnded | None,
        *,
        last: list[Bundle],
        interrupted: bool,
        spent_usd: float | None = None,
        changed: int = 0,
    ) -> None:
        """The turn is over: everything is settled, the live line becomes the footer."""
        now = self._now()
        self._rest(over=True)
        for bundle in [*last, *([render_interrupted()] if interrupted else [])]:
            self._add(Fixed(bundle))
            self._blocks[-1].closed = True
        self._paint(everything=True)
        self._paper.update(self._footer(ended, now, spent_usd, changed).to_mime(), self._live_id, self.metadata)

    def _rest(self, *, over: bool) -> None:
        """Nothing more will come here; `over`: nor anywhere else."""
        self._finished = True
        if self._timer is not None:
            self._timer.cancel()
        now = self._now()
        self._keep_card()
        for block in self._blocks:
            for piece in block.pieces:
                if isinstance(piece, Foreign) and piece.bundle is None:  # its asker is being cancelled just now
                    piece.bundle = render_notice(f"No longer asked{': the turn ended' if over else ' here'}.")
                    block.dirty = True
                self._settle(piece, now, over=over)
            block.closed = True

    def repaint_call(self, call: ToolCall) -> None:
        """A call of this cell changed, perhaps long after the cell ended."""
        for block in self._blocks:
            rows = block.find(call)
            if rows is not None:
                block.changed(rows)
        self._paint(everything=self._finished)

    # --- events ---------------------------------------------------------------------------------------------------

    def _text(self, event: ev.TextStreamed) -> None:
        if event.parent is not None:
            return
        self._set_doing("Writing", quietly=True)
        prose = self._last_piece(Prose)
        if prose is None or prose.finished:
            prose = Prose(MarkdownSplitter())
            self._add(prose)
        for segment in prose.feed(event.text, self._limit()):
            self._fix_segment(prose, segment)
        self._blocks[-1].dirty = True
        self._blocks[-1].grown += len(event.text)

    def _fix_segment(self, prose: Prose, segment: str) -> None:
        """A segment is final: it takes the place of the growing piece, which goes on after it."""
        block = self._blocks[-1]
        definitions = prose.splitter.definitions
        block.pieces[-1] = Fixed(render_text(segment, project=self._project, definitions=definitions))
        block.dirty = True
        self._add(prose)
        self._blocks[-1].shown_at = self._loop.time()  # its place is new, its text goes on: no need to hurry

    def _text_finished(self, event: ev.TextFinished) -> None:
        prose = self._last_piece(Prose)
        if event.parent is None and prose is not None:
            prose.finished = True
            self._blocks[-1].dirty = True

    def _thinking(self, event: ev.ThinkingStreamed | ev.ThinkingFinished) -> None:
        if event.parent is not None:
            return
        self._set_doing("Thinking", quietly=True)
        rows = self._rows()
        thought = rows.items[-1] if rows.items else None
        if not isinstance(thought, Thought) or thought.finished:
            thought = Thought()
            rows.items.append(thought)
        if isinstance(event, ev.ThinkingFinished):
            thought.text, thought.seconds, thought.finished = event.text, event.seconds, True
        else:
            thought.text += event.text
        self._blocks[-1].dirty = True

    def _tool_input(self, event: ev.ToolInputStreamed) -> None:
        if event.parent is None and not event.fragment:
            self._set_doing(f"Preparing {event.name}")

    def _tool_started(self, event: ev.ToolStarted) -> None:
        call = ToolCall.begun(event, self._now())
        self._calls[call.id] = (call, self)
        parent = self._calls.get(event.parent) if event.parent is not None else None
        if parent is not None:
            parent[0].children.append(call)
            parent[1].repaint_call(_outermost(parent[0], self._calls))
            return
        self._set_doing(describe_call(call, project=self._project))
        if call.name in CHECKLIST_TOOLS:
            self._check(call)
            return
        rows = self._rows()
        rows.items.append(call)
        self._blocks[-1].dirty = True

    def _tool_finished(self, event: ev.ToolFinished) -> None:
        known = self._calls.get(event.tool_use_id)
        if known is None:
            return
        call, screen = known
        call.end(event, self._now())
        self._set_doing("Working", quietly=True)
        if call.name in CHECKLIST_TOOLS and self._checklist is not None:
            self._dirty_with(self._checklist)
        last = self._blocks[-1] if self._blocks else None
        if call.images and last is not None and not last.closed and last.find(call) is not None:
            last.dirty = True
            self._close_last()  # an image is not to be sent again with every row that follows
        else:
            screen.repaint_call(_outermost(call, self._calls))

    def _check(self, call: ToolCall) -> None:
        if self._checklist is None:
            self._checklist = Checklist()
            self._add(self._checklist)
        self._checklist.calls.append(call)
        self._dirty_with(self._checklist)

    def _question(self, event: ev.QuestionAsked) -> None:
        known = self._calls.get(event.question.tool_use_id or "")
        if known is not None:
            known[0].state = CallState.HELD if self._finished else CallState.WAITING
            known[1].repaint_call(_outermost(known[0], self._calls))

    def _task_finished(self, event: ev.TaskFinished) -> None:
        known = self._calls.get(event.tool_use_id or "")
        if known is not None:
            call, screen = known
            call.text, call.result = event.summary or call.text, None
            call.finished = self._now()
            call.state = CallState.DONE if event.status == "completed" else CallState.FAILED
            screen.repaint_call(_outermost(call, self._calls))

    def _started(self, event: ev.SessionStarted) -> None:
        self._model = event.model
        self._set_doing("Thinking")

    def _counted(self, event: ev.MessageFinished) -> None:
        self._tokens += event.output_tokens

    def _status(self, event: ev.StatusChanged) -> None:
        if event.status == "compacting":
            self._set_doing("Summarising the conversation to make room")

    def _printed(self, event: ev.LocalCommandPrinted) -> None:
        if event.text.strip():
            self._add(Fixed(render_printed(event.text)))

    def _compacted(self, event: ev.ConversationCompacted) -> None:
        self._add(Fixed(render_compacted(event)))

    def _limited(self, event: ev.RateLimited) -> None:
        if event.status not in ("", "allowed"):
            self._add(Fixed(render_rate_limit(event)))

    def _silent(self, event: ev.SilenceNoticed) -> None:
        self._set_doing(f"No word from Claude Code for {event.seconds:.0f} s; stop the cell if you have waited enough")

    def _lost(self, _event: ev.ConversationLost) -> None:
        self._add(Fixed(render_notice("The conversation so far could not be resumed; this is a new one.")))

    def _retrying(self, event: ev.RetryNoticed) -> None:
        """The CLI may try for minutes: the person should know long before that."""
        of = f" of {event.attempts}" if event.attempts else ""
        self._set_doing(f"No answer yet; trying again, {event.attempt}{of}")
        if event.attempt == RETRIES_BEFORE_A_WORD:
            self.notice(render_trouble(*_RETRY_WORDS[event.api_status is None]))

    # --- blocks ---------------------------------------------------------------------------------------------------

    def _limit(self) -> int:
        count = len(self._blocks)
        return next((size for blocks, size in _GROWTH if count <= blocks), _LAST_GROWTH)

    def _rows(self) -> Rows:
        rows: Rows | None = self._last_piece(Rows)
        if rows is None or len(rows.items) >= max(ROWS_IN_A_BLOCK, self._limit() // 2_048):
            rows = Rows()
            self._add(rows)
        return rows

    def _last_piece(self, kind: type[Any]) -> Any:
        if not self._blocks or self._blocks[-1].closed:
            return None
        piece = self._blocks[-1].pieces[-1] if self._blocks[-1].pieces else None
        return piece if isinstance(piece, kind) else None

    def _settle_last(self) -> None:
        """What stood last will not grow any more."""
        if self._blocks and self._blocks[-1].pieces:
            self._settle(self._blocks[-1].pieces[-1], self._now(), over=False)

    def _settle(self, piece: Piece, now: float, *, over: bool) -> None:
        """`over`: the turn is, and with it all that does not run in the background."""
        if isinstance(piece, Prose):
            piece.finished = True
        elif isinstance(piece, Checklist):
            piece.growing = piece.growing and not over
        elif isinstance(piece, Rows):
            piece.growing = False
            for item in piece.items:
                if isinstance(item, Thought):
                    item.finished = True
                elif over and not _in_background(item):
                    item.interrupt(now)

    def _add(self, piece: Piece) -> None:
        """Puts a piece at the bottom, in the last block while that has room, else in a new one."""
        self._settle_last()
        last = self._blocks[-1] if self._blocks else None
        if last is not None and len(self._blocks) >= _MOST_BLOCKS:
            last.closed = isinstance(last.pieces[0], Foreign) and not last.pieces[0].settled
        full = last is None or last.closed or self._too_large(last)
        apart = len(self._blocks) < _SEPARATE_BLOCKS and last is not None and bool(last.pieces)
        if full or apart:
            self._close_last()
            self._open_block()
        self._blocks[-1].add(piece)
        self._blocks[-1].closed = piece.settled and len(self._blocks) < _SEPARATE_BLOCKS

    def _too_large(self, block: Block) -> bool:
        block.render(self._now(), self._project)
        return block.settled_bytes >= self._limit()

    def _open_block(self) -> None:
        """A new block takes the place of the live line, and a new line is shown below it."""
        self._keep_card()
        block = Block(self._live_id)
        self._blocks.append(block)
        self._show_live()

    def _close_last(self) -> None:
        if self._blocks and not self._blocks[-1].closed:
            block = self._blocks[-1]
            self._settle_last()
            block.closed = True
            if block.needs_showing():
                self._publish(block, self._now())

    def _dirty_with(self, piece: Piece) -> None:
        for block in self._blocks:
            if any(held is piece for held in block.pieces):
                block.dirty = True

    # --- cards of questions ---------------------------------------------------------------------------------------

    def _keep_card(self) -> None:
        """Something will stand below the card while it waits: its output becomes a block."""
        if self._card is not None:
            card, self._card = self._card, None
            card.block = Block(self._live_id, [card.foreign], dirty=False, closed=True)
            self._blocks.append(card.block)
            self._show_live()

    def show_card(self, card: Slot) -> None:
        self._paint(everything=True)  # what the person is asked about has to be seen
        if card.block is None:
            self._live_shown = ""
            self._paper.update(card.foreign.mime, self._live_id, self.metadata)
        else:
            self._publish(card.block, self._now())

    def settle_card(self, card: Slot, bundle: Bundle) -> None:
        """Its record stands where the card did, or ends the block above."""
        self.on_record(bundle)
        card.foreign.bundle = bundle
        if card.block is not None:
            card.block.changed(card.foreign)
        else:
            self._card = None
            self._add(card.foreign)
            card.block = self._blocks[-1]
            self._update_live()
        self._paint(everything=True)

    def go_on(self, tool_use_id: str) -> None:
        """The call waits no more, and its clock begins now: the time that a person took is not its own."""
        call, screen = self._calls.get(tool_use_id, (None, self))
        if call is not None and call.state in (CallState.WAITING, CallState.HELD):
            call.state, call.started = CallState.RUNNING, self._loop.time()
            screen.repaint_call(_outermost(call, self._calls))

    # --- painting -------------------------------------------------------------------------------------------------

    def _paint(self, *, everything: bool = False) -> None:
        now = self._now()
        for block in self._blocks:
            due = everything or now >= block.shown_at + _pause(block)
            if (block.dirty and due) or (everything and block.needs_showing()):
                self._publish(block, now)
        self._schedule()

    def _publish(self, block: Block, now: float) -> None:
        block.dirty = False
        if isinstance(block.pieces[0], Foreign) and not block.pieces[0].settled:
            self._paper.update(block.pieces[0].mime, block.display_id, self.metadata)
            return
        bundle = block.render(now, self._project)
        block.final = block.settled
        # Until it is settled the HTML alone will do; the plain text follows once.
        mime = bundle.to_mime() if block.final or self._finished else {"text/html": bundle.html}
        self._paper.update(mime, block.display_id, self.metadata)
        block.shown_at = now
        block.shown_bytes, block.grown = len(bundle.html), 0

    def _show_live(self) -> None:
        self._live_id = _new_id()
        bundle = self._live_line()
        self._live_shown = bundle.html
        self._paper.show(bundle.to_mime(), self._live_id, self.metadata)

    def _set_doing(self, doing: str, *, quietly: bool = False) -> None:
        """`quietly`: the next tick will show it."""
        changed, self._doing = doing != self._doing, doing
        if changed and not quietly and self._live_id and not self._finished:
            self._update_live()

    def _update_live(self) -> None:
        if self._card is not None and self._card.foreign.mime:
            return
        bundle = self._live_line()
        if bundle.html != self._live_shown:
            self._live_shown = bundle.html
            self._paper.update(bundle.to_mime(), self._live_id, self.metadata)

    def _live_line(self) -> Bundle:
        seconds = None if self._waiting else self._now() - self._began
        return render_live_line(self._doing, seconds if seconds is None or seconds >= 1 else None, self._tokens or None)

    def _footer(self, ended: ev.TurnEnded | None, now: float, spent_usd: float | None, changed: int) -> Bundle:
        usage = ended.usage if ended is not None else ev.Usage()
        known = usage.context_tokens is not None and usage.context_window
        fraction = (usage.context_tokens or 0) / (usage.context_window or 1) if known else None
        return render_footer(
            usage,
            seconds=now - self._began,
            model=self._model,
            notebook_cost_usd=spent_usd,
            context_fraction=fraction,
            changed=changed,
        )

    def _now(self) -> float:
        return self._loop.time() if self._replaying is None else self._replaying

    def _schedule(self) -> None:
        """One timer: for the next repaint that is due, else for the clock of the live line."""
        if self._finished or self._replaying is not None:
            return
        due = [block.shown_at + _pause(block) for block in self._blocks if block.dirty]
        when = max(self._now() + SHORTEST_TIMER_SECONDS, min([self._next_tick, *due]))
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._finished:
            return
        now = self._now()
        if now >= self._next_tick:
            self._next_tick = now + TICK_SECONDS
            if self._doing == _STARTING and now - self._began > SLOW_START_SECONDS:
                self._doing = "Still starting: Claude Code takes longer than usual, as it does without a network"
            if not self._waiting:
                self._update_live()  # and no row: a repaint would close what the reader has opened in it
        self._paint()


class Slot:
    """The place of one question: its card while it waits, then the record of what was decided."""

    def __init__(self, screen: Screen, tool_use_id: str) -> None:
        self.foreign = Foreign()
        self.block: Block | None = None
        """Its output, once that is no longer the live line's."""
        self._screen = screen
        self._tool_use_id = tool_use_id

    def show(self, mime: dict[str, Any]) -> None:
        """A card made of widgets: its mime bundle, whose plain text says what is asked."""
        self.foreign.mime = mime
        self._screen.show_card(self)

    def settle(self, bundle: Bundle, *, allowed: bool = False) -> None:
        """No widget is left: the card becomes this, for good. What was `allowed` runs from now on."""
        if allowed:
            self._screen.go_on(self._tool_use_id)
        self._screen.settle_card(self, bundle)


def _pause(block: Block) -> float:
    """By what the next repaint will cost. Text that comes faster than that is shown when its segment is complete."""
    coming = block.shown_bytes + _HTML_PER_CHARACTER * block.grown
    return max(FASTEST_REPAINT_SECONDS, coming / REPAINT_BYTES_PER_SECOND)


def _outermost(call: ToolCall, calls: dict[str, tuple[ToolCall, Screen]]) -> ToolCall:
    while call.parent is not None and call.parent in calls:
        call = calls[call.parent][0]
    return call


def _in_background(call: ToolCall) -> bool:
    return isinstance(call.result, dict) and call.result.get("isAsync") is True


def _new_id() -> str:
    return uuid.uuid4().hex


def _forget(_bundle: Bundle) -> None:
    """Nobody wants to show it again."""


_TAKE: dict[type, Callable[[Screen, Any], None]] = {
    ev.TextStreamed: Screen._text,
    ev.TextFinished: Screen._text_finished,
    ev.ThinkingStreamed: Screen._thinking,
    ev.ThinkingFinished: Screen._thinking,
    ev.ToolInputStreamed: Screen._tool_input,
    ev.ToolStarted: Screen._tool_started,
    ev.ToolFinished: Screen._tool_finished,
    ev.QuestionAsked: Screen._question,
    ev.TaskFinished: Screen._task_finished,
    ev.SessionStarted: Screen._started,
    ev.MessageFinished: Screen._counted,
    ev.StatusChanged: Screen._status,
    ev.LocalCommandPrinted: Screen._printed,
    ev.ConversationCompacted: Screen._compacted,
    ev.RateLimited: Screen._limited,
    ev.SilenceNoticed: Screen._silent,
    ev.ConversationLost: Screen._lost,
    ev.RetryNoticed: Screen._retrying,
}
"""What is shown of each event. An event without a row is not shown."""
