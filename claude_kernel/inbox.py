"""What has come of the running turn and was not handed on yet, and how long nothing has. It knows no process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from claude_kernel.protocol import Prompt, events
from claude_kernel.protocol.events import Event

_HIGH, _LOW = 20_000, 2_000


class Inbox:
    """One turn's queue. Filled by the pump, emptied by the coroutine that runs the turn.

    `hold` is called with True when the reader falls far behind, and with False when it has caught up.
    """

    def __init__(self, prompt: Prompt, silence_seconds: float) -> None:
        self.prompt = prompt
        self.interrupts = 0
        self.over = asyncio.Event()
        """Set when the turn's end is in the queue: nothing is added after it."""
        self.silent = False
        self.hold: Callable[[bool], None] = lambda _held: None
        self._held = False
        self._queue: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._tools_running: set[str] = set()
        self._silence_seconds = silence_seconds
        self._told_at = 0.0

    def __len__(self) -> int:
        return len(self._queue)

    def push(self, event: Event) -> None:
        if self.over.is_set():
            return
        if not self._queue:  # else nobody waits
            self._arrived.set()
        self._queue.append(event)
        if type(event) is events.TextStreamed:  # by far the most frequent: nothing below concerns it
            return
        if isinstance(event, events.ToolStarted):
            self._tools_running.add(event.tool_use_id)
        elif isinstance(event, events.ToolFinished):
            self._tools_running.discard(event.tool_use_id)
        elif isinstance(event, events.TurnEnded) and event.prompt_id == self.prompt.id:
            self.over.set()

    def check_level(self) -> None:
        if len(self._queue) > _HIGH and not self._held:
            self._held = True
            self.hold(True)

    def take(self) -> Event | None:
        """The next event. Text that has come meanwhile is one: who falls behind is not to fall further behind."""
        queue = self._queue
        if not queue:
            return None
        event = queue.popleft()
        if type(event) is events.TextStreamed and queue and type(queue[0]) is events.TextStreamed:
            event = self._join(event)
        if self._held and len(queue) <= _LOW:
            self._held = False
            self.hold(False)
        return event

    def _join(self, first: events.TextStreamed) -> events.TextStreamed:
        queue, parent, texts = self._queue, first.parent, [first.text]
        while queue and type(more := queue[0]) is events.TextStreamed and more.parent == parent:
            texts.append(more.text)
            queue.popleft()
        return events.TextStreamed("".join(texts), parent)

    def wake(self) -> None:
        self._arrived.set()

    async def wait(self) -> None:
        """Until something comes."""
        self._arrived.clear()
        if not self._queue:
            await self._arrived.wait()

    async def wait_or_notice_silence(self, last_heard: Callable[[], float], waiting: Callable[[], bool]) -> None:
        """Until something comes, or the CLI has been silent for too long while it should be working.

        Waiting for a person, or for a tool that runs, is not silence.
        """
        self._arrived.clear()
        if self._queue:
            return
        since = max(last_heard(), self._told_at)
        patience = self._silence_seconds - (_now() - since)
        try:
            async with asyncio.timeout(max(patience, 0.01)):
                await self._arrived.wait()
            self.silent = False
        except TimeoutError:
            if waiting() or self._tools_running:
                self._told_at = _now()
            elif _now() - max(last_heard(), self._told_at) >= self._silence_seconds:
                self.silent = True
                self._told_at = _now()
                self.push(events.SilenceNoticed(_now() - last_heard()))


def _now() -> float:
    return asyncio.get_running_loop().time()
