"""Questions that wait for a person, each asked in a task of its own. It decides nothing, and shows nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from claude_kernel.errors import QuestionClosed, UsageError
from claude_kernel.link import Link
from claude_kernel.protocol import Decision, Deny, events

log = logging.getLogger("claude_kernel.questions")

Ask = Callable[[events.Question], Awaitable[Decision]]
Decided = Callable[[Link, events.Question, Decision], Awaitable[None]]


async def refuse_all(question: events.Question) -> Decision:
    """What is asked where there is nobody to ask."""
    return Deny(reason=f"Nobody can be asked here, so {question.tool_name} was refused.")


class Questions:
    """Asks, sends each answer once, and measures how long people were waited for."""

    def __init__(self, ask: Ask | None, decided: Decided) -> None:
        self._ask = ask or refuse_all
        self._decided = decided
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._waited_seconds = 0.0
        self._since: float | None = None

    @property
    def open(self) -> tuple[str, ...]:
        return tuple(self._asking)

    @property
    def waited_seconds(self) -> float:
        return self._waited_seconds + (0.0 if self._since is None else _now() - self._since)

    def begin(self, link: Link, question: events.Question) -> None:
        """Must be called by the coroutine of the running cell: what the question shows belongs to that cell."""
        if question.id in self._asking:
            return
        if self._since is None:
            self._since = _now()
        task = asyncio.get_running_loop().create_task(self._answer(link, question))
        self._asking[question.id] = task
        task.add_done_callback(lambda done: self._finished(question.id, done))

    def withdraw(self, question_id: str) -> None:
        task = self._asking.get(question_id)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _finished(self, question_id: str, task: asyncio.Task[None]) -> None:
        self._asking.pop(question_id, None)
        if not self._asking and self._since is not None:
            self._waited_seconds += _now() - self._since
            self._since = None
        if not task.cancelled() and task.exception() is not None:
            log.error("answering failed", exc_info=task.exception())

    async def _answer(self, link: Link, question: events.Question) -> None:
        try:
            decision = await self._ask(question)
        except Exception as error:
            log.exception("asking failed; refused")
            decision = Deny(reason=f"The question could not be asked ({error}), so this was refused.")
        try:
            link.send(link.connection.answer(question.id, decision))
        except QuestionClosed:
            log.warning("the answer to question %s came too late and was not sent", question.id)
            return
        except UsageError as error:
            log.warning("the answer to question %s did not fit: %s", question.id, error)
            decision = Deny(reason=f"The answer could not be used: {error}")
            link.send(link.connection.answer(question.id, decision))
        await self._decided(link, question, decision)


def _now() -> float:
    return asyncio.get_running_loop().time()
