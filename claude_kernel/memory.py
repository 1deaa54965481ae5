"""What the conversation knows of its notebook: its past, its cells, its budget; and how it goes back and on.

It decides which session comes next and has the conversation open it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from claude_kernel.errors import BudgetReached, ClaudeKernelError, CliDied, UsageError
from claude_kernel.journal import Back, Journal, Went
from claude_kernel.past import Past, Where, find_past
from claude_kernel.prompts.offers import Offer
from claude_kernel.protocol import Allow, events
from claude_kernel.render import Bundle, render_notice, render_record
from claude_kernel.render.cut import count_of
from claude_kernel.render.figures import dollars_text
from claude_kernel.session import Session
from claude_kernel.shown import Shown


class Habits(msgspec.Struct, frozen=True, kw_only=True):
    """How the conversation lives with its notebook."""

    resume: str = "ask"
    """After a restart of the kernel: `ask`, `always`, `never`."""
    rerun: str = "continue"
    """When a cell is run again: `continue`, or `rewind` to before it."""
    budget_usd: float | None = None
    """What the notebook may cost in all."""
    keep: str = "all"
    """What is kept on disk: `all`, `costs`, `nothing`."""


Reopen = Callable[..., Awaitable[Session]]
"""Closes the session and opens another, with changed options."""
Choose = Callable[[Bundle, tuple[Offer, ...], Any, Callable[[Offer | None], Bundle]], Awaitable[Offer | None]]


class Memory:
    def __init__(
        self,
        habits: Habits,
        journal: Journal,
        notebook: Path | None,
        folder: Path,
        *,
        demo: bool,
        reopen: Reopen,
        choose: Choose,
    ) -> None:
        self.habits = habits
        self.journal = journal
        self.notebook = notebook
        self.past: Past | None = find_past(journal, notebook, folder, demo=demo)
        """The notebook's earlier conversation, until it is decided whether this one goes on with it."""
        self._reopen = reopen
        self._choose = choose
        self._warned_of_context = False

    # --- before a prompt ------------------------------------------------------------------------------------------

    @property
    def undecided(self) -> bool:
        return self.past is not None and self.past.where is Where.HERE and self.habits.resume != "never"

    async def prepare(self, shown: Shown, cell: str) -> None:
        """Raises `BudgetReached` where there is to be no further prompt."""
        self._check_budget()
        await self._settle_past(shown)
        before = self.journal.find_cell(cell)
        if before is None:
            return
        if self.habits.rerun == "rewind":
            shown.notice(render_notice(await self.go_back(before)))
        else:
            shown.notice(render_notice(_RUN_AGAIN))

    async def _settle_past(self, shown: Shown) -> None:
        past = self.past
        if past is None:
            return
        if past.where is not Where.HERE:
            shown.notice(render_notice(_NOT_HERE[past.where]))
        elif self.habits.resume == "always" and not past.copied:  # a file's own word is never more than a question
            about = f" ({past.told()})" if past.told() else ""
            shown.notice(render_notice(f"Going on with this notebook's conversation{about}."))
            await self.go_on()
        elif self.habits.resume != "never":
            chosen = await self._choose(past.render(), _OFFERS, shown, _record)
            if chosen is _OFFERS[0]:
                await self.go_on()
        if self.past is not None:
            self.forget()

    # --- which conversation ---------------------------------------------------------------------------------------

    async def go_on(self) -> None:
        """With the notebook's earlier conversation, where there is one and nothing was decided yet."""
        past = self.past
        if past is None:
            return
        if past.where is not Where.HERE:
            raise UsageError(_NOT_HERE[past.where])
        self.past = None
        fork = past.copied or bool(past.place)
        await self._reopen(
            resume=past.session_id, resume_at=past.place or None, fork=fork, session_id=None, resume_gently=True
        )

    async def go_on_with(self, session_id: str) -> None:
        """Any conversation of this folder. The one so far is kept; one that was held elsewhere goes on there too."""
        self.past = None
        await self._reopen(resume=session_id, fork=session_id not in self.journal.sessions, session_id=None)
        self.journal.add(Went(at=time.time(), session_id=session_id))

    def forget(self) -> None:
        """The next prompt begins a conversation of its own; what was before is kept."""
        self.past = None
        if self.journal.session_id:
            self.journal.add(Went(at=time.time()))

    async def go_back(self, count: int) -> str:
        """To where the first `count` turns ended. The others stay as they were, under their own id."""
        left, kept_as = len(self.journal.turns) - count, self.journal.session_id
        place = self.journal.find_place(count)
        if place is None:
            await self._reopen(resume=None, session_id=None)
        else:
            branch = await self._reopen(resume=place.session_id, resume_at=place.place, fork=True, session_id=None)
            try:
                await branch.start()
            except ClaudeKernelError as error:
                await self._stay()
                if not isinstance(error, CliDied) or not error.start_error:
                    raise
                raise UsageError(_CANNOT_GO_BACK) from error
        self.journal.add(Back(at=time.time(), turns=count if place is not None else 0))
        gone = f"{count_of(left, 'prompt')} from there on {'is' if left == 1 else 'are'}"
        return (
            f"Went back to before this cell: {gone} no part of the conversation any more. "
            f"What it was is kept: %claude resume {kept_as}"
        )

    async def _stay(self) -> None:
        """Where the conversation was, which may be a place that it went back to and has not gone on from."""
        place = self.journal.find_place(len(self.journal.turns)) if self.journal.went_back else None
        if place is not None:
            await self._reopen(resume=place.session_id, resume_at=place.place, fork=True, session_id=None)
        else:
            resume = None if self.journal.went_back else self.journal.session_id or None
            await self._reopen(resume=resume, session_id=None)

    # --- money and room -------------------------------------------------------------------------------------------

    @property
    def budget(self) -> float | None:
        """What the notebook may cost: what was said here, else what is configured."""
        return self.journal.budget if self.journal.budget is not None else self.habits.budget_usd

    @property
    def spent(self) -> float | None:
        return self.journal.cost_usd if self.journal.cost_known else None

    def _check_budget(self) -> None:
        if self.budget and self.journal.cost_usd >= self.budget:
            raise BudgetReached(
                f"This notebook has cost {dollars_text(self.journal.cost_usd)}, "
                f"and its budget is {dollars_text(self.budget)}."
            )

    def context_notice(self, usage: events.Usage) -> Bundle | None:
        """Once, when the window is nearly full; and again only after it had been emptied."""
        if not usage.context_tokens or not usage.context_window:
            return None
        share = usage.context_tokens / usage.context_window
        full = share >= _NEARLY_FULL
        told, self._warned_of_context = self._warned_of_context, full
        return render_notice(f"The context window is {share:.0%} full. {_WHEN_FULL}") if full and not told else None


