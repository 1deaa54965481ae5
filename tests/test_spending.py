"""What was spent, as a table; and the word on the budget."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.papers import CellPaper
from support.talk import faulty, run

from claude_kernel.conversation import Conversation
from claude_kernel.desk import Page
from claude_kernel.errors import UsageError
from claude_kernel.journal import Back, Journal, Turn, Unasked
from claude_kernel.spending import bar
from claude_kernel.steering import steer


def said(tmp_path: Path, journal: Journal, line: str) -> str:
    async def scene() -> str:
        talk = Conversation(faulty("junk", cwd=str(tmp_path)), journal=journal)
        return await steer(talk, line, Page(CellPaper()))

    return run(scene())


def spent(count: int) -> Journal:
    journal = Journal(None)
    for number in range(count):
        after = f"p{number - 1}" if number else ""
        journal.add(
            Turn(
                at=number,
                prompt_id=f"p{number}",
                prompt=f"a | b ` {number}",
                after=after,
                cost_usd=0.5,
                by_model={"m": 0.5},
            )
        )
    return journal


def test_every_prompt_branch_and_agent_has_its_row_and_the_sum_is_theirs(tmp_path: Path) -> None:
    journal = spent(3)
    journal.add(Unasked(cost_usd=0.25, by_model={"m": 0.25}))
    journal.add(Back(turns=1))
    told = said(tmp_path, journal, "cost")
    assert "| **3 prompts** |  | **$1.75** |" in told
    assert told.count("(another branch)") == 2
    assert "agents, between cells" in told
    assert "| `m` | $1.75 |" in told


def test_a_long_history_shows_the_newest_and_counts_all(tmp_path: Path) -> None:
    told = said(tmp_path, spent(100), "cost")
    assert "60 earlier prompts" in told
    assert "**100 prompts**" in told
    assert len(told.splitlines()) < 60


def test_a_budget_is_set_shown_and_taken_away(tmp_path: Path) -> None:
    journal = spent(1)
    assert "There is no budget; $0.50 was spent" in said(tmp_path, journal, "budget")
    assert "is $2.50; $0.50 was spent" in said(tmp_path, journal, "budget $2.50")
    assert "The budget is $2.50; $2.00 is left." in said(tmp_path, journal, "cost")
    assert "no budget any more" in said(tmp_path, journal, "budget off")
    assert journal.budget == 0.0


@pytest.mark.parametrize("word", ["much", "0", "-1", "nan", "inf", "1e99"])
def test_what_is_no_amount_changes_nothing(tmp_path: Path, word: str) -> None:
    journal = spent(1)
    with pytest.raises(UsageError, match="amount in US dollars"):
        said(tmp_path, journal, f"budget {word}")
    assert journal.budget is None


@pytest.mark.parametrize(("amount", "cells"), [(0, 0), (1e-9, 1), (0.5, 6), (1, 12), (5, 12)])
def test_a_bar_is_as_long_as_its_share(amount: float, cells: int) -> None:
    assert len(bar(amount, 1.0)) == cells
    assert bar(amount, 0.0) == ""
