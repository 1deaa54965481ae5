"""The conversation with the CLI, across as many processes as it takes. It knows no Jupyter.

One pump: whatever the CLI says is queued as it comes, and the coroutine that runs the turn hands it on (an output
belongs to the cell whose coroutine emits it). A turn that dies, hangs or is stopped ends with a `TurnEnded`; the next
one starts a new process, if need be, and resumes.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from enum import Enum
from typing import Any

import msgspec

from claude_kernel.cli import Options, narrow, warn_if_old
from claude_kernel.errors import CliDied, CliRefused, CliSilent, SessionBusy, TurnFailed, UsageError
from claude_kernel.inbox import Inbox
from claude_kernel.link import Link
from claude_kernel.protocol import Allow, Decision, Deny, Prompt, events
from claude_kernel.protocol.events import Event, Outcome
from claude_kernel.questions import Ask, Questions
from claude_kernel.reply import Reply, collect_reply
from claude_kernel.serving import Hooks, HostTools, McpServers, hook_registrations, run_host_tool, serve_hook, serve_mcp
from claude_kernel.trust import Trust, read_trust

log = logging.getLogger("claude_kernel.session")


class State(Enum):
    """What the conversation is doing, for whoever looks."""

    STOPPED = "stopped"
    STARTING = "starting"
    IDLE = "idle"
    WORKING = "working"
    WAITING = "waiting for a person"
    SILENT = "silent"
    INTERRUPTING = "interrupting"
    CLOSED = "closed"


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long things may take. None of these counts the time in which a person is asked."""

    start_seconds: float = 60.0
    request_seconds: float = 30.0
    interrupt_seconds: float = 2.0
    """Until an interrupt must be acknowledged; then the process is replaced."""
    interrupted_result_seconds: float = 1.0
    """Until an acknowledged interrupt must have ended the turn; then it is ended here."""
    silence_seconds: float = 60.0
    close_seconds: float = 1.0


