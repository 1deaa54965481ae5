"""One notebook's conversation: a session, the cells' screens, what has been spent. It knows no kernel and no magic."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from claude_kernel.cli import Options
from claude_kernel.console import Console
from claude_kernel.errors import ClaudeKernelError, CliRefused
from claude_kernel.paper import Paper
from claude_kernel.prompts.scene import Scene
from claude_kernel.prompts.unattended import find_refusals, refuse_unattended, render_refusal
from claude_kernel.protocol import Allow, Decision, Deny, Prompt, events, find_dialect
from claude_kernel.render import Bundle, ToolCall, render_notice, render_text, render_trouble
from claude_kernel.reply import Reply, ReplyMaker
from claude_kernel.screen import Screen
from claude_kernel.serving import McpServers
from claude_kernel.session import Session, State, Timing
from claude_kernel.tools.toolbox import INSTRUCTIONS, SERVER, Toolbox
from claude_kernel.trouble import Trouble, find_trouble, trouble_of, trouble_of_retry
from claude_kernel.trust import Trust, read_trust, remember_rules

log = logging.getLogger("claude_kernel.conversation")


class Shown(Protocol):
    """A turn as a front end sees it: `Screen`, or `Console` where outputs cannot be updated."""

    metadata: dict[str, Any]

    def begin(self) -> None: ...
    def take(self, event: events.Event) -> None: ...
    def notice(self, bundle: Bundle) -> None: ...
    def waiting(self, waiting: bool) -> None: ...
    def make_room(self) -> None: ...
    def close_room(self) -> None: ...
    def finish(self, ended: events.TurnEnded | None, *, last: list[Bundle], interrupted: bool) -> None: ...


_SHOWN_LATER = (events.ToolStarted, events.ToolFinished, events.TaskFinished, events.QuestionAsked)
"""What changes the card of an agent in the background after its cell has ended."""

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


def _keeps_a_rule(decision: Decision) -> bool:
    """Whether the CLI will write it into the folder's local settings."""
    kept = decision.permissions if isinstance(decision, Allow) else ()
    return any(entry.get("destination") == "localSettings" for entry in kept)


