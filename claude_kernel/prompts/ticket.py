"""One question's one decision. It knows no widget and no channel: whoever answers goes through here.

A ticket is bound to the request's id and to a hash of the input that was shown. It is taken once; what comes late,
twice, or for something else changes nothing and is logged.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading

from claude_kernel.prompts.offers import Offer
from claude_kernel.protocol import Decision, events

log = logging.getLogger("claude_kernel.prompts")


def input_hash(question: events.Question) -> str:
    held = (question.id, question.tool_name, question.input)
    return hashlib.sha256(json.dumps(held, sort_keys=True, default=str).encode("utf-8", "replace")).hexdigest()


class Ticket:
    """Made in the task that asks; `decide` may be called from any thread."""

    def __init__(self, question: events.Question) -> None:
        self.question = question
        self.shown = input_hash(question)
        self._loop = asyncio.get_running_loop()
        self._decided: asyncio.Future[tuple[Decision, Offer | None]] = self._loop.create_future()
        self._lock = threading.Lock()
        self._open = True

    @property
    def open(self) -> bool:
        return self._open

    def decide(self, question_id: str, shown: str, decision: Decision, offer: Offer | None = None) -> bool:
        """Whether it counted."""
        if question_id != self.question.id or shown != self.shown or input_hash(self.question) != self.shown:
            log.warning("refused an answer to %s: it was given for something else", self.question.id)
            return False
        with self._lock:
            if not self._open:
                log.warning("ignored a further answer to %s: it is closed", self.question.id)
                return False
            self._open = False
        self._loop.call_soon_threadsafe(self._settle, decision, offer)
        return True

    def _settle(self, decision: Decision, offer: Offer | None) -> None:
        if not self._decided.done():
            self._decided.set_result((decision, offer))

    def close(self) -> None:
        """Nobody may decide any more."""
        with self._lock:
            self._open = False
        self._decided.cancel()

    async def wait(self) -> tuple[Decision, Offer | None]:
        return await asyncio.shield(self._decided)
