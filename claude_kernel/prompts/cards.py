"""Cards made of widgets: permission and plan. They show what was composed and hand every answer to the ticket."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from claude_kernel.errors import UsageError
from claude_kernel.prompts.kit import Kit
from claude_kernel.prompts.offers import Editable, Offer, refusal
from claude_kernel.prompts.ticket import Ticket
from claude_kernel.protocol import Decision
from claude_kernel.render import Bundle, render_notice

log = logging.getLogger("claude_kernel.prompts")

WIDGET_MIME = "application/vnd.jupyter.widget-view+json"


class Card:
    """What all cards have: the text on top, a line for remarks, a way to refuse."""

    def __init__(self, ticket: Ticket, text: Bundle) -> None:
        self.kit = Kit()
        self._ticket = ticket
        # What this card shows, kept apart from the ticket: an answer names both, and they must agree.
        self._question_id, self._shown = ticket.question.id, ticket.shown
        self._text = text
        self._seen = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._remark = self.kit.html()
        self._reason: Any = None
        self.root: Any = None

    def _compose(self, *parts: Any) -> None:
        self.root = self.kit.card(self.kit.html(self._text), *parts)
        self.root.observe(lambda _change: self._loop.call_soon_threadsafe(self._seen.set), "_view_count")

    def _refusing(self, no: str, stop: str, placeholder: str) -> Any:
        self._reason = self.kit.text(placeholder)
        return self.kit.row(
            self.kit.button(no, lambda: self._refuse(stop=False)),
            self.kit.button(stop, lambda: self._refuse(stop=True), tooltip="Says no and ends the turn"),
            self._reason,
        )

    def _refuse(self, *, stop: bool) -> None:
        self._answer(refusal(self._ticket.question, self._reason.value, stop=stop))

    def _answer(self, decision: Decision, offer: Offer | None = None) -> None:
        self._ticket.decide(self._question_id, self._shown, decision, offer)

    def _say(self, words: str) -> None:
        self._remark.value = render_notice(words).html

    def to_mime(self) -> dict[str, Any]:
        """The plain text is what stays where widgets cannot be shown."""
        view = {"version_major": 2, "version_minor": 0, "model_id": self.root.model_id}
        return {WIDGET_MIME: view, "text/plain": f"{self._text.text}\n(waiting for your answer)"}

    async def wait_seen(self, seconds: float) -> bool:
        """Whether a front end shows it. Before that nobody can have clicked."""
        try:
            async with asyncio.timeout(seconds):
                await self._seen.wait()
        except TimeoutError:
            return not self._ticket.open
        return True

    def stop_counting(self) -> None:
        """Before its views go: each would still tell its going, to a subshell that JupyterLab deletes at that moment,
        and ipykernel (7.x) would print into the cell that a task was destroyed."""
        self.root._view_count = None

    def close(self) -> None:
        self.kit.close()


class ChoiceCard(Card):
    """A question of our own: a button for each way to go on."""

    def __init__(self, ticket: Ticket, text: Bundle, offers: Sequence[Offer]) -> None:
        super().__init__(ticket, text)
        self._compose(self.kit.row(*map(self._button, offers)))

    def _button(self, offer: Offer) -> Any:
        return self.kit.button(offer.label, lambda: self._answer(offer.decision, offer), tooltip=offer.scope)


class PermissionCard(Card):
    """Offers in order of safety, Edit…, and a row for no."""

    def __init__(self, ticket: Ticket, text: Bundle, offers: Sequence[Offer], editable: Editable | None) -> None:
        super().__init__(ticket, text)
        self._offers = offers
        self._editable = editable
        self._choices = self.kit.row(*self._main_buttons())
        self._typed: Any = None
        plan = ticket.question.tool_name == "ExitPlanMode"
        words = (
            ("Keep planning", "Keep planning and stop", "What should change?")
            if plan
            else ("Deny", "Deny and stop", "Why not, or what instead?")
        )
        self._compose(self._choices, self._remark, self._refusing(*words))

    def _main_buttons(self) -> list[Any]:
        shown = [self._offer_button(offer) for offer in self._offers if offer.main]
        if any(not offer.main for offer in self._offers):
            shown.append(self.kit.button("More…", self._unfold, tooltip="Allow in every project"))
        if self._editable is not None:
            shown.append(self.kit.button("Edit…", self._edit, tooltip="Change it, then run what you see"))
        return shown

    def _offer_button(self, offer: Offer) -> Any:
        tooltip = f"{offer.label}: {offer.keeps}" if offer.keeps else offer.label
        return self.kit.button(offer.label, lambda: self._answer(offer.decision, offer), tooltip=tooltip[:2_000])

    def _unfold(self) -> None:
        if not self._ticket.open:
            return
        more = [self._offer_button(offer) for offer in self._offers if not offer.main]
        kept = [button for button in self._choices.children if button.description != "More…"]
        self._choices.children = (*kept[:-1], *more, kept[-1]) if self._editable is not None else (*kept, *more)

    def _edit(self) -> None:
        if self._editable is None or not self._ticket.open:
            return
        if self._typed is None:
            what = self._editable.key or "input, as JSON"
            self._typed = self.kit.textarea(self._editable.text, f"Your {what}, in place of the one above")
        before = self._choices.children
        run = f"Run this {self._editable.key}" if self._editable.key else "Use this input"

        def back() -> None:
            self._say("")
            self._choices.children = before

        buttons = self.kit.row(self.kit.button(run, self._run_edited), self.kit.button("Back", back))
        self._choices.children = (self.kit.column(self._typed, buttons),)

    def _run_edited(self) -> None:
        if self._editable is None:
            return
        try:
            decision = self._editable.decode(self._ticket.question, self._typed.value)
        except UsageError as error:
            self._say(f"{error} Nothing was sent.")
            return
        self._answer(decision)
