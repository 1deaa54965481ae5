"""A prompt under way: its stream of events, its recording, and the line that the journal keeps of it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from claude_kernel.journal import Turn
from claude_kernel.past import METADATA
from claude_kernel.protocol import Prompt, events
from claude_kernel.recording import Recording, pack
from claude_kernel.reply import ReplyMaker
from claude_kernel.tools.privacy import Privacy
from claude_kernel.trouble import Trouble


class Underway:
    """A prompt under way, in whichever cell it is shown."""

    def __init__(self, prompt: Prompt, stream: AsyncIterator[events.Event], cell: str, after: str) -> None:
        self.prompt = prompt
        self.stream = stream
        self.cell = cell
        self.after = after
        self.at = time.time()
        self.recording = Recording(asyncio.get_running_loop().time)
        self.reply = ReplyMaker()
        self.started: events.SessionStarted | None = None
        self.ended: events.TurnEnded | None = None
        self.trouble: Trouble | None = None
        self.hopeless: Trouble | None = None
        self.stopping: asyncio.Future[bool] | None = None

    @property
    def interrupted(self) -> bool:
        stopped = self.ended is not None and self.ended.outcome is events.Outcome.INTERRUPTED
        return stopped and self.trouble is None

    def line(self, session_id: str, keep: str) -> Turn:
        """For the journal, as far as it has got."""
        entries = self.recording.entries() if self.ended is not None and keep == "all" else []
        hide = Privacy().cleaner(os.environ)

        def clean(text: str) -> str:
            return hide(text).encode("utf-8", "replace").decode()  # a front end may send half a character

        started, ended = self.started, self.ended
        usage = ended.usage if ended is not None else events.Usage()
        return Turn(
            at=self.at,
            prompt_id=self.prompt.id,
            prompt=clean(self.prompt.text) if keep == "all" else "",
            after=self.after,
            cell=self.cell,
            session_id=(ended.session_id if ended is not None else "") or session_id,
            place=ended.place if ended is not None else "",
            outcome=ended.outcome.value if ended is not None else "",
            model=started.model if started is not None else "",
            version=started.version if started is not None else "",
            seconds=round(self.recording.seconds, 2),
            cost_usd=usage.cost_usd,
            by_model=usage.by_model,
            input_tokens=usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
            output_tokens=usage.output_tokens,
            tools=self.reply.tools,
            files=self.reply.files,
            events=msgspec.Raw(msgspec.json.encode(pack(entries, clean))),
        )

    def metadata(self, session_id: str) -> dict[str, Any]:
        """What the notebook's file tells of the turn: little while it runs, all when it has ended."""
        told: dict[str, Any] = {"session_id": session_id, "message_id": self.prompt.id}
        if self.ended is not None and self.started is not None:
            told |= {
                "model": self.started.model,
                "cli_version": self.started.version,
                "cost_usd": self.ended.usage.cost_usd,
                "tools": sorted(set(self.reply.tools)),
                "outcome": self.ended.outcome.value,
            }
        return {METADATA: {name: value for name, value in told.items() if value not in ("", None)}}
