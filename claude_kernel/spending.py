"""What `%claude cost`, `budget` and `context` say: the figures of the journal and of the CLI, as tables with bars."""

from __future__ import annotations

import time
from typing import Any

from claude_kernel.conversation import Conversation
from claude_kernel.desk import Desk
from claude_kernel.errors import UsageError
from claude_kernel.journal import Budget, Turn
from claude_kernel.render.cut import count_of
from claude_kernel.render.figures import dollars_text, tokens_text
from claude_kernel.render.visible import one_line
from claude_kernel.tables import code, table

_BAR = 12
_NO_BREAK = "\N{NO-BREAK SPACE}"
_MOST_ROWS = 40
_NOT_USED = ("free", "buffer")


async def cost(talk: Conversation, _rest: list[str], _desk: Desk) -> str:
    """By cell and by model, over all restarts."""
    journal = talk.journal
    turns = sorted(journal.all.values(), key=lambda turn: turn.at)
    if not turns and not journal.unasked:
        return "Nothing was spent in this notebook yet."
    if not journal.cost_known:
        return f"{count_of(len(turns), 'prompt')}; what they cost, this Claude Code does not say."
    total = journal.cost_usd
    most = max((turn.cost_usd or 0.0 for turn in turns), default=0.0)
    rows = [_turn_row(number, turn, most, talk) for number, turn in enumerate(turns, 1)]
    left_out = rows[:-_MOST_ROWS]
    shown = [("…", f"{count_of(len(left_out), 'earlier prompt')}", "", "", "")] if left_out else []
    shown += rows[-_MOST_ROWS:]
    if journal.unasked:
        between = sum(line.cost_usd or 0.0 for line in journal.unasked)
        shown.append(("", "agents, between cells", "", dollars_text(between), bar(between, most)))
    shown.append(("", f"**{count_of(len(turns), 'prompt')}**", "", f"**{dollars_text(total)}**", ""))
    parts = [table(("", "prompt", "tokens", "cost", ""), shown, right=(2, 3))]
    by_model = sorted(journal.by_model.items(), key=lambda entry: -entry[1])
    if by_model:
        top = by_model[0][1]
        models = [(f"`{model}`", dollars_text(spent), bar(spent, top)) for model, spent in by_model]
        parts.append(table(("model", "cost", ""), models, right=(1,)))
    limit = talk.memory.budget
    if limit:
        parts.append(f"The budget is {dollars_text(limit)}; {dollars_text(max(limit - total, 0))} is left.")
    return "\n\n".join(parts)


def _turn_row(number: int, turn: Turn, most: float, talk: Conversation) -> tuple[str, str, str, str, str]:
    spent = dollars_text(turn.cost_usd) if turn.cost_usd is not None else ""
    words = one_line(turn.prompt, 40) or "(not kept)"
    held = any(turn is kept for kept in talk.journal.turns)
    tokens = f"{tokens_text(turn.input_tokens)} in, {tokens_text(turn.output_tokens)} out".replace(" ", _NO_BREAK)
    about = f"{code(words)}{'' if held else ' (another branch)'}"
    return (str(number), about, tokens, spent, bar(turn.cost_usd or 0.0, most))


async def budget(talk: Conversation, rest: list[str], _desk: Desk) -> str:
    spent = dollars_text(talk.journal.cost_usd)
    if not rest:
        known = (
            f"The budget of this notebook is {dollars_text(talk.memory.budget)}"
            if talk.memory.budget
            else "There is no budget"
        )
        return f"{known}; {spent} was spent. `%claude budget 2.50` sets one, `%claude budget off` takes it away."
    if rest[0] == "off":
        talk.journal.add(Budget(at=time.time(), usd=0.0))
        return f"There is no budget any more. {spent} was spent."
    try:
        amount = float(rest[0].lstrip("$"))
    except ValueError:
        amount = 0.0
    if not 0 < amount < 1e9:
        raise UsageError(f"A budget is an amount in US dollars, as in `%claude budget 2.50`; {rest[0]} is none.")
    talk.journal.add(Budget(at=time.time(), usd=amount))
    return (
        f"The budget of this notebook is {dollars_text(amount)}; {spent} was spent. When it is reached, no further "
        "prompt is sent; the one that reaches it is still answered."
    )


async def context(talk: Conversation, _rest: list[str], _desk: Desk) -> str:
    usage = await talk.session.request("get_context_usage")
    total, most = int(usage.get("totalTokens") or 0), int(usage.get("maxTokens") or 0) or 1
    rows = [_part_row(part, most) for part in usage.get("categories") or [] if isinstance(part, dict)]
    rows.append(("**in use**", f"**{total:,} of {most:,}**", bar(total, most)))
    told = [table(("context", "tokens", ""), rows, right=(1,))]
    threshold = usage.get("autoCompactThreshold")
    if usage.get("isAutoCompactEnabled") and isinstance(threshold, int):
        told.append(
            f"At {threshold:,} tokens Claude Code summarises the conversation by itself; `/compact` does it now."
        )
    return "\n\n".join(told)


def _part_row(part: dict[str, Any], most: int) -> tuple[str, str, str]:
    tokens = part.get("tokens") or 0
    drawn = "" if part.get("kind") in _NOT_USED else bar(tokens, most)
    return (str(part.get("name")), f"{tokens:,}", drawn)


def bar(amount: float, most: float) -> str:
    """A line, in halves of a character; what is not nothing is seen."""
    if most <= 0 or amount <= 0:
        return ""
    halves = max(round(2 * _BAR * min(amount / most, 1.0)), 1)
    return "━" * (halves // 2) + "╸" * (halves % 2)