class Session:
    """A conversation. `ask` decides every question; without it all are refused."""

    def __init__(
        self,
        options: Options | None = None,
        *,
        ask: Ask | None = None,
        mcp_servers: McpServers | None = None,
        hooks: Hooks | None = None,
        host_tools: HostTools | None = None,
        on_unasked: Callable[[Event], None] | None = None,
        timing: Timing | None = None,
    ) -> None:
        given = options or Options()
        self.trust = Trust(True) if given.trust_folder else read_trust(given.cwd, os.environ | given.environment)
        """Whether the folder's own settings are used."""
        self.options = narrow(given, self.trust)
        self.timing = timing or Timing()
        self.unasked: deque[Event] = deque(maxlen=10_000)
        """What came outside any turn of ours; `on_unasked` hears of it at once."""
        self.notices: list[str] = []
        if not self.trust.trusted:
            self.notices.append(self.trust.notice())
            log.warning(self.trust.notice())
        self.session_id = "" if self.options.fork else self.options.resume or ""
        """A branch has none before it has begun."""
        self._questions = Questions(ask, self._decided)
        self._mcp_servers: McpServers = mcp_servers or {}
        self._hooks: Hooks = hooks or {}
        self._host_tools: HostTools = host_tools or {}
        self._on_unasked = on_unasked
        self._link: Link | None = None
        self._starting: asyncio.Task[Link] | None = None
        self._turn: Inbox | None = None
        self._turn_link: Link | None = None
        self._unasked_running = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._resumable = self.options.resume is not None
        self._lost: events.ConversationLost | None = None
        self._begun = False
        self._closed = False

    # --- what can be seen -----------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        if self._closed:
            return State.CLOSED
        if self._turn is None:
            if self._starting is not None and not self._starting.done():
                return State.STARTING
            return State.IDLE if self._link is not None and not self._link.ended else State.STOPPED
        if self._turn.interrupts:
            return State.INTERRUPTING
        if self._turn_link is None:
            return State.STARTING
        if self._turn_link.connection.open_questions:
            return State.WAITING
        return State.SILENT if self._turn.silent else State.WORKING

    @property
    def begun(self) -> bool:
        """The CLI has named the conversation: from now on it is resumed under that name."""
        return self._begun

    @property
    def backlog(self) -> int:
        """How much of the running turn has come and was not handed on yet."""
        return len(self._turn) if self._turn is not None else 0

    @property
    def initialised(self) -> events.Initialised | None:
        """What the CLI said of itself: version, models, commands, account."""
        return self._link.initialised if self._link is not None else None

    @property
    def pid(self) -> int | None:
        return self._link.pid if self._link is not None and not self._link.ended else None

    # --- life -----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    def prewarm(self) -> None:
        """Starts the CLI in the background, so that the first prompt does not wait for it."""
        if not self._closed:
            # Whoever needs the process hears of a failure then; asyncio is not to complain of it before.
            self._begin_start().add_done_callback(lambda done: done.cancelled() or done.exception())

    async def start(self) -> events.Initialised | None:
        return (await self._ready_link()).initialised

    async def close(self) -> None:
        """Ends the process and all it started. What was said is kept by the CLI, under `session_id`."""
        self._closed = True
        if self._starting is not None and not self._starting.done():
            self._starting.cancel()
            await asyncio.wait({self._starting})
        busy = self._turn is not None or bool(self._questions.open)
        self._end_turn_here(Outcome.INTERRUPTED, "The conversation was closed.")
        await self._questions.close()
        link, self._link = self._link, None
        if link is not None:
            await link.close(grace_seconds=0.0 if busy else self.timing.close_seconds)
        if self._tasks:
            await asyncio.wait(self._tasks)

    def kill_now(self) -> None:
        """For an interpreter that is going down and has no loop left to wait on."""
        self._closed = True
        if self._link is not None:
            self._link.kill_now()

    def _begin_start(self) -> asyncio.Task[Link]:
        if self._starting is None or self._starting.done():
            self._starting = asyncio.get_running_loop().create_task(self._start())
        return self._starting

    async def _ready_link(self) -> Link:
        if self._closed:
            raise UsageError("this conversation is closed; open another")
        if self._link is not None and not self._link.ended:
            return self._link
        return await asyncio.shield(self._begin_start())

    async def _start(self) -> Link:
        resume = (self.session_id or self.options.resume) if self._resumable else None
        try:
            return await self._start_process(resume)
        except CliDied as died:
            asked_for = resume == self.options.resume and not self.options.resume_gently
            if resume is None or asked_for or not died.start_error:
                raise
            # A process that died before it had written anything cannot be resumed: go on without its memory.
            self._lost = events.ConversationLost(session_id=resume, reason=died.start_error)
            self._resumable = False
            return await self._start_process(None)

    async def _start_process(self, resume: str | None) -> Link:
        first = resume == self.options.resume
        options = msgspec.structs.replace(
            self.options,
            resume=resume,
            fork=self.options.fork and first,
            resume_at=self.options.resume_at if first else None,
            session_id=self.options.session_id if resume is None and self._lost is None else None,
        )
        link = Link(options, self._happened)
        try:
            await link.open(tuple(self._mcp_servers))
            if link.connection.dialect.initialises:
                await self._initialise(link)
        except BaseException:
            await link.close(grace_seconds=0.0)
            raise
        self._link = link
        old = warn_if_old(link.initialised.version) if link.initialised else None
        if old and old not in self.notices:
            self.notices.append(old)
            log.warning(old)
        return link

    async def _initialise(self, link: Link) -> None:
        fields: dict[str, Any] = {
            "system_prompt": self.options.system_prompt,
            "append_system_prompt": self.options.append_system_prompt,
            "agents": self.options.agents or None,
            "sdk_mcp_servers": list(self._mcp_servers) or None,
            "hooks": hook_registrations(self._hooks) or None,
        }
        answer = link.request("initialize", **{name: value for name, value in fields.items() if value is not None})
        await asyncio.wait({answer}, timeout=self.timing.start_seconds)
        if not answer.done():
            raise CliSilent(
                f"Claude Code was started but did not answer within {self.timing.start_seconds:.0f} s. "
                f"Try `claude` in a terminal. It wrote: {link.stderr_tail.strip()[-500:] or 'nothing'}"
            )
        if link.ended:
            await link.wait_exit(1.0)
            reason = link.start_error or link.stderr_tail.strip()[-2000:] or "it gave no reason"
            raise CliDied(
                f"Claude Code ended before it was ready (exit code {link.exit_code}): {reason}",
                exit_code=link.exit_code,
                stderr_tail=link.stderr_tail,
                start_error=link.start_error,
            )
        error = answer.result().error
        if error is not None:
            raise CliRefused(f"Claude Code would not start: {error}", subtype="initialize")

    # --- a turn ---------------------------------------------------------------------------------------------------

    async def turn(self, prompt: Prompt | str) -> AsyncIterator[Event]:
        """Sends a prompt and yields what happens, `TurnEnded` last. Errors before the prompt was sent are raised."""
        if self._turn is not None:
            raise SessionBusy("a turn is running; wait for it or interrupt it")
        message = Prompt(text=prompt) if isinstance(prompt, str) else prompt
        turn = self._turn = Inbox(message, self.timing.silence_seconds)
        link: Link | None = None
        try:
            link = await self._deliver(turn)
            if link is None:
                yield self._local_end(message.id, Outcome.INTERRUPTED)
                return
            while True:
                event = turn.take()
                if event is None:
                    await turn.wait_or_notice_silence(
                        lambda heard=link: heard.last_heard,  # type: ignore[misc]  # a default binds the loop's link
                        lambda: bool(self._questions.open),
                    )
                    continue
                if type(event) is events.QuestionAsked:
                    self._questions.begin(link, event.question)
                elif type(event) is events.QuestionWithdrawn:
                    self._questions.withdraw(event.question_id)
                if type(event) is events.TurnEnded and event.prompt_id == message.id:
                    self._turn, self._turn_link = None, None  # free before the caller, who may stop here, hears of it
                    yield event
                    return
                yield event
        finally:
            if self._turn is turn:
                self._turn, self._turn_link = None, None
            if link is not None and not turn.over.is_set():  # the caller stopped listening
                self._spawn(self._abandon(link))

    async def _deliver(self, turn: Inbox) -> Link | None:
        """Sends the prompt; nothing where the person stopped it before it was sent."""
        starting = asyncio.ensure_future(self._ready_link())
        stopped = asyncio.ensure_future(turn.wait())
        await asyncio.wait({starting, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if turn.interrupts:
            starting.cancel()
            return None
        link = self._turn_link = await starting
        turn.hold = lambda held: link.pause() if held else link.resume()
        if self._lost is not None:
            turn.push(self._lost)
            self._lost = None
        for question in link.connection.open_questions:  # asked while nobody was listening
            turn.push(events.QuestionAsked(question))
        link.send(link.connection.send_prompt(turn.prompt))
        return link

    def interject(self, event: Event) -> None:
        """Puts an event of the caller's own into the running turn, behind what has come."""
        if self._turn is not None:
            self._turn.push(event)

    async def interrupt(self) -> bool:
        """Stops the running turn and keeps the conversation. A second call, or no answer, replaces the process."""
        turn, link = self._turn, self._turn_link
        if turn is None or turn.over.is_set():
            return False
        turn.interrupts += 1
        if link is None:
            turn.wake()
        elif turn.interrupts > 1 or not link.connection.dialect.interrupts:
            self._replace(link)
        else:
            await self._interrupt_politely(turn, link)
        return True

    async def _interrupt_politely(self, turn: Inbox, link: Link) -> None:
        answer = link.interrupt()
        await asyncio.wait({answer}, timeout=self.timing.interrupt_seconds)
        if turn.over.is_set():
            return
        if not answer.done() or answer.result().error is not None:
            self._replace(link)
            return
        try:
            async with asyncio.timeout(self.timing.interrupted_result_seconds):
                await turn.over.wait()
        except TimeoutError:
            self._end_turn_here(Outcome.INTERRUPTED)

    def _replace(self, link: Link) -> None:
        """Ends the process; the next turn starts another and resumes."""
        self._end_turn_here(Outcome.INTERRUPTED)
        link.ended = True
        self._spawn(link.close(grace_seconds=0.0))

    async def _abandon(self, link: Link) -> None:
        if link.ended or not link.connection.dialect.interrupts:
            link.ended = True
            await link.close(grace_seconds=0.0)
        else:
            await asyncio.wait({link.interrupt()}, timeout=self.timing.interrupt_seconds)

    def _end_turn_here(self, outcome: Outcome, error: str = "", **more: Any) -> None:
        turn = self._turn
        if turn is None or turn.over.is_set():
            return
        for question_id in self._questions.open:
            turn.push(events.QuestionWithdrawn(question_id, reason=error or "interrupted"))
        turn.push(self._local_end(turn.prompt.id, outcome, error, **more))

    def _local_end(self, prompt_id: str, outcome: Outcome, error: str = "", **more: Any) -> events.TurnEnded:
        return events.TurnEnded(prompt_id=prompt_id, outcome=outcome, error=error, session_id=self.session_id, **more)

    # --- the pump: queue, never wait ------------------------------------------------------------------------------

    def _happened(self, link: Link, happened: list[Event]) -> None:
        turn = self._turn if self._turn_link is link else None
        for event in happened:
            kind = type(event)
            if kind in _NOTES:
                _NOTES[kind](self, link, event)
            if turn is not None and not self._unasked_running:
                turn.push(event)
            elif type(event) not in _OWN_BUSINESS:
                self.unasked.append(event)
                if self._on_unasked is not None:
                    self._on_unasked(event)
            if type(event) is events.UnaskedTurnEnded:
                self._unasked_running = False
        if turn is not None:
            turn.check_level()

    def _note_started(self, link: Link, event: events.SessionStarted) -> None:
        self.session_id = event.session_id
        self._resumable = self._begun = True
        if link.connection.dialect.host_runs_tools and event.mode == "bypassPermissions":
            # It runs tools itself and asks nobody: the very opposite of what host-tools promises.
            error = "The host-tools dialect needs a CLI that leaves tools to its host; this one runs them unasked."
            log.error(error)
            self._end_turn_here(Outcome.FAILED, error)
            link.ended = True
            link.kill_now()

    def _note_reset(self, _link: Link, event: events.ConversationReset) -> None:
        self.session_id = event.session_id

    def _note_turn_started(self, _link: Link, _event: Event) -> None:
        self._unasked_running = False

    def _note_unasked_started(self, _link: Link, _event: Event) -> None:
        self._unasked_running = True

    def _note_unasked_ended(self, link: Link, event: events.UnaskedTurnEnded) -> None:
        if link.initialised is None and link.connection.dialect.initialises:
            link.start_error = event.text or "it gave no reason"

    def _note_stream_ended(self, link: Link, _event: Event) -> None:
        self._unasked_running = False
        self._spawn(self._bury(link))

    def _note_turn_ended(self, link: Link, event: events.TurnEnded) -> None:
        if event.outcome in (Outcome.MAX_TURNS, Outcome.MAX_BUDGET):
            # It will exit, if not now then at the next prompt, with another such error (CLI 2.1.326).
            link.ended = True
            self._spawn(link.close(grace_seconds=self.timing.close_seconds))

    def _note_mcp(self, link: Link, event: events.McpCalled) -> None:
        self._spawn(serve_mcp(link, self._mcp_servers, event))

    def _note_hook(self, link: Link, event: events.HookCalled) -> None:
        self._spawn(serve_hook(link, self._hooks, event))

    async def _bury(self, link: Link) -> None:
        """The CLI ended by itself: say so where a turn was waiting for it, and leave nothing of it behind."""
        await link.wait_exit(1.0)
        if self._turn_link is link:
            code, tail = link.exit_code, link.stderr_tail
            how = "stopped talking" if code is None else f"ended unexpectedly (exit code {code})"
            said = f" It wrote: {tail.strip()[-1000:]}" if tail.strip() else ""
            error = f"Claude Code {how} in the middle of the turn.{said}"
            self._end_turn_here(Outcome.FAILED, error, exit_code=code, stderr_tail=tail)
        await link.close(grace_seconds=0.0)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("background work failed", exc_info=task.exception())

    async def _decided(self, link: Link, question: events.Question, decision: Decision) -> None:
        """After an answer has gone out: what the dialect leaves to this side."""
        dialect = link.connection.dialect
        if isinstance(decision, Allow) and dialect.host_runs_tools:
            given = question.input if decision.input is None else decision.input
            finished = await run_host_tool(link, self._host_tools, question, given)
            if self._turn is not None:
                self._turn.push(finished)
        told = dialect.interrupts and question.dialog is None  # else the answer has no word for stopping
        if isinstance(decision, Deny) and decision.stop and not told:
            await self.interrupt()

    async def ask(self, prompt: Prompt | str) -> Reply:
        """A whole turn, answered. Raises `TurnFailed` where it did not come to its end."""
        reply = await collect_reply(self.turn(prompt))
        if self.options.json_schema is not None and reply.data is None:
            # The CLI calls that a success (2.1.326); whoever asked for data would call it a failure.
            raise TurnFailed(
                f"Claude answered in words and not by the schema: {reply.text[:200]}",
                outcome=Outcome.FINISHED.value,
                session_id=reply.session_id,
            )
        return reply

    # --- control requests -----------------------------------------------------------------------------------------

    async def request(self, subtype: str, *, timeout_seconds: float | None = None, **fields: Any) -> dict[str, Any]:
        """A control request and its answer. Time in which a person is being asked does not count."""
        link = await self._ready_link()
        allowed = self.timing.request_seconds if timeout_seconds is None else timeout_seconds
        answer = link.request(subtype, **fields)
        clock = asyncio.get_running_loop().time
        began, waited_before = clock(), self._questions.waited_seconds
        remaining = allowed
        while remaining > 0 and not answer.done():
            await asyncio.wait({answer}, timeout=max(remaining, 0.05))
            remaining = allowed - (clock() - began) + (self._questions.waited_seconds - waited_before)
        if not answer.done():
            raise CliSilent(f"Claude Code did not answer `{subtype}` within {allowed:.0f} s.")
        answered = answer.result()
        if answered.error is not None and link.ended:
            raise CliDied(
                f"Claude Code ended before it answered `{subtype}`.",
                exit_code=link.exit_code,
                stderr_tail=link.stderr_tail,
            )
        if answered.error is not None:
            raise CliRefused(answered.error, subtype=subtype, code=answered.error_code)
        return answered.response

    async def set_model(self, model: str | None) -> str:
        answer = await self.request("set_model", model=model)
        self.options = msgspec.structs.replace(self.options, model=model)
        return str(answer.get("model") or model or "default")

    async def set_mode(self, mode: str) -> str:
        answer = await self.request("set_permission_mode", mode=mode)
        self.options = msgspec.structs.replace(self.options, mode=mode)
        return str(answer.get("mode") or mode)


_OWN_BUSINESS = frozenset({events.RequestAnswered, events.Initialised, events.McpCalled, events.HookCalled})
"""Dealt with here; nobody else needs to hear of them outside a turn."""

_NOTES: dict[type, Callable[[Session, Link, Any], None]] = {
    events.SessionStarted: Session._note_started,
    events.ConversationReset: Session._note_reset,
    events.TurnStarted: Session._note_turn_started,
    events.TurnEnded: Session._note_turn_ended,
    events.UnaskedTurnStarted: Session._note_unasked_started,
    events.UnaskedTurnEnded: Session._note_unasked_ended,
    events.StreamEnded: Session._note_stream_ended,
    events.McpCalled: Session._note_mcp,
    events.HookCalled: Session._note_hook,
}
"""What the session itself learns from an event, before it is handed on."""
