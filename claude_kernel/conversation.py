"""One notebook's conversation: a session, the cells' screens, what has been spent. It knows no kernel and no magic."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from claude_kernel.cli import Options
from claude_kernel.console import Console
from claude_kernel.demo import NAME as DEMO
from claude_kernel.errors import ClaudeKernelError, CliRefused, UsageError
from claude_kernel.journal import Journal, Unasked, Went
from claude_kernel.memory import Habits, Memory
from claude_kernel.paper import Paper
from claude_kernel.prompts.offers import Offer
from claude_kernel.prompts.scene import Scene
from claude_kernel.prompts.unattended import find_refusals, refuse_unattended, render_refusal
from claude_kernel.protocol import Allow, Decision, Deny, Prompt, events, find_dialect
from claude_kernel.recording import unpack
from claude_kernel.render import Bundle, ToolCall, render_notice, render_text, render_trouble
from claude_kernel.reply import Reply
from claude_kernel.screen import Screen
from claude_kernel.serving import McpServers
from claude_kernel.session import Session, State, Timing
from claude_kernel.shown import Shown
from claude_kernel.tools.toolbox import INSTRUCTIONS, SERVER, Toolbox
from claude_kernel.trouble import Trouble, find_trouble, trouble_of, trouble_of_retry
from claude_kernel.trust import remember_rules
from claude_kernel.underway import Underway

log = logging.getLogger("claude_kernel.conversation")


_ELSEWHERE = "it is asked again in the cell that shows the turn now"

_SHOWN_LATER = (events.ToolStarted, events.ToolFinished, events.TaskFinished, events.QuestionAsked)
"""What changes the card of an agent in the background after its cell has ended."""

_STOPPED = "you stopped the cell"
AskPerson = Callable[[events.Question, Shown, Scene], Awaitable[Decision]]


async def refuse(question: events.Question, shown: Shown, scene: Scene) -> Decision:
    """Where nobody can be asked: refused, and said so in the cell and to Claude."""
    shown.notice(render_refusal(question))
    return refuse_unattended(question, scene)


class _Room:
    """The running cell, for code that Claude runs in it."""

    def __init__(self, session: Session, shown: Shown) -> None:
        self._session = session
        self._shown = shown

    async def make_room(self) -> None:
        # The call itself may not be on the page yet. An event would cost every piece of text a little.
        while self._session.backlog:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        self._shown.make_room()

    def close_room(self) -> None:
        self._shown.close_room()


class CellEnd(msgspec.Struct, frozen=True):
    """How a cell ended, for the face that ran it."""

    trouble: Trouble | None = None
    interrupted: bool = False
    ended: events.TurnEnded | None = None
    reply: Reply | None = None
    """Where the turn came to its end."""


class _Moved(events.Event, frozen=True):
    """The turn is to go on in another cell."""


class Stopped(Exception):
    """The person stopped the cell while a question of ours was open. Nothing was done."""


def _keeps_a_rule(decision: Decision) -> bool:
    """Whether the CLI will write it into the folder's local settings."""
    kept = decision.permissions if isinstance(decision, Allow) else ()
    return any(entry.get("destination") == "localSettings" for entry in kept)


class Setting(NamedTuple):
    """What was configured, and where: a row of `%claude config`."""

    name: str
    value: str
    source: str
    about: str


