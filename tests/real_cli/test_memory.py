"""What a notebook remembers, with the real CLI: a kernel that is started again is a new `Conversation`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.messages_api import MessagesApi
from support.papers import CellPaper, Notebook
from support.real_cli import cli_path
from support.talk import marked_processes, run, wait_until

from claude_kernel.cli import Options
from claude_kernel.conversation import CellEnd, Conversation
from claude_kernel.desk import Page
from claude_kernel.errors import UsageError
from claude_kernel.journal import journals_folder, open_journal
from claude_kernel.memory import Habits
from claude_kernel.prompts.offers import Offer
from claude_kernel.prompts.scene import Scene
from claude_kernel.protocol import Allow, Decision, events
from claude_kernel.render import Bundle
from claude_kernel.shown import Shown
from claude_kernel.steering import steer

pytestmark = pytest.mark.real_cli


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    yield
    assert wait_until(lambda: not marked_processes()), f"left behind: {marked_processes()}"


class Person:
    """Allows every tool, and takes the offer that it is told to."""

    def __init__(self) -> None:
        self.takes: int | None = 0
        self.asked: list[str] = []

    async def __call__(self, _question: events.Question, _shown: Shown, _scene: Scene) -> Decision:
        return Allow()

    async def choose(
        self, text: Bundle, offers: tuple[Offer, ...], shown: Any, record: Callable[[Offer | None], Bundle]
    ) -> Offer | None:
        self.asked.append(text.text)
        chosen = offers[self.takes] if self.takes is not None else None
        shown.notice(record(chosen))
        return chosen


class Kernels:
    """The kernels of one notebook, one after the other, each with the journal as it is on disk."""

    def __init__(self, project: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = project
        self.environment = environment
        self.notebook = project / "nb.ipynb"
        self.person = Person()
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", environment["CLAUDE_CONFIG_DIR"])

    def start(self, *, notebook: Path | None = None, name: str = "", **how: Any) -> Kernel:
        habits = Habits(**{key: how.pop(key) for key in ("resume", "rerun", "budget_usd", "keep") if key in how})
        options = Options(
            cli=str(cli_path()), cwd=str(self.project), environment=self.environment, inherit_environment=False, **how
        )
        path = notebook or self.notebook
        journal = open_journal(path, self.project, name)
        return Kernel(Conversation(options, ask=self.person, habits=habits, journal=journal, notebook=path))


class Kernel:
    def __init__(self, talk: Conversation) -> None:
        self.talk = talk
        self.page = Notebook()

    async def run(self, prompt: str, cell: str = "") -> tuple[CellPaper, CellEnd]:
        paper = self.page.cell()
        return paper, await self.talk.run(prompt, paper, cell=cell)

    async def say(self, line: str, cell: str = "") -> str:
        return await steer(self.talk, line, Page(self.page.cell(), cell=cell))

    async def __aenter__(self) -> Kernel:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.talk.close()


@pytest.fixture
def kernels(cli_env: dict[str, str], project: Path, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    return Kernels(project, cli_env, monkeypatch)


def sent(api: MessagesApi) -> str:
    """What reached the model last: the words of its messages."""
    return json.dumps(api.last_request()["messages"])


def knows(api: MessagesApi, *words: str) -> list[str]:
    told = sent(api)
    return [word for word in words if f"say:{word}" in told]


FIVE = ("one", "two", "three", "four", "five")


async def say_five(kernel: Kernel) -> None:
    for word in FIVE:
        _paper, end = await kernel.run(f"say:{word}", cell=f"cell-{word}")
        assert end.trouble is None


def test_a_rewound_conversation_has_forgotten_the_later_cells_and_the_old_branch_can_be_resumed(
    kernels: Kernels, messages_api: MessagesApi
) -> None:
    async def scene() -> None:
        async with kernels.start() as kernel:
            talk = kernel.talk
            await say_five(kernel)
            old = talk.session.session_id
            paper, _end = await kernel.run("say:two again", cell="cell-two")
            assert "This cell was run before; the conversation goes on" in paper.plain
            assert knows(messages_api, *FIVE) == list(FIVE)

            told = await kernel.say("rewind", cell="cell-two")
            assert f"%claude resume {old}" in told
            assert "5 prompts from there on are" in told
            await kernel.say("effort high")  # may need another process, which must not lose the place
            await talk.restart(json_schema=None)
            paper, _end = await kernel.run("say:branched", cell="cell-two")
            assert "was run before" not in paper.plain
            assert knows(messages_api, *FIVE) == ["one"]
            assert talk.session.session_id != old
            listed = await kernel.say("sessions")
            assert f"`{old}`" in listed
            assert f"`{talk.session.session_id}` (this one)" in listed
            branch = talk.session.session_id

            assert old in await kernel.say(f"resume {old}")
            await kernel.run("say:back")
            assert knows(messages_api, *FIVE, "branched") == list(FIVE)
            assert talk.session.session_id == old

            await kernel.say("rewind", cell="cell-one")  # before it there is nothing
            assert f"The next prompt goes on with `{branch}`" in await kernel.say(f"resume {branch}")
            await kernel.say("rewind 2")
            await kernel.run("say:fresh")
            assert knows(messages_api, *FIVE, "branched", "fresh") == ["fresh"]

        # Back without a prompt since: what was dropped stays dropped.
        async with kernels.start(resume="always") as kernel:
            await kernel.run("say:six")
            await kernel.run("say:seven")
            old = kernel.talk.session.session_id
            await kernel.say("rewind 1")
            assert "goes on with" in await kernel.say(f"resume {old}")  # as the answer to a rewind says
            await kernel.say("rewind 1")
        async with kernels.start(resume="always") as kernel:
            await kernel.run("say:eight")
            assert knows(messages_api, "fresh", "six", "seven", "eight") == ["fresh", "six", "eight"]
            assert kernel.talk.session.session_id != old

    run(scene(), seconds=120)


def test_after_a_summary_the_conversation_does_not_go_back_and_stays_as_it_was(
    kernels: Kernels, messages_api: MessagesApi
) -> None:
    async def scene() -> None:
        async with kernels.start(rerun="rewind") as kernel:
            for word in ("one", "two", "three"):
                await kernel.run(f"say:{word}", cell=f"cell-{word}")
            paper, _end = await kernel.run("/compact")
            assert paper.plain.count("summarised") == 1
            again = kernel.page.cell()
            await kernel.talk.show_last(again)
            assert again.plain.count("summarised") == 1
            before = kernel.talk.session.session_id
            with pytest.raises(UsageError, match="summarised or cleared"):
                await kernel.say("rewind", cell="cell-two")
            _paper, end = await kernel.run("say:again", cell="cell-two")  # by the setting, likewise
            assert end.trouble is not None
            assert "summarised or cleared" in end.trouble.title + end.trouble.remedy
            await kernel.run("say:after", cell="cell-after")
            await kernel.run("say:later", cell="cell-later")
            await kernel.run("say:after again", cell="cell-after")
            assert knows(messages_api, "after again", "later") == ["after again"]
            with pytest.raises(UsageError, match="summarised or cleared"):
                await kernel.say("rewind", cell="cell-two")
            assert kernel.talk.session.session_id != before

    run(scene(), seconds=90)


def test_an_interrupted_turn_is_shown_again_after_a_restart_and_its_true_result_is_what_claude_knows(
    kernels: Kernels, messages_api: MessagesApi
) -> None:
    async def scene() -> None:
        async with kernels.start() as kernel:
            paper = kernel.page.cell()
            call = f"tool:Bash:{json.dumps({'command': 'echo begun; sleep 60'})}"
            cell = asyncio.ensure_future(kernel.talk.run(call, paper, cell="cell-bash"))
            while "sleep 60" not in paper.html or kernel.talk.session.backlog:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await kernel.talk.interrupt()
            assert (await cell).interrupted
            await kernel.run("say:later", cell="cell-later")
            await kernel.say("rewind 1")
            await kernel.run("say:instead")
            assert "missing due to internal error" not in sent(messages_api)
            assert "Request interrupted by user" in sent(messages_api)
            assert knows(messages_api, "later", "instead") == ["instead"]
            await kernel.say("rewind 1")
        async with kernels.start() as kernel:
            again = kernel.page.cell()
            await kernel.talk.show_last(again)
            assert "sleep 60" in again.plain
            assert "Interrupted." in again.plain
            _paper, end = await kernel.run("fail:400")
            assert end.trouble is not None
        async with kernels.start() as kernel:
            again = kernel.page.cell()
            await kernel.talk.show_last(again)
            assert end.trouble.title.rstrip(".") in again.plain

    run(scene(), seconds=90)


def test_a_notebook_goes_on_after_a_restart_when_it_is_told_to(kernels: Kernels, messages_api: MessagesApi) -> None:
    person = kernels.person

    async def scene() -> None:
        async with kernels.start() as kernel:
            paper, _end = await kernel.run("say:walnut", cell="cell-walnut")
            first = kernel.talk.session.session_id
            told = next(reversed([each for each in paper.metadata.values() if each]))["claude"]
            assert told["session_id"] == first
            assert told["cli_version"].startswith("2.")
            assert told["cost_usd"] > 0
            assert told["outcome"] == "finished"
            assert {"message_id", "model"} <= set(told)
        assert person.asked == []

        async with kernels.start() as kernel:  # one click
            paper, _end = await kernel.run("say:second")
            assert "This notebook has a conversation (1 prompt" in person.asked[0]
            assert "It began with: say:walnut" in person.asked[0]
            assert "Going on" in paper.plain
            assert knows(messages_api, "walnut") == ["walnut"]
            assert kernel.talk.session.session_id == first
            await kernel.run("say:third")
            assert len(person.asked) == 1

        async with kernels.start(resume="never") as kernel:
            await kernel.run("say:alone")
            assert not knows(messages_api, "walnut")
        person.takes = 1
        async with kernels.start() as kernel:
            await kernel.run("say:anew")
            assert "It began with: say:alone" in person.asked[-1]
            assert not knows(messages_api, "walnut", "alone")
            listed = await kernel.say("sessions")
            assert f"| `{first}` | `say:walnut` | " in listed
            assert listed.count("say:") == 3
            assert f"goes on with `{first}`" in await kernel.say(f"resume {first}")
            await kernel.run("say:fourth")
            assert knows(messages_api, "walnut", "third", "alone") == ["walnut", "third"]
        asked = len(person.asked)
        async with kernels.start() as kernel:  # by word, and not asked
            assert "goes on with this notebook's conversation (4 prompts" in await kernel.say("resume")
            await kernel.run("say:fifth")
            assert knows(messages_api, "walnut", "fourth") == ["walnut", "fourth"]
            assert len(person.asked) == asked
            with pytest.raises(UsageError, match="not known here"):
                await kernel.say("resume --dangerously-skip-permissions")
            with pytest.raises(UsageError, match="not known here"):
                await kernel.say("resume 11111111-2222-3333-4444-555555555555")

        # Another notebook that names it is asked, whatever the setting, and goes on beside it.
        copy = kernels.project / "copy.ipynb"
        output = {"output_type": "display_data", "metadata": {"claude": {"session_id": first}}, "data": {}}
        copy.write_text(json.dumps({"cells": [{"cell_type": "code", "outputs": [output]}]}))
        person.takes = None
        async with kernels.start(notebook=copy, resume="always") as kernel:
            await kernel.run("say:unasked")
            assert not knows(messages_api, "walnut")
        other = kernels.project / "other.ipynb"
        copy.rename(other)
        person.takes = 0
        async with kernels.start(notebook=other, resume="always") as kernel:
            await kernel.run("say:copied")
            assert knows(messages_api, "walnut", "fifth") == ["walnut", "fifth"]
            assert kernel.talk.session.session_id != first

        transcripts = list((kernels.project.parent / ".claude" / "projects").glob(f"*/{first}.jsonl"))
        for path in transcripts:
            path.unlink()
        async with kernels.start() as kernel:
            paper, _end = await kernel.run("say:orphan")
            assert "not on this machine (any more): a new one begins" in paper.plain
            assert not knows(messages_api, "walnut")

    run(scene(), seconds=120)


def test_the_totals_are_the_clis_own_over_restarts_branches_and_agents(
    kernels: Kernels, messages_api: MessagesApi
) -> None:
    errand = {"description": "my errand", "prompt": "say:done", "subagent_type": "general-purpose"}

    async def scene() -> None:
        async with kernels.start() as kernel:
            talk = kernel.talk
            await kernel.run("say:one", cell="cell-one")
            await kernel.run(f'steps:[[["Task", {json.dumps(errand)}]], "sent"]')
            while not any(isinstance(event, events.UnaskedTurnEnded) for event in talk.session.unasked):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            _paper, end = await kernel.run("say:two")
            assert end.ended is not None
            assert end.ended.usage.session_cost_usd == pytest.approx(talk.journal.cost_usd)
            one = talk.journal.turns[0].cost_usd
            assert one is not None
            before = talk.journal.cost_usd
            assert sum(talk.journal.by_model.values()) == pytest.approx(before)
        async with kernels.start(resume="always") as kernel:
            talk = kernel.talk
            assert talk.journal.cost_usd == pytest.approx(before)
            _paper, end = await kernel.run("say:three")
            assert end.ended is not None
            assert end.ended.usage.session_cost_usd == pytest.approx(talk.journal.cost_usd)
            await kernel.say("rewind 1")
            await kernel.run("say:four")
            assert talk.journal.cost_usd == pytest.approx(before + 2 * one, rel=0.05)
            told = await kernel.say("cost")
            assert "(another branch)" in told
            assert "agents, between cells" in told
            assert "| **5 prompts** |" in told

            assert "There is no budget" in await kernel.say("budget")
            assert "The budget of this notebook is $" in await kernel.say(f"budget {talk.journal.cost_usd + one / 2}")
            await kernel.run("say:five")
            requests = len(messages_api.requests)
            paper, end = await kernel.run("say:never sent")
            assert end.trouble is not None
            assert end.trouble.kind == "BudgetReached"
            assert "its budget is $" in paper.plain
            assert len(messages_api.requests) == requests
        async with kernels.start(resume="always") as kernel:
            _paper, end = await kernel.run("say:never sent either")
            assert end.trouble is not None
            assert end.trouble.kind == "BudgetReached"
            assert len(messages_api.requests) == requests
            assert "no budget any more" in await kernel.say("budget off")
            await kernel.run("say:again")
            assert knows(messages_api, "one", "two", "four", "five", "again") == ["one", "two", "four", "five", "again"]
        (journal,) = journals_folder().glob("*.jsonl")
        assert journal.stat().st_mode & 0o777 == 0o600
        assert journal.parent.stat().st_mode & 0o777 == 0o700
        assert "sk-ant-stand-in" not in journal.read_text()

    run(scene(), seconds=120)


@pytest.mark.parametrize("limit", ["turns", "budget"])
def test_a_limit_of_the_clis_own_ends_the_turn_and_not_the_conversation(
    kernels: Kernels, messages_api: MessagesApi, limit: str
) -> None:
    how: dict[str, Any] = {"max_turns": 1} if limit == "turns" else {"max_budget_usd": 0.0001}
    prompt = 'tool:Bash:{"command": "echo walnut"}' if limit == "turns" else "say:walnut"

    async def scene() -> None:
        async with kernels.start(**how) as kernel:
            _paper, end = await kernel.run(prompt)
            assert end.trouble is not None
            _paper, end = await kernel.run("say:second")
            assert "walnut" in sent(messages_api)
            assert (end.trouble is None) == (limit == "turns")
            assert len(kernel.talk.journal.turns) == 2
            await kernel.talk.restart(max_budget_usd=None)
            _paper, end = await kernel.run("say:third")
            assert end.trouble is None
            assert "walnut" in sent(messages_api)

    run(scene(), seconds=60)


# --- files ----------------------------------------------------------------------------------------------------------


def call(tool: str, **given: Any) -> str:
    return f"tool:{tool}:{json.dumps(given)}"


def steps(*calls: tuple[str, dict[str, Any]]) -> str:
    return f"steps:{json.dumps([[[tool, given]] for tool, given in calls])}"


NOTEBOOK = {
    "cells": [{"cell_type": "code", "id": "a1", "metadata": {}, "outputs": [], "execution_count": None, "source": "1"}],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 5,
}


def test_an_undo_puts_back_what_edits_changed_byte_for_byte_and_says_what_it_cannot(
    kernels: Kernels, project: Path, cli_home: Path
) -> None:
    long = "".join(f"line {number} of many\n" for number in range(1_000))
    edited, doomed, made, book = (project / name for name in ("edited.txt", "doomed.txt", "made.txt", "book.ipynb"))
    befores = {edited: long.encode(), doomed: b"keep\r\nme", book: json.dumps(NOTEBOOK, indent=3).encode()}
    for path, content in befores.items():
        path.write_bytes(content)
    person = kernels.person

    def is_as_before() -> bool:
        return all(path.read_bytes() == content for path, content in befores.items()) and not made.exists()

    def aside() -> dict[str, Path]:
        kept = (cli_home / ".claude" / "claude-kernel" / "undone").rglob("*.*")
        return {str(path): path for path in kept if path.is_file()}

    async def change(kernel: Kernel) -> None:
        await kernel.run(
            steps(
                ("Read", {"file_path": str(edited)}),
                ("Edit", {"file_path": str(edited), "old_string": "line 7 of many", "new_string": "SEVEN"}),
                ("Edit", {"file_path": str(edited), "old_string": "SEVEN", "new_string": "seven times"}),
                ("Read", {"file_path": str(doomed)}),
                ("Edit", {"file_path": str(doomed), "old_string": "me", "new_string": "you"}),
                ("Bash", {"command": f"rm {doomed} && echo extra > {project}/shell.txt"}),
                ("Write", {"file_path": str(made), "content": "new\n"}),
                ("Read", {"file_path": str(book)}),
                ("NotebookEdit", {"notebook_path": str(book), "cell_id": "a1", "new_source": "2"}),
            ),
            cell="cell-change",
        )
        assert b"seven times" in edited.read_bytes()
        assert not doomed.exists()
        assert made.exists()
        assert b'"2"' in book.read_bytes()

    async def scene() -> None:
        async with kernels.start() as kernel:
            with pytest.raises(UsageError, match="nothing to undo"):
                await kernel.say("undo")
            await change(kernel)
            paper = kernel.page.cell()
            person.takes = 1  # no: nothing was changed
            assert await steer(kernel.talk, "undo", Page(paper, cell="cell-change")) == ""
            assert "seven times" in paper.visible
            assert "line 7 of many" in paper.visible
            assert "1 more line" not in paper.visible
            assert "line 900 of many" not in paper.visible  # compared with the whole file, and not with a cut one
            assert "Deleted" in paper.visible
            assert "It did not exist before: it would be removed." in paper.visible
            assert f"rm {doomed}"[:40] in paper.plain
            assert "Not undone" in paper.plain
            assert made.exists()
            assert not aside()
            person.takes = None
            with pytest.raises(UsageError, match="%claude undo --yes"):
                await kernel.say("undo")
            assert made.exists()

            told = await kernel.say("undo --yes", cell="cell-change")
            assert is_as_before()
            assert (project / "shell.txt").exists()
            assert "Removed: `made.txt`" in told
            assert all(f"`{path.name}`" in told for path in befores)
            kept = aside()
            assert sorted(path.name for path in kept.values()) == ["book.ipynb", "edited.txt", "made.txt"]
            assert all(path.stat().st_mode & 0o777 == 0o600 for path in kept.values())
            assert "There is nothing to put back" in await kernel.say("undo")
            await change(kernel)

        # After a restart too; and what a person wrote since is kept aside.
        edited.write_text("mine now\n")
        async with kernels.start() as kernel:
            person.takes = 0
            told = await kernel.say("undo")
            assert "kept in" in told
            assert is_as_before()
            assert any(path.read_text() == "mine now\n" for path in aside().values() if path.name == "edited.txt")
            assert any("edited.txt" in text or "4 files" in text for text in person.asked)

            # Two prompts changed one file: each is undone by itself, or both.
            for old, new in (("keep", "first"), ("first", "second")):
                await kernel.run(
                    steps(
                        ("Read", {"file_path": str(doomed)}),
                        ("Edit", {"file_path": str(doomed), "old_string": old, "new_string": new}),
                    ),
                    cell=f"cell-{new}",
                )
            await kernel.say("undo --yes")
            assert doomed.read_bytes() == b"first\r\nme"
            await kernel.say("undo --yes", cell="cell-first")
            assert is_as_before()

            errand = {
                "description": "write it",
                "subagent_type": "general-purpose",
                "run_in_background": False,
                "prompt": call("Write", file_path=str(project / "agent.txt"), content="x"),
            }
            await kernel.run(steps(("Task", errand)))
            told = await kernel.say("undo 1 --yes")
            assert "There is nothing to put back" in told
            assert "an agent's edit of" in told
            assert (project / "agent.txt").exists()

            await kernel.run("/compact")
            with pytest.raises(UsageError, match="No file checkpoint found"):
                await kernel.say("undo 1")

    run(scene(), seconds=120)


# --- mishaps --------------------------------------------------------------------------------------------------------


def test_a_process_that_died_in_a_turn_and_a_cleared_conversation_leave_a_true_journal(
    kernels: Kernels, messages_api: MessagesApi
) -> None:
    async def scene() -> None:
        async with kernels.start() as kernel:
            talk = kernel.talk
            await kernel.run("say:walnut")
            paper = kernel.page.cell()
            cell = asyncio.ensure_future(talk.run("slow:200", paper))
            while "tick 1" not in paper.html:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            assert talk.session.pid is not None
            os.kill(talk.session.pid, signal.SIGKILL)
            assert (await cell).trouble is not None
            again = kernel.page.cell()
            await talk.show_last(again)
            assert "tick 1" in again.plain
        async with kernels.start(resume="always") as kernel:
            again = kernel.page.cell()
            await kernel.talk.show_last(again)
            assert "tick 1" in again.plain
            paper, _end = await kernel.run("say:after")
            assert "(2 prompts" in paper.plain
            assert knows(messages_api, "walnut", "after") == ["walnut", "after"]
            await kernel.run("/clear")
            assert [turn.prompt for turn in kernel.talk.journal.turns] == ["/clear"]
        async with kernels.start(resume="always") as kernel:
            paper, _end = await kernel.run("say:cleared")
            assert "not on this machine" not in paper.plain
            assert not knows(messages_api, "walnut", "after")
            assert kernel.talk.journal.turns[-1].prompt == "say:cleared"

    run(scene(), seconds=60)
