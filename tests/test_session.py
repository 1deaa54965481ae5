"""The session against children that misbehave on request: each fault ends in the right event or error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.talk import ended, faulty, is_gone, marked_processes, of, run, text, turn, until, wait_until

from claude_kernel.errors import CliDied, CliSilent, SessionBusy, UsageError
from claude_kernel.protocol import Allow, Decision, Deny, Prompt, events
from claude_kernel.protocol.events import Outcome
from claude_kernel.session import Session, State, Timing

QUICK = Timing(interrupt_seconds=0.3, interrupted_result_seconds=0.2, close_seconds=0.5)


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    yield
    assert wait_until(lambda: not marked_processes()), f"left behind: {marked_processes()}"


@pytest.mark.parametrize("fault", ["slow-start", "junk", "long-line", "huge-line", "stderr-flood"])
def test_a_child_that_is_only_odd_still_answers(fault: str) -> None:
    async def scene() -> None:
        async with Session(faulty(fault, "--seconds=0.2")) as session:
            assert ended(await turn(session, "misbehave")).outcome is Outcome.FINISHED
            assert text(await turn(session, "say again")) == "again"

    run(scene())


def test_a_line_over_the_limit_costs_that_one_message() -> None:
    async def scene() -> None:
        async with Session(faulty("huge-line", line_limit=1 << 20)) as session:
            happened = await turn(session, "misbehave")
            (dropped,) = of(events.LineDropped, happened)
            assert dropped.size > 80 << 20
            assert ended(happened).outcome is Outcome.FINISHED

    run(scene())


def test_a_line_under_the_limit_is_whole_however_long() -> None:
    async def scene() -> None:
        async with Session(faulty("long-line")) as session:
            happened = await turn(session, "misbehave")
            assert not of(events.LineDropped, happened)
            assert ended(happened).outcome is Outcome.FINISHED

    run(scene())


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [("die-mid-turn", 7, True), ("die-by-signal", -9, False), ("exit-0-without-result", 0, False)],
)
def test_a_cli_that_dies_in_a_turn_ends_it_with_code_and_stderr_and_is_resumed(
    fault: str, code: int, said: bool
) -> None:
    async def scene() -> None:
        async with Session(faulty(fault)) as session:
            last = ended(await turn(session, "misbehave"))
            assert (last.outcome, last.exit_code) == (Outcome.FAILED, code)
            assert str(code) in last.error
            assert bool(last.stderr_tail) == said
            first_id = session.session_id
            after = await turn(session, "say alive")
            assert text(after) == "alive"
            assert ended(after).session_id == first_id

    run(scene())


def test_a_cli_that_closes_its_stdout_is_ended_and_the_turn_with_it() -> None:
    async def scene() -> None:
        async with Session(faulty("close-stdout")) as session:
            last = ended(await turn(session, "misbehave"))
            assert last.outcome is Outcome.FAILED
            assert "stopped talking" in last.error

    run(scene())


def test_a_cli_that_ends_at_its_start_is_an_error_with_its_words() -> None:
    async def scene() -> None:
        async with Session(faulty("exit-at-start")) as session:
            with pytest.raises(CliDied) as caught:
                await turn(session, "say hello")
            assert caught.value.exit_code == 1
            assert "unknown option" in str(caught.value)
            assert session.state is State.STOPPED

    run(scene())


def test_a_cli_that_never_answers_is_an_error_in_time() -> None:
    async def scene() -> None:
        async with Session(faulty("never-init"), timing=Timing(start_seconds=0.3)) as session:
            with pytest.raises(CliSilent, match="did not answer"):
                await turn(session, "say hello")

    run(scene())


def test_a_prompt_can_be_stopped_before_the_cli_is_ready() -> None:
    async def scene() -> None:
        async with Session(faulty("never-init")) as session:
            running = asyncio.ensure_future(turn(session, "say hello"))
            await until(session, State.STARTING)
            assert await session.interrupt()
            assert ended(await running).outcome is Outcome.INTERRUPTED

    run(scene())


@pytest.mark.parametrize("fault", ["half-line", "silent"])
def test_a_silent_cli_is_noticed_and_can_be_stopped(fault: str) -> None:
    async def scene() -> None:
        timing = Timing(silence_seconds=0.1, interrupt_seconds=0.2)
        async with Session(faulty(fault), timing=timing) as session:
            happened = []
            async for event in session.turn("misbehave"):
                happened.append(event)
                if isinstance(event, events.SilenceNoticed) and len(of(events.SilenceNoticed, happened)) == 1:
                    assert session.state is State.SILENT
                    assert event.seconds >= 0.1
                    asyncio.ensure_future(session.interrupt())  # noqa: RUF006 - it ends with the turn
            assert of(events.SilenceNoticed, happened)
            assert ended(happened).outcome is Outcome.INTERRUPTED

    run(scene())


def test_waiting_for_a_person_is_not_silence_and_nothing_times_out() -> None:
    asked = asyncio.Event()
    answer = asyncio.Event()

    async def ask(_question: events.Question) -> Decision:
        asked.set()
        await answer.wait()
        return Allow()

    async def scene() -> None:
        timing = Timing(silence_seconds=0.05, request_seconds=0.1)
        async with Session(faulty("pause-then-go"), ask=ask, timing=timing) as session:
            running = asyncio.ensure_future(turn(session, "misbehave"))
            await asked.wait()
            assert session.state is State.WAITING
            await asyncio.sleep(0.5)  # many times the silence and request limits
            assert session.state is State.WAITING
            answer.set()
            happened = await running
            assert ended(happened).outcome is Outcome.FINISHED
            assert not of(events.SilenceNoticed, happened)
            assert text(await turn(session, "say later")) == "later"

    run(scene())


def test_a_persons_time_does_not_count_against_a_control_request() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def ask(_question: events.Question) -> Decision:
        asked.set()
        await answer.wait()
        return Allow()

    async def scene() -> None:
        async with Session(faulty("pause-then-go"), ask=ask) as session:
            running = asyncio.ensure_future(turn(session, "misbehave"))
            await asked.wait()
            link = session._link
            assert link is not None
            link.send = lambda line: None  # type: ignore[method-assign]  # noqa: ARG005 - a request lost on its way
            request = asyncio.ensure_future(session.request("get_usage", timeout_seconds=0.2))
            done, _ = await asyncio.wait({request}, timeout=0.8)
            assert not done  # four times its time, all of it a person's
            del link.send
            answer.set()
            await running
            with pytest.raises(CliSilent):
                await request

    run(scene())


def test_without_anybody_to_ask_everything_is_refused() -> None:
    async def scene() -> None:
        async with Session(faulty("pause-then-go")) as session:
            happened = await turn(session, "misbehave")
            assert "Nobody can be asked" in text(happened)

    run(scene())


def test_a_question_that_cannot_be_asked_is_refused() -> None:
    async def ask(_question: events.Question) -> Decision:
        raise RuntimeError("no screen")

    async def scene() -> None:
        async with Session(faulty("pause-then-go"), ask=ask) as session:
            assert "no screen" in text(await turn(session, "misbehave"))

    run(scene())


def test_a_withdrawn_question_is_closed_and_gets_no_answer() -> None:
    finished = []

    async def ask(question: events.Question) -> Decision:
        await asyncio.Event().wait()
        finished.append(question.id)
        return Allow()

    async def scene() -> None:
        async with Session(faulty("withdraw"), ask=ask) as session:
            happened = await turn(session, "misbehave")
            (asked,) = of(events.QuestionAsked, happened)
            (withdrawn,) = of(events.QuestionWithdrawn, happened)
            assert withdrawn.question_id == asked.question.id
            assert ended(happened).text == "withdrawn: no answer"
            assert not finished

    run(scene())


def test_a_question_left_open_at_the_end_of_a_turn_harms_nothing() -> None:
    late = asyncio.Event()

    async def ask(_question: events.Question) -> Decision:
        await late.wait()
        return Allow()

    async def scene() -> None:
        async with Session(faulty("answer-after-end"), ask=ask) as session:
            assert ended(await turn(session, "misbehave")).outcome is Outcome.FINISHED
            late.set()
            assert text(await turn(session, "say next")) == "next"

    run(scene())


def test_an_unknown_control_request_is_refused_not_left_hanging() -> None:
    async def scene() -> None:
        async with Session(faulty("unknown-request")) as session:
            happened = await turn(session, "misbehave")
            assert of(events.RequestRefused, happened)
            assert "error" in ended(happened).text

    run(scene())


def test_a_cli_that_ignores_interrupts_is_replaced_and_the_conversation_goes_on() -> None:
    async def scene() -> None:
        async with Session(faulty("ignore-interrupt"), timing=QUICK) as session:
            running = asyncio.ensure_future(turn(session, "misbehave"))
            await until(session, State.WORKING)
            first = session.pid
            assert await session.interrupt()
            happened = await running
            assert ended(happened).outcome is Outcome.INTERRUPTED
            assert text(await turn(session, "say still here")) == "still here"
            assert first is not None
            assert first != session.pid
            assert wait_until(lambda: is_gone(first))

    run(scene())


def test_a_second_interrupt_replaces_the_process_at_once() -> None:
    async def scene() -> None:
        async with Session(faulty("ignore-interrupt")) as session:
            running = asyncio.ensure_future(turn(session, "misbehave"))
            await until(session, State.WORKING)
            first = asyncio.ensure_future(session.interrupt())
            await asyncio.sleep(0.05)
            assert session.state is State.INTERRUPTING
            await session.interrupt()
            assert ended(await running).outcome is Outcome.INTERRUPTED
            await first

    run(scene(), seconds=5)


def test_a_late_result_of_an_interrupted_turn_never_ends_the_next_one() -> None:
    async def scene() -> None:
        async with Session(faulty("no-lifecycle-late-result"), timing=QUICK) as session:
            running = asyncio.ensure_future(turn(session, "misbehave"))
            await until(session, State.WORKING)
            pid = session.pid
            await session.interrupt()
            assert ended(await running).outcome is Outcome.INTERRUPTED
            happened = await turn(session, "say mine")
            assert ended(happened).text == "mine"
            assert session.pid == pid

    run(scene())


def test_a_foreign_result_does_not_end_our_turn() -> None:
    async def scene() -> None:
        async with Session(faulty("double-result")) as session:
            happened = await turn(session, "misbehave")
            assert len(of(events.TurnEnded, happened)) == 1
            assert "task-notification" in str(list(session.unasked)) + str(happened)

    run(scene())


def test_a_cli_that_ignores_everything_is_killed() -> None:
    async def scene() -> int:
        session = Session(faulty("ignore-term"), timing=QUICK)
        await turn(session, "say hello")
        pid = session.pid
        await session.close()
        assert session.state is State.CLOSED
        assert pid is not None
        return pid

    assert is_gone(run(scene()))


def test_what_the_cli_started_in_a_session_of_its_own_goes_with_it() -> None:
    async def scene() -> int:
        async with Session(faulty("grandchild")) as session:
            grandchild = int("".join(filter(str.isdigit, ended(await turn(session, "misbehave")).text)))
            assert not is_gone(grandchild)
        return grandchild

    assert is_gone(run(scene()))


def test_two_turns_at_once_are_refused() -> None:
    async def scene() -> None:
        async with Session(faulty("silent"), timing=QUICK) as session:
            running = asyncio.ensure_future(turn(session, "misbehave"))
            await until(session, State.WORKING)
            with pytest.raises(SessionBusy):
                await turn(session, "say no")
            await session.interrupt()
            await running

    run(scene())


def test_closing_in_the_middle_of_a_turn_ends_it() -> None:
    async def scene() -> None:
        session = Session(faulty("silent"))
        running = asyncio.ensure_future(turn(session, "misbehave"))
        await until(session, State.WORKING)
        await session.close()
        assert ended(await running).outcome is Outcome.INTERRUPTED
        with pytest.raises(UsageError):
            await turn(session, "say no")

    run(scene())


def test_a_caller_that_stops_listening_stops_the_turn() -> None:
    async def scene() -> None:
        async with Session(faulty("no-lifecycle-late-result")) as session:
            stream = session.turn("misbehave")
            async for event in stream:
                if isinstance(event, events.TextStreamed):
                    break
            await stream.aclose()  # type: ignore[attr-defined]  # an async generator, declared by its narrower name
            assert session.state is State.IDLE
            assert ended(await turn(session, "say next")).text == "next"

    run(scene())


def test_many_sessions_in_one_process_do_not_disturb_each_other() -> None:
    async def one(number: int) -> None:
        async with Session(faulty("die-mid-turn" if number % 5 == 4 else "junk")) as session:
            last = ended(await turn(session, f"say {number}")) if number % 5 != 4 else None
            failed = ended(await turn(session, "misbehave")) if last is None else None
            assert last is None or last.text == str(number)
            assert failed is None or failed.outcome is Outcome.FAILED

    async def scene() -> None:
        await asyncio.gather(*(one(number) for number in range(10)))

    run(scene())


def test_a_control_request_without_an_answer_is_an_error_in_time() -> None:
    async def scene() -> None:
        async with Session(faulty("silent"), timing=QUICK) as session:
            running = asyncio.ensure_future(turn(session, "misbehave"))
            await until(session, State.WORKING)
            with pytest.raises(CliSilent, match="get_usage"):
                await session.request("get_usage", timeout_seconds=0.2)
            await session.interrupt()
            await running

    run(scene())


def test_a_deny_reaches_the_cli_word_for_word() -> None:
    async def ask(_question: events.Question) -> Decision:
        return Deny(reason="use git mv\nand “quotes”")

    async def scene() -> None:
        async with Session(faulty("pause-then-go"), ask=ask) as session:
            happened = await turn(session, Prompt(text="misbehave"))
            assert text(happened) == "went on: deny: use git mv\nand “quotes”"

    run(scene())


def test_an_old_cli_is_a_notice_not_a_failure() -> None:
    from claude_kernel.cli import warn_if_old

    assert warn_if_old("2.0.1") is not None
    assert "claude update" in str(warn_if_old("2.0.1"))
    assert warn_if_old("2.1.326") is None
    assert warn_if_old("99.0.0") is None
    assert warn_if_old("") is None


@pytest.mark.parametrize(("told", "flags"), [(False, ["--setting-sources=user", "--strict-mcp-config"]), (True, [])])
def test_a_folder_that_is_not_trusted_brings_no_settings_unless_the_program_says_so(
    told: bool, flags: list[str], tmp_path: Path
) -> None:
    home, project = tmp_path / "home", tmp_path / "home" / "project"
    (project / ".claude").mkdir(parents=True)
    hook = {"SessionStart": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hook}))
    environment = {"HOME": str(home), "CLAUDE_CONFIG_DIR": ""}

    async def scene() -> None:
        async with Session(faulty("junk", cwd=str(project), environment=environment, trust_folder=told)) as session:
            await session.start()
            words = psutil.Process(session.pid).cmdline()
            assert [word for word in words if "setting" in word or "strict" in word] == flags
            assert any("not trusted" in notice for notice in session.notices) is not told

    run(scene())