class Spent(msgspec.Struct):
    """What the notebook has cost since the kernel started."""

    cost_usd: float = 0.0
    by_model: dict[str, float] = {}
    turns: int = 0
    known: bool = False

    def add(self, usage: events.Usage) -> None:
        self.turns += 1
        if usage.cost_usd is not None:
            self.known = True
            self.cost_usd += usage.cost_usd
        for model, cost in usage.by_model.items():
            self.by_model[model] = self.by_model.get(model, 0.0) + cost


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
    ) -> None:
        self.options = options
        self.settings = settings
        self.notices = notices
        """Told once, at the top of the first cell."""
        self.tools = tools
        self.folder = Path(os.path.abspath(os.path.expanduser(options.cwd)))
        self.spent = Spent()
        self.last_started: events.SessionStarted | None = None
        self.last_ended: events.TurnEnded | None = None
        self.last: Reply | None = None
        self.images: list[events.Image] = []
        """Attached to the next prompt."""
        self.trust = Trust(True)
        self.ask_person = ask
        self._timing = timing
        self._shown: Shown | None = None
        self._scene = Scene(project=str(self.folder))
        self._rule_kept = False
        self._asking: set[asyncio.Future[Decision]] = set()
        self._calls: dict[str, tuple[ToolCall, Screen]] = {}
        self._news: list[Bundle] = []
        self._told: set[str] = set()
        self.session = self._new_session()

    def _new_session(self, **changes: Any) -> Session:
        self.trust = read_trust(str(self.folder), os.environ | self.options.environment)
        options = msgspec.structs.replace(self.options, cwd=str(self.folder), **changes)
        if not self.trust.trusted:
            sources = options.setting_sources or self.trust.setting_sources or ()
            allowed = tuple(source for source in sources if source == "user")
            options = msgspec.structs.replace(options, setting_sources=allowed, strict_mcp=True)
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
        return self._shown is not None

    async def run(self, text: str, paper: Paper, *, plain: bool = False) -> CellEnd:
        """One prompt, one cell. Every failure is shown and returned, none is raised."""
        shown = self._open(paper, plain=plain)
        self._scene.unanswered.clear()
        ended: events.TurnEnded | None = None
        trouble: Trouble | None = None
        hopeless: Trouble | None = None
        stopping: asyncio.Future[bool] | None = None
        reply = ReplyMaker()
        try:
            shown.begin()
            if self.tools is not None:
                self.tools.enter(_Room(self.session, shown))
            self._tell_news(shown)
            images = tuple(self.images)
            self.images.clear()
            async for event in self.session.turn(Prompt(text=text, images=images)):
                self._note(event)
                reply.note(event)
                self._scene.note(event)
                shown.take(event)
                if isinstance(event, events.TurnEnded):
                    ended = event
                elif isinstance(event, events.RetryNoticed) and hopeless is None:
                    hopeless = trouble_of_retry(event)
                    if hopeless is not None:
                        stopping = asyncio.ensure_future(self.session.interrupt())
            while self._asking:  # an agent in the background asks, and the turn went on without it
                await asyncio.wait(self._asking)
        except ClaudeKernelError as error:
            trouble = trouble_of(error)
        except Exception as error:
            log.exception("a cell failed")
            trouble = trouble_of(error)
        finally:
            self._shown = None
            if self.tools is not None:
                self.tools.leave()
        if stopping is not None:
            await stopping
        if ended is not None:
            trouble = hopeless or find_trouble(ended) or find_refusals(self._scene)
        # In plain text the trouble is the error that the face reports; twice would be once too often.
        card = [render_trouble(trouble.title, trouble.remedy, trouble.details)] if trouble and not plain else []
        interrupted = ended is not None and ended.outcome is events.Outcome.INTERRUPTED and trouble is None
        shown.finish(ended, last=card, interrupted=interrupted)
        self._forget_ended_calls()
        if self._rule_kept and self.trust.trusted:
            self._rule_kept = False
            remember_rules(str(self.folder), os.environ | self.options.environment)
        if ended is not None and ended.outcome is events.Outcome.FINISHED:
            self.last = reply.make(ended)
        return CellEnd(trouble, interrupted, ended, self.last if trouble is None and not interrupted else None)

    async def interrupt(self) -> bool:
        if self.tools is not None:
            self.tools.runner.stop()
        stopped = await self.session.interrupt()
        for asking in self._asking:  # those of agents in the background, which the CLI does not withdraw
            asking.cancel()
        return stopped

    def prewarm(self) -> None:
        self.session.prewarm()

    async def close(self) -> None:
        await self.session.close()

    def _open(self, paper: Paper, *, plain: bool) -> Shown:
        project = str(self.folder)
        shown: Shown = Console(paper, project=project) if plain else Screen(paper, project=project, calls=self._calls)
        self._shown = shown
        return shown

    def _note(self, event: events.Event) -> None:
        if isinstance(event, events.SessionStarted):
            self.last_started = event
        elif isinstance(event, events.TurnEnded):
            self.last_ended = event
            self.spent.add(event.usage)

    def _tell_news(self, shown: Shown) -> None:
        """What happened between two cells, and what the person should know once."""
        if not self.trust.trusted:
            self._tell_once(self.trust.notice())
        for notice in (*self.notices, *self.session.notices):
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
            self.spent.add(event.usage)
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
        shown = self._shown
        if shown is None:  # the cell has ended meanwhile
            return Deny(reason="The cell that could have asked has ended.")
        asking = asyncio.ensure_future(self.ask_person(question, shown, self._scene))
        self._asking.add(asking)
        shown.waiting(True)
        try:
            await asyncio.wait({asking})
            decision = Deny(reason="The user stopped the cell.") if asking.cancelled() else asking.result()
            self._rule_kept = self._rule_kept or _keeps_a_rule(decision)
            return decision
        finally:
            asking.cancel()
            self._asking.discard(asking)
            shown.waiting(bool(self._asking))

    # --- steering -------------------------------------------------------------------------------------------------

    async def start_anew(self) -> None:
        """A new conversation; the old one stays with the CLI, under its id."""
        await self.session.close()
        self.session = self._new_session(resume=None, session_id=None)

    async def restart(self, **changes: Any) -> None:
        """A new process for the same conversation, with changed options if there are any."""
        self.options = msgspec.structs.replace(self.options, **changes)
        old, resumable = self.session, self.session.session_id
        await old.close()
        self.session = self._new_session(resume=resumable or None)

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
