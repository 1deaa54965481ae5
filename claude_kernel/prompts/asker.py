"""The one place that chooses how to ask: widgets, typed input, or not at all. Never two of them at once.

A widget front end is known by its answer: a card that is on a page counts its views. Where none comes the card is
closed before anything else is tried.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from claude_kernel.errors import UsageError
from claude_kernel.prompts.front import FrontEnd
from claude_kernel.prompts.offers import Offer, find_editable, find_offers
from claude_kernel.prompts.records import render_decision, render_withdrawn
from claude_kernel.prompts.scene import Scene
from claude_kernel.prompts.stdin import ask_by_keys, ask_choice
from claude_kernel.prompts.things import compose_thing
from claude_kernel.prompts.ticket import Ticket
from claude_kernel.prompts.unattended import refuse_unattended, render_refusal
from claude_kernel.protocol import Decision, Deny, events
from claude_kernel.protocol.decisions import new_id
from claude_kernel.render import Bundle, join_bundles

if TYPE_CHECKING:
    from claude_kernel.prompts.cards import Card  # imports ipywidgets, which takes a while: only for the first card

log = logging.getLogger("claude_kernel.prompts")

WAYS = ("auto", "widgets", "stdin", "never")
PROBE_SECONDS = 3.0
AGAIN_SECONDS = 0.5
"""For a client that showed no card before: its page may have been asleep, but most will never show one."""


class Place(Protocol):
    """An output of the cell, for the card and then for its record: a `Slot` of the screen."""

    def show(self, mime: dict[str, Any]) -> None: ...
    def settle(self, bundle: Bundle, *, allowed: bool = False) -> None: ...


class Noticing(Protocol):
    def notice(self, bundle: Bundle) -> None: ...


@runtime_checkable
class HasPlaces(Protocol):
    def slot(self, tool_use_id: str = "") -> Place: ...


class _Lines:
    """The place of a question where outputs cannot be updated: everything is one more line."""

    def __init__(self, shown: Noticing) -> None:
        self._shown = shown

    def show(self, mime: dict[str, Any]) -> None:
        self._shown.notice(Bundle(mime.get("text/html", ""), mime.get("text/plain", "")))

    def settle(self, bundle: Bundle, *, allowed: bool = False) -> None:  # noqa: ARG002  # no row shows it here
        self._shown.notice(bundle)


class Asker:
    """Ask with it: `await asker(question, shown, scene)`. Cancel the task, and the question is taken back."""

    def __init__(self, front: FrontEnd, way: str = "auto") -> None:
        self._front = front
        self._way = way
        self._shows_cards: dict[str, bool] = {}
        self._typing = asyncio.Lock()

    @property
    def way(self) -> str:
        return self._way

    @way.setter
    def way(self, way: str) -> None:
        if way not in WAYS:
            raise UsageError(f"There is no way {way!r} to ask. There are {', '.join(WAYS)}.")
        self._way = way
        self._shows_cards.clear()

    async def __call__(self, question: events.Question, shown: Noticing, scene: Scene) -> Decision:
        has_places = isinstance(shown, HasPlaces)
        place: Place = shown.slot(question.tool_use_id or "") if isinstance(shown, HasPlaces) else _Lines(shown)
        before = await asyncio.to_thread(scene.read_before, question)
        asking = _Asking(question, scene, compose_thing(question, scene, before).render(), place)
        try:
            decided = await self._decide(asking, cards=has_places)
        except asyncio.CancelledError as cancelled:
            place.settle(render_withdrawn(question, scene, reason=str(cancelled)))  # empty where none was given
            raise
        if decided is None:
            decision = refuse_unattended(question, scene)
            place.settle(render_refusal(question))
            return decision
        place.settle(render_decision(question, *decided, scene), allowed=not isinstance(decided[0], Deny))
        return decided[0]

    async def choose(
        self, text: Bundle, offers: Sequence[Offer], shown: Noticing, record: Callable[[Offer | None], Bundle]
    ) -> Offer | None:
        """A question of our own: one of several ways to go on, or none where nobody can be asked. `record` is what
        stays in its place."""
        place: Place = shown.slot() if isinstance(shown, HasPlaces) else _Lines(shown)
        asking = _Asking(events.Question(id=new_id(), tool_name="", input={}), Scene(), text, place, tuple(offers))
        try:
            decided = await self._decide(asking, cards=isinstance(shown, HasPlaces))
        except asyncio.CancelledError:
            place.settle(record(None))
            raise
        chosen = decided[1] if decided is not None else None
        place.settle(record(chosen))
        return chosen

    # --- the ways -------------------------------------------------------------------------------------------------

    async def _decide(self, asking: _Asking, *, cards: bool) -> tuple[Decision, Offer | None] | None:
        decided = await self._ask_by_card(asking) if cards and self._way in ("auto", "widgets") else None
        if decided is None and self._way in ("auto", "stdin") and self._front.takes_input():
            decided = await self._ask_typed(asking)
        return decided

    async def _ask_by_card(self, asking: _Asking) -> tuple[Decision, Offer | None] | None:
        """None where nobody sees cards."""
        client = self._front.client()
        known = self._shows_cards.get(client)
        ticket = Ticket(asking.question)
        card = asking.make_card(ticket)
        try:
            asking.place.show(card.to_mime())
            if self._way == "auto" and known is not True:
                seen = await card.wait_seen(PROBE_SECONDS if known is None else AGAIN_SECONDS)
                self._shows_cards[client] = seen
                if not seen:
                    log.info("no front end shows cards; asking in another way")
                    ticket.close()
                    asking.place.show(asking.text.to_mime())
                    card.close()
                    return None
            return await ticket.wait()
        finally:
            ticket.close()
            card.stop_counting()
            # After the output has become the record: a view whose model is gone would flash an error.
            asyncio.get_running_loop().call_soon(card.close)

    async def _ask_typed(self, asking: _Asking) -> tuple[Decision, Offer | None]:
        asked = [asking.text]

        def show(bundle: Bundle) -> None:
            asked.append(bundle)
            asking.place.show((bundle if isinstance(asking.place, _Lines) else join_bundles(asked)).to_mime())

        async with self._typing:  # a front end has one input box
            asking.place.show(asking.text.to_mime())
            if asking.offers:
                return await ask_choice(asking.offers, self._front.ask_line, show)
            return await ask_by_keys(asking.question, asking.scene, self._front.ask_line, show)


class _Asking:
    """One question under way: its words and its place. `offers` are all there is to say to one of our own."""

    def __init__(
        self, question: events.Question, scene: Scene, text: Bundle, place: Place, offers: tuple[Offer, ...] = ()
    ) -> None:
        self.question = question
        self.scene = scene
        self.text = text
        self.place = place
        self.offers = offers

    def make_card(self, ticket: Ticket) -> Card:
        from claude_kernel.prompts.cards import ChoiceCard, PermissionCard
        from claude_kernel.prompts.forms import DialogCard, QuestionsCard

        question = self.question
        if self.offers:
            return ChoiceCard(ticket, self.text, self.offers)
        if question.dialog is not None:
            return DialogCard(ticket, self.text, question.dialog)
        if question.form:
            return QuestionsCard(ticket, self.text)
        return PermissionCard(ticket, self.text, find_offers(question, self.scene), find_editable(question))


def steer_prompts(ask: object, words: list[str]) -> str:
    """`%claude prompts [WAY]`."""
    if not isinstance(ask, Asker):
        raise UsageError("Here questions are answered by a program, not by a person.")
    if words:
        ask.way = words[0]
    told = {
        "auto": "with buttons where the front end has them, else by typed input, else they are refused",
        "widgets": "with buttons only",
        "stdin": "by typed input only",
        "never": "not at all: what is not allowed already is refused",
    }
    return f"Questions are asked {told[ask.way]} (`{ask.way}`). There are {', '.join(f'`{way}`' for way in WAYS)}."