class Conversation:
    def __init__(
        self,
        options: Options,
        *,
        ask: AskPerson = refuse,
        tools: Toolbox | None = None,
        timing: Timing | None = None,
        settings: tuple[Setting, ...] = (),
        notices: tuple[str, ...] = (),
        habits: Habits | None = None,
        journal: Journal | None = None,
        notebook: Path | None = None,
    ) -> None:
        self.options = options
        self.journal = journal or Journal(None)
        self.settings = settings
        self.notices = notices
        """Told once, at the top of the first cell."""
        self.tools = tools
        self.folder = Path(os.path.abspath(os.path.expanduser(options.cwd)))
        self.last_started: events.SessionStarted | None = None
        self.last: Reply | None = None
        self.images: list[events.Image] = []
        """Attached to the next prompt."""
        self.ask_person = ask
        self._timing = timing
        self._shown: Shown | None = None
        self._left: Underway | None = None
        """A turn that no cell shows at the moment."""
        self._last: Underway | None = None
        self._moving = False
        self._settled = True
        """The running cell has nothing to do but its turn: it may be handed over."""
        self._stopping = False
        self._taken_up = asyncio.Event()
        self._context = contextvars.copy_context()
        self._scene = Scene(project=str(self.folder))
        self._rule_kept = False
        self._asking: set[asyncio.Future[Decision]] = set()
        self._handed: set[asyncio.Future[Decision]] = set()
        """Those that were taken back because their turn moves."""
        self._calls: dict[str, tuple[ToolCall, Screen]] = {}
        self._news: list[Bundle] = []
        self._told: set[str] = set()
        self.memory = Memory(
            habits or Habits(),
            self.journal,
            notebook,
            self.folder,
            demo=self.is_demo,
            reopen=self._reopen,
            choose=self.choose,
        )
        self.session = self._new_session()

    @property
    def is_demo(self) -> bool:
        return self.options.cli == DEMO

    def _new_session(self, **changes: Any) -> Session:
        environment = {**self.options.environment, "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "true"}
        options = msgspec.structs.replace(self.options, cwd=str(self.folder), environment=environment, **changes)
        servers: McpServers = {}
        if self.tools is not None and find_dialect(options.dialect).initialises:
            servers = {SERVER: self.tools}
            told = "\n\n".join(filter(None, [options.append_system_prompt, INSTRUCTIONS]))
            allowed_tools = (*options.allowed_tools, *self.tools.allowed)
            options = msgspec.structs.replace(options, append_system_prompt=told, allowed_tools=allowed_tools)
        return Session(options, ask=self._ask, mcp_servers=servers, on_unasked=self._unasked, timing=self._timing)

    # --- cells ----------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return self._shown is not None or self._left is not None or bool(self._asking)

    async def run(self, text: str, paper: Paper, *, plain: bool = False, cell: str = "") -> CellEnd:
        """One prompt, one cell. Every failure is shown and returned, none is raised."""
        if self._left is not None:  # whoever wanted to show it comes later: it is not lost, and not in the way
            self._settled = False
            end = await self.show_last(paper, plain=plain)
            self._settled = True
            if end.interrupted:
                return end
        shown = self._open(paper, plain=plain)
        self._scene.unanswered.clear()
        try:
            shown.begin()
            await self.memory.prepare(shown, cell)
            self._tell_news(shown)
        except Exception as error:
            return self._end_unsent(shown, error, plain=plain)
        prompt = Prompt(text=text, images=tuple(self.images))
        self.images.clear()
        after = self.journal.turns[-1].prompt_id if self.journal.turns else ""
        turn = Underway(prompt, self.session.turn(prompt), cell, after)
        shown.metadata = turn.metadata(self.session.session_id)
        if self._moving:  # another cell asked for the turn before there was one
            return self._let_go(turn, shown)
        return await self._go_on(turn, shown, plain=plain)

    async def show_last(self, paper: Paper, *, plain: bool = False) -> CellEnd:
        """The last turn once more, from its beginning; one that still runs goes on in this cell."""
        turn, self._left = self._left, None
        self._moving = False
        if turn is None and self._last is None and not self.journal.turns:
            raise UsageError("There is nothing to show: nothing was said in this notebook yet.")
        shown = self._open(paper, plain=plain)
        shown.begin()
        if turn is not None:
            shown.metadata = turn.metadata(self.session.session_id)
            shown.replay(turn.recording.entries(), turn.recording.seconds)
            return await self._go_on(turn, shown, plain=False)  # no face tells of a trouble that is not of its own cell
        self._shown = None
        if self._last is not None:
            last = self._last
            entries, ended, trouble = last.recording.entries(), last.ended, last.trouble
            files = last.reply.files
            shown.metadata = last.metadata(ended.session_id if ended is not None else "")
        else:
            [kept] = self.journal.with_events(self.journal.turns[-1:])
            entries, files = list(unpack(msgspec.json.decode(kept.events))), kept.files
            ended = next((what for _, what in entries if isinstance(what, events.TurnEnded)), None)
            trouble = find_trouble(ended) if ended is not None else None
            if ended is None:
                entries.append((kept.seconds, render_notice(_NOT_KEPT if kept.outcome else _NEVER_ENDED)))
        stopped = ended is not None and ended.outcome is events.Outcome.INTERRUPTED and trouble is None
        shown.replay(entries, entries[-1][0] if entries else 0.0)
        spent = self.memory.spent
        shown.finish(ended, last=_cards(trouble), interrupted=stopped, spent_usd=spent, changed=len(files))
        return CellEnd()

    def hand_over(self) -> None:
        """The cell of the running turn lets go of it: `show_last`, which must follow, takes it up."""
        if self._shown is not None and self._settled and not self._moving:
            self._moving = True
            self._taken_up.clear()
            self._shown.on_record = _forget  # that a question moves with its turn is no part of the turn
            self._handed |= self._asking  # also where the turn is taken up before they have noticed
            for asking in self._asking:
                asking.cancel(_ELSEWHERE)
            self.session.interject(_Moved())

    async def _go_on(self, turn: Underway, shown: Shown, *, plain: bool) -> CellEnd:
        """Shows the turn until it ends, or until another cell takes it up."""
        shown.on_record = turn.recording.record
        self._context = contextvars.copy_context()
        self._taken_up.set()
        try:
            if self.tools is not None:
                self.tools.enter(_Room(self.session, shown))
            async for event in turn.stream:
                if type(event) is _Moved:
                    break
                self._note(event, turn, shown)
                shown.take(event)
            while self._asking and not self._moving:  # an agent in the background asks, and the turn went on
                await asyncio.wait(self._asking, return_when=asyncio.FIRST_COMPLETED)
        except Exception as error:
            if not isinstance(error, ClaudeKernelError):
                log.exception("a cell failed")
            turn.trouble = trouble_of(error)
        finally:
            self._shown = None
            if self.tools is not None:
                self.tools.leave()
        if self._moving and turn.trouble is None:
            return self._let_go(turn, shown)
        self._moving = False
        self._taken_up.set()
        return await self._end(turn, shown, plain=plain)

    def _let_go(self, turn: Underway, shown: Shown) -> CellEnd:
        self._shown, self._left = None, turn
        shown.leave()
        return CellEnd()

    async def _end(self, turn: Underway, shown: Shown, *, plain: bool) -> CellEnd:
        ended = turn.ended
        if turn.stopping is not None:
            await turn.stopping
        if ended is not None:
            turn.trouble = turn.hopeless or find_trouble(ended) or find_refusals(self._scene)
        self._last = turn
        if ended is not None and (turn.started is not None or not turn.interrupted):
            self.journal.add(turn.line(self.session.session_id, self.memory.habits.keep))
        full = self.memory.context_notice(ended.usage) if ended is not None else None
        # In plain text the trouble is the error that the face reports; twice would be once too often.
        shown.metadata = turn.metadata(self.session.session_id)
        shown.finish(
            ended,
            last=[*filter(None, [full]), *_cards(None if plain else turn.trouble)],
            interrupted=turn.interrupted,
            spent_usd=self.memory.spent,
            changed=len(turn.reply.files),
        )
        self._forget_ended_calls()
        if self._rule_kept and self.session.trust.trusted:
            self._rule_kept = False
            remember_rules(str(self.folder), os.environ | self.options.environment)
        if ended is not None and ended.outcome is events.Outcome.FINISHED:
            self.last = turn.reply.make(ended)
        fine = turn.trouble is None and not turn.interrupted
        return CellEnd(turn.trouble, turn.interrupted, ended, self.last if fine else None)

    def _end_unsent(self, shown: Shown, error: Exception, *, plain: bool) -> CellEnd:
        """Nothing of this cell reached Claude."""
        self._shown = None
        self._moving = False
        self._taken_up.set()
        stopped = isinstance(error, Stopped)
        if not isinstance(error, ClaudeKernelError | Stopped):
            log.exception("a cell failed")
        trouble = None if stopped else trouble_of(error)
        shown.finish(None, last=_cards(None if plain else trouble), interrupted=stopped, spent_usd=None, changed=0)
        return CellEnd(trouble, stopped)

    async def interrupt(self) -> bool:
        self._stopping = True
        if self.tools is not None:
            self.tools.runner.stop()
        stopped = await self.session.interrupt()
        for asking in self._asking:  # ours, and those of agents in the background, which the CLI does not withdraw
            asking.cancel(_STOPPED)
        return stopped

    def prewarm(self) -> None:
        """Not while it is open with which conversation to begin."""
        if not self.memory.undecided:
            self.session.prewarm()

    async def close(self) -> None:
        await self.session.close()

    def _open(self, paper: Paper, *, plain: bool) -> Shown:
        self._stopping = False
        project = str(self.folder)
        shown: Shown = Console(paper, project=project) if plain else Screen(paper, project=project, calls=self._calls)
        self._shown = shown
        return shown

    def _note(self, event: events.Event, turn: Underway, shown: Shown | None) -> None:
        turn.recording.note(event)
        if type(event) is events.TextStreamed:  # by far the most frequent, and nobody else's business
            return
        turn.reply.note(event)
        self._scene.note(event)
        if isinstance(event, events.SessionStarted):
            self.last_started = turn.started = event
            if shown is not None:
                shown.metadata = turn.metadata(self.session.session_id)
            self.journal.add(turn.line(event.session_id, self.memory.habits.keep))
        elif isinstance(event, events.TurnEnded):
            turn.ended = event
        elif isinstance(event, events.ConversationLost | events.ConversationReset):
            turn.after = ""
            self.journal.add(Went(at=time.time()))
        elif isinstance(event, events.RetryNoticed) and turn.hopeless is None:
            turn.hopeless = trouble_of_retry(event)
            if turn.hopeless is not None:
                turn.stopping = asyncio.ensure_future(self.session.interrupt())

    def _tell_news(self, shown: Shown) -> None:
        """What happened between two cells, and what the person should know once."""
        for notice in (*self.notices, *self.session.notices, *filter(None, [self.journal.trouble])):
            self._tell_once(notice)
        news, self._news = self._news, []
        for bundle in news:
            shown.notice(bundle)

    def _tell_once(self, notice: str) -> None:
        if notice not in self._told:
            self._told.add(notice)
            self._news.append(render_notice(notice))

    def _unasked(self, event: events.Event) -> None:
        """Outside our turns: an agent that was sent off reports, or asks. Its card is where it was started."""
        about = event.question if isinstance(event, events.QuestionAsked) else event
        known = self._calls.get(getattr(about, "tool_use_id", None) or "") or self._calls.get(
            getattr(about, "parent", None) or ""
        )
        if known is not None and isinstance(event, _SHOWN_LATER):
            known[1].take(event)
        if isinstance(event, events.TaskFinished):
            what = known[0].input.get("description") if known else ""
            done = "came home" if event.status == "completed" else event.status or "ended"
            self._news.append(render_notice(f"A background task {done}: {what or event.summary}"))
        elif isinstance(event, events.UnaskedTurnEnded):
            usage = event.usage
            line = Unasked(session_id=event.session_id, cost_usd=usage.cost_usd, by_model=usage.by_model)
            self.journal.add(msgspec.structs.replace(line, at=time.time()))
            if event.text.strip():
                self._news.append(render_text(event.text))

    def _forget_ended_calls(self) -> None:
        """Only what may still change is kept: agents in the background, and their steps."""
        kept: dict[str, tuple[ToolCall, Screen]] = {}
        for call_id, (call, screen) in self._calls.items():
            outer = call
            while outer.parent in self._calls:
                outer = self._calls[outer.parent][0]
            if isinstance(outer.result, dict) and outer.result.get("isAsync") is True:
                kept[call_id] = (call, screen)
        self._calls.clear()
        self._calls.update(kept)

    async def _ask(self, question: events.Question) -> Decision:
        while True:
            if self._moving or self._left is not None:
                await self._taken_up.wait()
            shown = self._shown
            if shown is None:  # the cell has ended meanwhile
                return Deny(reason="The cell that could have asked has ended.")
            # Whichever cell shows the turn is where its questions belong.
            asking = self._context.run(asyncio.ensure_future, self.ask_person(question, shown, self._scene))
            self._asking.add(asking)
            shown.waiting(True)
            try:
                await asyncio.wait({asking})
                if asking in self._handed:
                    continue
                decision = Deny(reason="The user stopped the cell.") if asking.cancelled() else asking.result()
                self._rule_kept = self._rule_kept or _keeps_a_rule(decision)
                return decision
            finally:
                asking.cancel(_STOPPED if self._stopping else None)  # the CLI withdraws it before it ends the turn
                self._asking.discard(asking)
                self._handed.discard(asking)
                shown.waiting(bool(self._asking))

    async def choose(
        self, text: Bundle, offers: tuple[Offer, ...], shown: Any, record: Callable[[Offer | None], Bundle]
    ) -> Offer | None:
        """A question of our own; none where nobody can be asked. Raises `Stopped`."""
        ask = getattr(self.ask_person, "choose", None)
        if ask is None:
            return None
        asking: asyncio.Future[Any] = asyncio.ensure_future(ask(text, offers, shown, record))
        self._asking.add(asking)
        try:
            await asyncio.wait({asking})
            if asking.cancelled():
                raise Stopped
            chosen: Offer | None = asking.result()
            return chosen
        finally:
            asking.cancel()
            self._asking.discard(asking)
            self._handed.discard(asking)

    # --- steering -------------------------------------------------------------------------------------------------

    async def start_anew(self) -> None:
        """A new conversation; the old one stays with the CLI, under its id."""
        self.memory.forget()
        await self._reopen(resume=None, session_id=None)

    async def restart(self, **changes: Any) -> None:
        """A new process for the same conversation, with changed options if there are any."""
        self.options = msgspec.structs.replace(self.options, **changes)
        old = self.session
        if old.begun:
            await self._reopen(resume=old.session_id or None, session_id=None)
        else:  # it may have been about to branch off
            names = ("resume", "fork", "resume_at", "resume_gently")
            await self._reopen(**{name: getattr(old.options, name) for name in names})

    async def _reopen(self, **changes: Any) -> Session:
        await self.session.close()
        self.session = self._new_session(**changes)
        return self.session

    async def set_model(self, model: str) -> str:
        chosen = await self.session.set_model(None if model == "default" else model)
        self.options = msgspec.structs.replace(self.options, model=None if model == "default" else model)
        return chosen

    async def set_mode(self, mode: str) -> str:
        chosen = await self.session.set_mode(mode)
        self.options = msgspec.structs.replace(self.options, mode=mode)
        return chosen

    async def set_effort(self, effort: str) -> None:
        """At once where the CLI can; else with a new process, which resumes."""
        try:
            await self.session.request("apply_flag_settings", settings={"effortLevel": effort})
            self.options = msgspec.structs.replace(self.options, effort=effort)
        except CliRefused:
            await self.restart(effort=effort)

    @property
    def mode(self) -> str:
        started, initialised = self.last_started, self.session.initialised
        return (
            self.options.mode or (started.mode if started else "") or (initialised.mode if initialised else "default")
        )

    @property
    def state(self) -> State:
        return self.session.state


def _forget(_bundle: Bundle) -> None:
    """Nobody keeps it."""


_NEVER_ENDED = "The kernel was ended before this turn came to its end. What had come of it so far is not kept."
_NOT_KEPT = "What was said in this turn is not kept (the setting `keep`)."


def _cards(trouble: Trouble | None) -> list[Bundle]:
    return [render_trouble(trouble.title, trouble.remedy, trouble.details)] if trouble is not None else []
