"""Cards without a front end: what happens to them while nobody has looked yet."""

from __future__ import annotations

import asyncio

from support.talk import run

from claude_kernel.prompts.cards import PermissionCard
from claude_kernel.prompts.ticket import Ticket
from claude_kernel.protocol import events
from claude_kernel.render import Bundle


def test_a_card_that_is_taken_back_in_the_moment_in_which_it_is_seen_is_taken_back() -> None:
    async def scene() -> None:
        question = events.Question(id="q", tool_name="Bash", input={"command": "ls"})
        card = PermissionCard(Ticket(question), Bundle("<p>ls</p>", "ls"), [], None)
        waiting = asyncio.ensure_future(card.wait_seen(30))
        await asyncio.sleep(0)
        card.root.set_state({"_view_count": 1})
        await asyncio.sleep(0)  # the view is known now, and whoever waits for it has not run yet
        waiting.cancel()
        await asyncio.wait({waiting})
        assert waiting.cancelled()
        card.close()

    run(scene())