_OFFERS = (
    Offer(key="c", label="Go on with it", decision=Allow(), verdict="", scope="Claude remembers what was said"),
    Offer(key="n", label="Begin anew", decision=Allow(), verdict="", scope="The earlier conversation is kept"),
)


def _record(chosen: Offer | None) -> Bundle:
    if chosen is _OFFERS[0]:
        return render_record("Going on", "with this notebook's conversation")
    if chosen is None:
        return render_notice(
            "Not answered. The notebook's earlier conversation is kept: %claude resume before a prompt goes on with it."
        )
    return render_record("Begun anew", "The earlier conversation is kept: %claude sessions lists it")


_RUN_AGAIN = (
    "This cell was run before; the conversation goes on from where it is. "
    "A first line %claude rewind takes it back to before this cell."
)
_CANNOT_GO_BACK = (
    "The conversation cannot go back to before this cell: it was summarised or cleared since. It is as it was before."
)
_NOT_HERE = {
    Where.GONE: "This notebook's earlier conversation is not on this machine (any more): a new one begins.",
    Where.ELSEWHERE: "This notebook's earlier conversation belongs to another folder: a new one begins here.",
}
_NEARLY_FULL = 0.8
_WHEN_FULL = "Claude Code summarises the conversation when it is full. /compact does it now; %claude new begins anew."
