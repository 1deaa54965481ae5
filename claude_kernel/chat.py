"""The conversation for programs that do not use asyncio: a thread with a loop of its own, and nothing more.

It works in scripts and also where a loop is running already, as in a notebook.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from claude_kernel.cli import Options
from claude_kernel.protocol import Decision, Prompt, events
from claude_kernel.reply import Reply
from claude_kernel.session import Session

Result = TypeVar("Result")
Decide = Callable[[events.Question], Decision | Awaitable[Decision]]


class Claude:
    """A conversation with Claude Code.

        with Claude(model="haiku") as claude:
            print(claude.ask("What does this project do?").text)

    Keyword arguments are those of `Options`, plus `ask`: a function that takes a `Question` and returns `Allow(…)`,
    `Deny(…)` or `Answers(…)`. Without it, whatever needs permission is refused.
    """

    def __init__(self, *, ask: Decide | None = None, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="claude-kernel", daemon=True)
        self.session = Session(Options(**options), ask=_as_coroutine(ask) if ask else None)

    def __enter__(self) -> Claude:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._run(self.session.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def ask(self, prompt: Prompt | str) -> Reply:
        """Sends a prompt and waits for the answer. Raises `TurnFailed` where there is none."""
        return self._run(self.session.ask(prompt))

    @property
    def session_id(self) -> str:
        """Pass it as `resume=` to go on later."""
        return self.session.session_id

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            asyncio.run_coroutine_threadsafe(self.session.interrupt(), self._loop).result()
            raise


def _as_coroutine(decide: Decide) -> Callable[[events.Question], Awaitable[Decision]]:
    async def ask(question: events.Question) -> Decision:
        # In a thread: a function that asks a person may block, and the conversation must go on meanwhile.
        decided = await asyncio.to_thread(decide, question)
        return await decided if inspect.isawaitable(decided) else decided

    return ask
