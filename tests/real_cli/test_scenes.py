"""Every scene that was recorded, driven live: the session, the real CLI, the loopback Messages API."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from support.messages_api import MessagesApi
from support.real_cli import cli_path
from support.talk import child, commands_under, ended, is_gone, marked_processes, of, run, text, turn, wait_until

from claude_kernel.cli import Options
from claude_kernel.errors import CliDied, CliRefused
from claude_kernel.protocol import Allow, Answers, Decision, Deny, Filled, Prompt, events
from claude_kernel.protocol.events import Outcome
from claude_kernel.serving import Hook
from claude_kernel.session import Session, State

pytestmark = pytest.mark.real_cli

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
COLOUR = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}
SIZES = {**COLOUR, "question": "Which sizes?", "header": "Sizes", "multiSelect": True}


@pytest.fixture
def options(cli_env: dict[str, str], project: Path) -> Iterator[Options]:
    yield Options(cli=str(cli_path()), cwd=str(project), environment=cli_env, inherit_environment=False)
    assert wait_until(lambda: not marked_processes()), f"left behind: {marked_processes()}"


def call(tool: str, **given: Any) -> str:
    return f"tool:{tool}:{json.dumps(given)}"


async def allow(_question: events.Question) -> Decision:
    return Allow()


def changed(options: Options, **fields: Any) -> Options:
    return msgspec.structs.replace(options, **fields)


def test_text_and_thinking_stream_and_are_one_text(options: Options) -> None:
    async def scene() -> None:
        async with Session(options) as session:
            happened = await turn(session, "say:Hello **world**, this is a streamed answer.")
            assert text(happened) == "Hello **world**, this is a streamed answer."
            assert [event.text for event in of(events.TextFinished, happened)] == [text(happened)]
            assert ended(happened).text == text(happened)
            thought = await turn(session, "think:deep")
            assert "".join(event.text for event in of(events.ThinkingStreamed, thought)) == (
                of(events.ThinkingFinished, thought)[0].text
            )
            first, second = ended(happened).usage, ended(thought).usage
            assert first.cost_usd is not None
            assert second.cost_usd is not None
            assert second.session_cost_usd == pytest.approx(first.cost_usd + second.cost_usd)
            assert second.context_tokens
            assert second.context_window
            assert session.initialised is not None
            assert session.initialised.version
            assert session.initialised.logged_in

    run(scene())


def test_permission_allowed_denied_edited_and_remembered(options: Options, project: Path) -> None:
    seen: list[events.Question] = []
    decisions: dict[str, Decision] = {
        "touch a.txt": Allow(),
        "touch b.txt": Deny(reason="use a folder called out"),
        "touch c.txt": Allow(input={"command": "touch edited.txt"}),
    }

    async def ask(question: events.Question) -> Decision:
        seen.append(question)
        if question.tool_name == "Write":
            accept = [given for given in question.suggestions if given["type"] == "setMode"]
            return Allow(permissions=tuple(accept))
        return decisions[question.input["command"]]

    async def scene() -> None:
        async with Session(options, ask=ask) as session:
            made = await turn(session, call("Bash", command="touch a.txt"))
            (finished,) = of(events.ToolFinished, made)
            assert finished.result["interrupted"] is False
            denied = await turn(session, call("Bash", command="touch b.txt"))
            assert of(events.ToolFinished, denied)[0].refused
            assert ended(denied).refused_tools == ("Bash",)
            assert "use a folder called out" in text(denied)
            await turn(session, call("Bash", command="touch c.txt"))
            first = await turn(session, call("Write", file_path=str(project / "n.txt"), content="one\ntwo\n"))
            assert "acceptEdits" in [event.mode for event in of(events.StatusChanged, first)]
            edited = await turn(
                session, call("Edit", file_path=str(project / "n.txt"), old_string="two", new_string="three")
            )
            (edit,) = of(events.ToolFinished, edited)
            assert edit.result["structuredPatch"][0]["lines"]

    run(scene())
    assert [path.name for path in sorted(project.iterdir()) if path.suffix] == ["a.txt", "edited.txt", "n.txt"]
    assert (project / "n.txt").read_text() == "one\nthree\n"
    assert seen[0].suggestions
    assert seen[0].blocked_path
    assert len(seen) == 4


def test_questions_of_two_sub_agents_are_open_at_once(options: Options, project: Path) -> None:
    both = asyncio.Event()
    agents: set[str | None] = set()

    async def ask(question: events.Question) -> Decision:
        agents.add(question.agent_id)
        if len(agents) == 2:
            both.set()
        await both.wait()
        return Allow()

    async def scene() -> None:
        tasks = [
            ["Task", {"description": f"errand {n}", "prompt": call("Bash", command=f"touch p{n}"),
                      "subagent_type": "general-purpose", "run_in_background": False}]
            for n in (1, 2)
        ]  # fmt: skip
        async with Session(options, ask=ask) as session:
            happened = await turn(session, f"tools:{json.dumps(tasks)}")
            assert ended(happened).outcome is Outcome.FINISHED
            assert {event.parent for event in of(events.ToolStarted, happened) if event.name == "Bash"} == {
                event.tool_use_id for event in of(events.ToolStarted, happened) if event.parent is None
            }

    run(scene())
    assert None not in agents
    assert (project / "p1").exists()
    assert (project / "p2").exists()


def test_a_form_is_answered_by_question_text_and_can_be_declined(options: Options) -> None:
    decisions: Iterator[Decision] = iter(
        [
            Answers({"Which colour?": "Blue", "Which sizes?": ["Red", "Blue"]}),
            Answers({"Which colour?": "teal", "Which sizes?": "Red"}),
            Deny(reason="I would rather not say"),
        ]
    )

    async def ask(question: events.Question) -> Decision:
        assert question.needs_person
        assert question.form[1].multiple
        return next(decisions)

    async def scene() -> None:
        async with Session(options, ask=ask) as session:
            prompt = call("AskUserQuestion", questions=[COLOUR, SIZES])
            answered = text(await turn(session, prompt))
            assert '"Which colour?"="Blue"' in answered
            assert '"Which sizes?"="Red, Blue"' in answered
            assert "teal" in text(await turn(session, prompt))
            assert "I would rather not say" in text(await turn(session, prompt))

    run(scene())


def test_a_plan_is_sent_back_with_words_then_approved(options: Options) -> None:
    decisions: Iterator[Decision] = iter([Deny(reason="also write tests"), Allow()])

    async def ask(question: events.Question) -> Decision:
        assert question.needs_person
        return next(decisions)

    async def scene() -> None:
        async with Session(changed(options, mode="plan"), ask=ask) as session:
            assert "also write tests" in text(await turn(session, call("ExitPlanMode", plan="# Plan\n1. do it")))
            approved = await turn(session, call("ExitPlanMode", plan="# Plan\n1. do it"))
            assert "default" in [event.mode for event in of(events.StatusChanged, approved)]

    run(scene())


def test_a_background_agent_comes_home_as_a_turn_of_its_own(options: Options) -> None:
    heard = asyncio.Event()

    def listen(event: events.Event) -> None:
        if isinstance(event, events.UnaskedTurnEnded):
            heard.set()

    async def scene() -> None:
        async with Session(options, on_unasked=listen) as session:
            errand = {"description": "errand", "prompt": "slow:3", "subagent_type": "general-purpose"}
            first = await turn(session, f'steps:[[["Task", {json.dumps(errand)}]], "sent"]')
            assert len(of(events.TurnEnded, first)) == 1
            (started,) = of(events.TaskStarted, first)
            await heard.wait()
            assert session.state is State.IDLE
            came = list(session.unasked)
            (home,) = of(events.TaskFinished, came)
            assert home.tool_use_id == started.tool_use_id
            assert text(await turn(session, "say:mine")) == "mine"

    run(scene())


@pytest.mark.parametrize("prompt", ["slow:200", call("Bash", command="python3 -c 'import time; time.sleep(60)'")])
def test_an_interrupt_ends_the_turn_and_the_same_process_goes_on(options: Options, prompt: str) -> None:
    async def scene() -> None:
        async with Session(options, ask=allow) as session:
            happened: list[events.Event] = []
            clock = asyncio.get_running_loop().time
            began = 0.0
            async for event in session.turn(prompt):
                happened.append(event)
                if isinstance(event, events.TextStreamed | events.ToolStarted) and not began:
                    await asyncio.sleep(0.3 if "sleep" in prompt else 0)  # until the command itself runs
                    began = clock()
                    stopping = asyncio.ensure_future(session.interrupt())
            assert ended(happened).outcome is Outcome.INTERRUPTED
            assert clock() - began < 1
            await stopping
            pid = session.pid
            assert text(await turn(session, "say:still here")) == "still here"
            assert session.pid == pid

    run(scene())


def test_an_interrupt_withdraws_an_open_question_and_nothing_is_done(options: Options, project: Path) -> None:
    asked = asyncio.Event()

    async def ask(_question: events.Question) -> Decision:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def scene() -> None:
        async with Session(options, ask=ask) as session:
            running = asyncio.ensure_future(turn(session, call("Bash", command="touch z.txt")))
            await asked.wait()
            await session.interrupt()
            happened = await running
            assert ended(happened).outcome is Outcome.INTERRUPTED
            assert of(events.QuestionWithdrawn, happened)

    run(scene())
    assert not (project / "z.txt").exists()


def test_slash_commands_compact_and_clear(options: Options) -> None:
    async def scene() -> None:
        async with Session(options) as session:
            await turn(session, "say:one")
            before = session.session_id
            assert of(events.ConversationCompacted, await turn(session, "/compact"))
            await turn(session, "/clear")
            assert session.session_id != before
            usage = await turn(session, "/context")
            assert "Context Usage" in text(usage) + ended(usage).text
            assert text(await turn(session, "say:two")) == "two"

    run(scene())


def test_control_requests_and_their_refusals(options: Options) -> None:
    async def scene() -> None:
        async with Session(options) as session:
            await session.start()
            assert "haiku" in await session.set_model("haiku")
            assert await session.set_mode("acceptEdits") == "acceptEdits"
            with pytest.raises(CliRefused, match="acceptEdits"):
                await session.request("set_permission_mode", mode="no-such-mode")
            with pytest.raises(CliRefused, match="Unsupported"):
                await session.request("no_such_request")
            assert (await session.request("get_context_usage"))["totalTokens"] > 0
            for subtype in ("list_models", "get_usage", "mcp_status"):
                assert await session.request(subtype)

    run(scene())


def test_tools_and_hooks_of_this_process(options: Options, messages_api: MessagesApi) -> None:
    hooked: list[dict[str, Any]] = []

    async def server(message: dict[str, Any]) -> dict[str, Any] | None:
        if message["method"].startswith("notifications/"):
            return None
        image = {"type": "image", "data": DOT, "mimeType": "image/png"}
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": message.get("params", {}).get("protocolVersion"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "notebook", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "run_python", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "42"}, image]},
        }
        return {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}

    async def hook(given: dict[str, Any]) -> dict[str, Any]:
        hooked.append(given)
        return {"continue": True}

    async def scene() -> None:
        hooks = {"PreToolUse": [Hook(hook, matcher="Bash")]}
        async with Session(options, ask=allow, mcp_servers={"notebook": server}, hooks=hooks) as session:
            happened = await turn(session, call("mcp__notebook__run_python", code="6*7"))
            (finished,) = of(events.ToolFinished, happened)
            assert finished.text.startswith("42")
            assert finished.images[0].data == DOT
            await turn(session, call("Bash", command="echo hook"))

    run(scene())
    assert [given["tool_input"]["command"] for given in hooked] == ["echo hook"]
    assert DOT in str(messages_api.requests)


def test_a_private_file_carries_the_servers_and_is_gone_at_once(options: Options) -> None:
    async def scene() -> None:
        servers = {"db": {"command": "/nowhere/db", "env": {"TOKEN": "hunter2"}}}
        async with Session(changed(options, mcp_servers=servers)) as session:
            await session.start()
            assert session.pid is not None
            argv = psutil.Process(session.pid).cmdline()
            assert "hunter2" not in str(argv)
            (config,) = (argument.partition("=")[2] for argument in argv if argument.startswith("--mcp-config="))
            assert config.startswith("/")
            assert not os.path.exists(config)  # noqa: ASYNC240 - a test may look
            assert "db" in str(await session.request("mcp_status"))

    run(scene())


def test_a_conversation_is_resumed_forked_and_an_unknown_one_is_an_error(
    options: Options, messages_api: MessagesApi
) -> None:
    async def scene() -> None:
        async with Session(options) as session:
            await turn(session, "say:walnut")
            first = session.session_id
        async with Session(changed(options, resume=first)) as session:
            assert ended(await turn(session, "say:second")).session_id == first
            assert "walnut" in str(messages_api.last_request())
        async with Session(changed(options, resume=first, fork=True)) as session:
            assert ended(await turn(session, "say:third")).session_id != first
        async with Session(changed(options, resume="00000000-0000-0000-0000-000000000000")) as session:
            with pytest.raises(CliDied, match="No conversation found"):
                await turn(session, "say:lost")

    run(scene())


def test_files_go_back_to_before_a_prompt(options: Options, project: Path) -> None:
    checkpointing = {"CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "true"}

    async def scene() -> None:
        with_checkpoints = changed(options, environment=options.environment | checkpointing)
        async with Session(with_checkpoints, ask=allow) as session:
            prompt = Prompt(text=call("Write", file_path=str(project / "r.txt"), content="new"))
            await turn(session, prompt)
            assert (project / "r.txt").exists()
            dry = await session.request("rewind_files", user_message_id=prompt.id, dry_run=True)
            assert dry["filesChanged"] == [str(project / "r.txt")]
            assert (await session.request("rewind_files", user_message_id=prompt.id))["canRewind"]
            assert not (project / "r.txt").exists()

    run(scene())


def test_images_reach_the_model(options: Options, messages_api: MessagesApi) -> None:
    async def scene() -> None:
        async with Session(options) as session:
            await turn(session, Prompt(text="say:a small picture", images=(events.Image("image/png", DOT),)))

    run(scene())
    assert '"type": "image"' in json.dumps(messages_api.last_request())


@pytest.mark.parametrize(
    ("limit", "outcome"), [({"max_turns": 1}, Outcome.MAX_TURNS), ({"max_budget_usd": 0.0001}, Outcome.MAX_BUDGET)]
)
def test_after_a_limit_the_cli_exits_and_the_next_turn_resumes(
    options: Options, limit: dict[str, Any], outcome: Outcome, messages_api: MessagesApi
) -> None:
    async def scene() -> None:
        async with Session(changed(options, **limit)) as session:
            last = ended(await turn(session, 'loop:[["Bash", {"command": "echo again"}]]'))
            assert last.outcome is outcome
            assert "Reached maximum" in last.error
            assert session.pid is None
            again = await turn(session, "say:and on")
            assert text(again) == "and on"
            assert ended(again).session_id == last.session_id
            assert "echo again" in str(messages_api.last_request())

    run(scene())


def test_an_api_error_is_an_outcome_and_not_an_answer(options: Options) -> None:
    async def scene() -> None:
        async with Session(options) as session:
            happened = await turn(session, "fail:400")
            last = ended(happened)
            assert (last.outcome, last.api_status) == (Outcome.API_ERROR, 400)
            assert not text(happened)
            assert text(await turn(session, "say:recovered")) == "recovered"

    run(scene())


def test_not_being_logged_in_is_told_apart(options: Options) -> None:
    async def scene() -> None:
        async with Session(changed(options, environment=options.environment | {"ANTHROPIC_API_KEY": ""})) as session:
            last = ended(await turn(session, "say:hello"))
            assert (last.outcome, last.error_kind) == (Outcome.API_ERROR, "authentication_failed")
            assert session.initialised is not None
            assert session.initialised.logged_in is False

    run(scene())


def test_a_cli_killed_in_a_turn_is_replaced_and_remembers(options: Options, messages_api: MessagesApi) -> None:
    async def scene() -> None:
        async with Session(options, ask=allow) as session:
            await turn(session, "say:walnut")
            running = asyncio.ensure_future(
                turn(session, call("Bash", command="python3 -c 'import time; time.sleep(99)'"))
            )
            assert session.pid is not None
            pid = session.pid
            await asyncio.to_thread(wait_until, lambda: bool(commands_under(pid, "time.sleep(99)")))
            assert session.pid is not None
            os.kill(session.pid, signal.SIGKILL)
            last = ended(await running)
            assert (last.outcome, last.exit_code) == (Outcome.FAILED, -9)
            assert text(await turn(session, "say:back")) == "back"
            assert "walnut" in str(messages_api.last_request())

    run(scene())


def test_an_idle_session_closes_gently_and_at_once(options: Options) -> None:
    async def scene() -> tuple[int | None, float]:
        async with Session(options) as session:
            await turn(session, "say:hello")
            pid, clock = session.pid, asyncio.get_running_loop().time
            began = clock()
        return pid, clock() - began

    pid, seconds = run(scene())
    assert pid is not None
    assert is_gone(pid)
    assert seconds < 3


@pytest.mark.parametrize(
    ("decision", "told"),
    [(Filled({"city": "Oslo", "nights": 2}), '"city": "Oslo"'), (Deny(reason="not now"), '"action": "decline"')],
)
def test_the_form_of_an_mcp_server_is_filled_in_or_declined(options: Options, decision: Decision, told: str) -> None:
    asked: list[events.Question] = []

    async def ask(question: events.Question) -> Decision:
        asked.append(question)
        return decision if question.dialog is not None else Allow()

    async def scene() -> None:
        _, _, server = child("asking_server")
        servers = {"travel": {"type": "stdio", "command": sys.executable, "args": [server]}}
        async with Session(changed(options, mcp_servers=servers), ask=ask) as session:
            happened = await turn(session, call("mcp__travel__book"))
            (finished,) = of(events.ToolFinished, happened)
            assert told in finished.text

    run(scene())
    (dialog,) = (question.dialog for question in asked if question.dialog is not None)
    assert (dialog.server, dialog.message) == ("travel", "Where to?")
    assert dialog.schema["required"] == ["city"]
