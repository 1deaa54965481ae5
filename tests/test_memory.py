"""What is decided before a prompt: the notebook's past, a cell that was run before, the budget, the context's room."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.papers import CellPaper
from support.talk import faulty, run

from claude_kernel.conversation import Conversation
from claude_kernel.errors import UsageError
from claude_kernel.journal import Budget, Journal, Turn
from claude_kernel.memory import Habits
from claude_kernel.past import Past, Where
from claude_kernel.protocol import Decision, Prompt, events
from claude_kernel.settings import load_settings
from claude_kernel.underway import Underway

MINE = "0b8a5d5e-1f2c-4a57-9d31-52f1f4a4b9a7"


def usage(share: float) -> events.Usage:
    return events.Usage(context_tokens=int(share * 1_000), context_window=1_000)


def talk_in(tmp_path: Path, journal: Journal | None = None, **habits: Any) -> Conversation:
    return Conversation(faulty("junk", cwd=str(tmp_path)), habits=Habits(**habits), journal=journal)


def test_a_window_nearly_full_is_told_once_and_again_after_it_was_emptied(tmp_path: Path) -> None:
    memory = talk_in(tmp_path).memory
    told = [memory.context_notice(usage(share)) is not None for share in (0.5, 0.81, 0.9, 0.99, 0.1, 0.85, 0.9)]
    assert told == [False, True, False, False, False, True, False]
    assert memory.context_notice(events.Usage()) is None


@pytest.mark.parametrize(("said", "configured", "budget"), [(None, 2.0, 2.0), (0.5, 2.0, 0.5), (0.0, 2.0, 0.0)])
def test_what_was_said_of_the_budget_comes_before_what_was_configured(
    tmp_path: Path, said: float | None, configured: float, budget: float
) -> None:
    journal = Journal(None)
    if said is not None:
        journal.add(Budget(usd=said))
    assert talk_in(tmp_path, journal, budget_usd=configured).memory.budget == budget


def test_a_prompt_beyond_the_budget_is_not_sent_and_says_so(tmp_path: Path) -> None:
    journal = Journal(None)
    journal.add(Turn(prompt_id="a", cost_usd=1.5))

    async def scene() -> None:
        talk = talk_in(tmp_path, journal, budget_usd=1.0)
        paper = CellPaper()
        end = await talk.run("say hello", paper)
        assert end.trouble is not None
        assert end.trouble.kind == "BudgetReached"
        assert "$1.50" in paper.plain
        assert "$1.00" in paper.plain
        assert talk.session.pid is None

    run(scene())


@pytest.mark.parametrize("where", [Where.GONE, Where.ELSEWHERE])
def test_what_cannot_be_gone_on_with_is_told_and_a_new_one_begins(tmp_path: Path, where: Where) -> None:
    async def scene() -> None:
        talk = talk_in(tmp_path, resume="always")
        talk.memory.past = Past(session_id=MINE, where=where)
        with pytest.raises(UsageError, match="a new one begins"):
            await talk.memory.go_on()
        paper = CellPaper()
        end = await talk.run("say hello", paper)
        assert end.trouble is None
        assert "a new one begins" in paper.plain
        assert "--resume" not in str(talk.session.options.resume)
        await talk.close()

    run(scene())


class Thinking:
    """A person who never comes to an answer."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def __call__(self, *_question: object) -> Decision:
        raise AssertionError("no tool was called")

    async def choose(self, *_question: object) -> None:
        self.asked.set()
        await asyncio.Event().wait()


def test_stopping_the_question_whether_to_go_on_sends_nothing_and_leaves_it_open(tmp_path: Path) -> None:
    async def scene() -> None:
        person = Thinking()
        talk = Conversation(faulty("junk", cwd=str(tmp_path)), ask=person)
        talk.memory.past = Past(session_id=MINE, where=Where.HERE, prompts=1)
        for stop in (Conversation.interrupt, hand_over):
            person.asked.clear()
            cell = asyncio.ensure_future(talk.run("say hello", CellPaper()))
            await person.asked.wait()
            assert talk.running
            await stop(talk)
            assert (await cell).interrupted
            assert talk.memory.past is not None
            assert talk.session.pid is None
            assert not talk.running
        talk.memory.past = None
        assert (await talk.run("say hello", CellPaper())).trouble is None
        await talk.close()

    async def hand_over(talk: Conversation) -> None:
        talk.hand_over()

    run(scene())


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("half a character \ud83d", "half a character ?"),
        ("my key is sk-ant-api03-Walnut_Walnut-Walnut", "my key is [secret]"),
    ],
)
def test_a_prompt_is_kept_without_what_cannot_or_must_not_be(tmp_path: Path, words: str, kept: str) -> None:
    async def scene() -> None:
        talk = talk_in(tmp_path, Journal(tmp_path / "journal.jsonl"))
        turn = Underway(Prompt(text=words), talk.session.turn(words), "", "")
        talk.journal.add(turn.line("s1", "all"))
        assert [each.prompt for each in Journal(tmp_path / "journal.jsonl").turns] == [kept]

    run(scene())


def test_a_journal_that_cannot_be_written_is_told_once_and_the_turn_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    async def scene() -> None:
        talk = talk_in(tmp_path, Journal(tmp_path / "file" / "x.jsonl"))
        papers = [CellPaper() for _ in range(3)]
        for paper in papers:
            assert (await talk.run("say hello", paper)).trouble is None
        assert ["is not kept for after a restart" in paper.plain for paper in papers] == [False, True, False]
        await talk.close()

    run(scene())


def test_what_is_kept_is_what_the_setting_says(tmp_path: Path) -> None:
    async def scene() -> None:
        for keep in ("all", "costs"):
            path = tmp_path / f"{keep}.jsonl"
            talk = talk_in(tmp_path, Journal(path), keep=keep)
            await talk.run("say walnut", CellPaper())
            await talk.close()
            kept = path.read_text()
            assert ("walnut" in kept) == (keep == "all")
            assert Journal(path).cost_usd == talk.journal.cost_usd > 0
            again = talk_in(tmp_path, Journal(path))
            paper = CellPaper()
            await again.show_last(paper)
            assert ("walnut" if keep == "all" else "is not kept") in paper.plain

    run(scene())


@pytest.mark.parametrize(
    ("name", "value", "given"),
    [("budget", "2.50", 2.5), ("max_turns", "7", 7), ("resume", "always", "always"), ("keep", "costs", "costs")],
)
def test_settings_of_the_environment_are_numbers_where_they_should_be(name: str, value: str, given: object) -> None:
    loaded = load_settings(environ={f"CLAUDE_KERNEL_{name.upper()}": value})
    assert getattr(loaded.settings, name) == given
    assert not loaded.problems


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("budget", "cheap"),
        ("budget", "-1"),
        ("budget", "nan"),
        ("budget", "inf"),
        ("max_turns", "2.5"),
        ("max_turns", "-1"),
        ("resume", "yes"),
        ("rerun", "undo"),
        ("keep", "none"),
    ],
)
def test_a_setting_that_cannot_be_is_told_and_left_out(name: str, value: str) -> None:
    loaded = load_settings(environ={f"CLAUDE_KERNEL_{name.upper()}": value})
    (problem,) = loaded.problems
    assert f"`{name}` cannot be '{value}'" in problem
    assert getattr(loaded.settings, name) == getattr(load_settings(environ={}).settings, name)
