"""Each dialect through a whole conversation, with a child that speaks only that one and refuses the others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.talk import child, ended, of, run, text, turn, until

from claude_kernel.cli import Options
from claude_kernel.errors import ClaudeKernelError, UsageError
from claude_kernel.protocol import DIALECTS, Allow, Answers, Decision, Deny, events, find_dialect
from claude_kernel.protocol.events import Outcome
from claude_kernel.session import Session, State

ANSWERS: dict[str, str | list[str]] = {"Which colour?": "Blue", "Which sizes?": ["S", "M"]}


def open_session(dialect: str, state: Path, decisions: list[Decision], speaks: str = "") -> Session:
    pending = iter(decisions)

    async def ask(question: events.Question) -> Decision:
        if question.tool_name == "AskUserQuestion":
            assert [entry.text for entry in question.form] == list(ANSWERS)
            return Answers(ANSWERS)
        return next(pending)

    async def run_bash(given: dict[str, object]) -> str:
        return f"ran: {given['command']}"

    options = Options(
        cli=child("dialect_child", f"--dialect={speaks or dialect}"),
        dialect=dialect,
        environment={"DIALECT_CHILD_STATE": str(state)},
    )
    return Session(options, ask=ask, host_tools={"Bash": run_bash})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_whole_conversation(dialect: str, tmp_path: Path) -> None:
    async def scene() -> None:
        decisions: list[Decision] = [Allow(), Allow(input={"command": "echo edited"}), Deny(reason="use git mv")]
        async with open_session(dialect, tmp_path, decisions) as session:
            said = await turn(session, "say Hello there, world")
            assert text(said).strip() == "Hello there, world"
            assert of(events.TextStreamed, said)
            assert ended(said).outcome is Outcome.FINISHED

            ran = await turn(session, "tool echo hello")
            (started,) = of(events.ToolStarted, ran)
            (finished,) = of(events.ToolFinished, ran)
            assert (started.name, started.input["command"]) == ("Bash", "echo hello")
            assert (finished.tool_use_id, finished.text) == (started.tool_use_id, "ran: echo hello")
            assert "ran: echo hello" in text(ran)

            assert "ran: echo edited" in text(await turn(session, "tool echo original"))
            assert "denied: use git mv" in text(await turn(session, "tool rm -rf x"))

            answered = text(await turn(session, "ask"))
            assert all(word in answered for word in ("Which colour?", "Blue", "Which sizes?", "S", "M"))

            await turn(session, "remember walnut")
            stopped = asyncio.ensure_future(turn(session, "wait"))
            await until(session, State.WORKING)
            await session.interrupt()
            assert ended(await stopped).outcome is Outcome.INTERRUPTED

            failed = ended(await turn(session, "error"))
            assert failed.outcome in (Outcome.FAILED, Outcome.API_ERROR)
            assert failed.error
            assert "walnut" in text(await turn(session, "recall"))

    run(scene())


@pytest.mark.parametrize("speaks", DIALECTS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_child_of_another_dialect_is_not_understood_by_luck(dialect: str, speaks: str, tmp_path: Path) -> None:
    """The children are strict: were our encoders not true to their dialect, the conversations above could not work."""
    if dialect == speaks:
        return

    async def scene() -> None:
        async with open_session(dialect, tmp_path, [], speaks) as session:
            try:
                last = ended(await turn(session, "say hello"))
            except ClaudeKernelError:
                return
            assert last.outcome is not Outcome.FINISHED

    run(scene())


def test_an_unknown_dialect_is_named_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="bridge"):
        find_dialect("klingon")


def test_answers_to_questions_that_were_not_asked_are_refused() -> None:
    question = events.Question(id="1", tool_name="AskUserQuestion", input={}, form=(events.FormQuestion("Which?"),))
    with pytest.raises(UsageError, match="Which"):
        DIALECTS["direct"].answer(question, Answers({"0": "Blue"}))


def test_a_cli_that_runs_tools_itself_is_not_used_as_a_host_tools_cli(tmp_path: Path) -> None:
    """`--dangerously-skip-permissions` with the real CLI would run everything unasked."""

    async def scene() -> None:
        options = Options(
            cli=child("dialect_child", "--dialect=host-tools", "--permission-mode=bypassPermissions"),
            dialect="host-tools",
            environment={"DIALECT_CHILD_STATE": str(tmp_path)},
        )
        async with Session(options) as session:
            last = ended(await turn(session, "tool touch x"))
            assert last.outcome is Outcome.FAILED
            assert "unasked" in last.error

    run(scene())
