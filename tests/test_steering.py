"""`%claude …`: each command, and that the CLI is really told."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.messages_api import MessagesApi
from support.papers import CellPaper
from support.real_cli import cli_path
from support.talk import child, faulty, is_gone, marked_processes, run, wait_until

from claude_kernel.cli import EFFORTS, MODES, Options
from claude_kernel.conversation import Conversation
from claude_kernel.desk import Page
from claude_kernel.errors import CliRefused, UsageError
from claude_kernel.session import State
from claude_kernel.steering import COMMANDS
from claude_kernel.steering import steer as steer_at
from claude_kernel.wirelog import keep_recent_lines, recent_lines

PNG = b"\x89PNG\r\n\x1a\n rest"


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    yield
    assert wait_until(lambda: not marked_processes()), f"left behind: {marked_processes()}"


@pytest.fixture
def _logged() -> Iterator[None]:
    """The package's logger is everybody's: it is left as it was found."""
    package = logging.getLogger("claude_kernel")
    before = (list(package.handlers), package.level, package.propagate)
    keep_recent_lines()
    yield
    package.handlers, package.level, package.propagate = before[0], before[1], before[2]


async def steer(talk: Conversation, line: str) -> str:
    return await steer_at(talk, line, Page(CellPaper()))


class Talking:
    """A conversation with a child that answers, closed at the end."""

    def __init__(self, tmp_path: Path, options: Options | None = None, **changes: Any) -> None:
        self.options = options or faulty("junk", cwd=str(tmp_path), **changes)

    async def __aenter__(self) -> Conversation:
        self.conversation = Conversation(self.options)
        return self.conversation

    async def __aexit__(self, *_exc: object) -> None:
        await self.conversation.close()


def dialect_child(tmp_path: Path) -> Options:
    """A child that remembers, and that takes the mode and the model it is told."""
    state = tmp_path / "state"
    state.mkdir(exist_ok=True)
    cli = child("dialect_child", "--dialect=direct")
    return Options(cli=cli, cwd=str(tmp_path), environment={"DIALECT_CHILD_STATE": str(state)})


async def say(talk: Conversation, prompt: str) -> str:
    paper = CellPaper()
    end = await talk.run(prompt, paper)
    assert end.trouble is None, end.trouble
    return paper.plain


def arguments(talk: Conversation) -> list[str]:
    assert talk.session.pid is not None
    return list(psutil.Process(talk.session.pid).cmdline())


def test_status_says_where_things_stand(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Talking(tmp_path) as talk:
            before = await steer(talk, "")
            assert before == await steer(talk, "status")
            assert "| state | idle |" in before
            assert "| conversation | not begun |" in before
            assert f"| folder | `{tmp_path}` |" in before
            assert "| spent | nothing yet |" in before
            assert "2.1.326, process" in before
            await say(talk, "say hello")
            after = await steer(talk, "status")
            assert "| model | claude-opus-5-5 |" in after
            assert f"| conversation | `{talk.session.session_id}` |" in after
            assert "| spent | $0.001 |" in after

    run(scene())


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("nonsense", list(COMMANDS)),
        ("mode nonsense", list(MODES)),
        ("effort nonsense", list(EFFORTS)),
        ("image", ["%claude image figure.png"]),
        ("image missing.png", ["missing.png", "cannot be read"]),
        ("status 'open", ["status 'open", "No closing quotation"]),
    ],
)
def test_a_bad_word_is_answered_with_the_choices(tmp_path: Path, line: str, named: list[str]) -> None:
    async def scene() -> None:
        async with Talking(tmp_path) as talk:
            with pytest.raises(UsageError) as caught:
                await steer(talk, line)
            assert all(word in str(caught.value) for word in named)
            assert talk.state is State.STOPPED  # nothing was started for it

    run(scene())


@pytest.mark.usefixtures("_logged")
def test_the_model_and_the_mode_are_shown_and_really_sent(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Talking(tmp_path) as talk:
            assert "| `default` |" in await steer(talk, "model")
            assert await steer(talk, "model opus") == "The model is now `opus`."
            assert await steer(talk, "mode plan") == "The permission mode is now `plan`."
            sent = [line for line in recent_lines() if "> b" in line]
            assert any('"subtype":"set_model"' in line and '"model":"opus"' in line for line in sent)
            assert any('"subtype":"set_permission_mode"' in line and '"mode":"plan"' in line for line in sent)
            assert (talk.options.model, talk.options.mode, talk.mode) == ("opus", "plan", "plan")
            assert "The permission mode is `plan`" in await steer(talk, "mode")
            await steer(talk, "restart")
            assert {"--model=opus", "--permission-mode=plan"} <= set(arguments(talk))
            assert await steer(talk, "model default") == "The model is now `default`."
            await steer(talk, "restart")
            assert not [word for word in arguments(talk) if word.startswith("--model")]

    run(scene())


def test_a_new_effort_is_a_new_process_in_the_same_conversation(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Talking(tmp_path, dialect_child(tmp_path)) as talk:
            await say(talk, "remember plum")
            pid, session_id = talk.session.pid, talk.session.session_id
            assert "The effort is `default`" in await steer(talk, "effort")
            assert "The effort is now `high`" in await steer(talk, "effort high")
            assert pid is not None
            assert is_gone(pid)
            assert "plum" in await say(talk, "recall")
            assert talk.session.session_id == session_id
            assert {"--effort=high", f"--resume={session_id}"} <= set(arguments(talk))

    run(scene())


def test_new_begins_a_conversation_that_knows_nothing_of_the_old(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Talking(tmp_path, dialect_child(tmp_path)) as talk:
            assert await steer(talk, "new") == "A new conversation begins with the next prompt."
            await say(talk, "remember plum")
            old = talk.session.session_id
            assert f"The old one is kept as `{old}`." in await steer(talk, "new")
            assert "nothing to recall" in await say(talk, "recall")
            assert not [word for word in arguments(talk) if word.startswith("--resume")]

    run(scene())


def test_stop_ends_the_process_and_the_next_prompt_goes_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Talking(tmp_path, dialect_child(tmp_path)) as talk:
            await say(talk, "remember plum")
            pid = talk.session.pid
            assert "was stopped" in await steer(talk, "stop")
            assert pid is not None
            assert is_gone(pid)
            assert talk.state is State.STOPPED
            assert "plum" in await say(talk, "recall")

    run(scene())


def test_restart_starts_it_again_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Talking(tmp_path, dialect_child(tmp_path)) as talk:
            await say(talk, "remember plum")
            pid = talk.session.pid
            assert "started anew" in await steer(talk, "restart")
            assert talk.state is State.IDLE
            assert talk.session.pid != pid
            assert "plum" in await say(talk, "recall")

    run(scene())


def test_cost_and_tools_are_known_after_the_first_prompt(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Talking(tmp_path) as talk:
            assert await steer(talk, "cost") == "Nothing was spent in this notebook yet."
            assert "when the first prompt is sent" in await steer(talk, "tools")
            await say(talk, "say one")
            await say(talk, "say two")
            assert "| **2 prompts** |  | **$0.0" in await steer(talk, "cost")
            assert await steer(talk, "tools") == "2 tools: `Bash`, `AskUserQuestion`"

    run(scene())


def test_images_wait_for_the_next_prompt(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b c.png").write_bytes(PNG)

    async def scene() -> None:
        async with Talking(tmp_path) as talk:
            assert await steer(talk, "image a.png 'b c.png'") == "Attached to the next prompt: `a.png`, `b c.png`."
            assert len(talk.images) == 2

    run(scene())


def test_an_image_that_cannot_be_taken_leaves_the_others_alone(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)

    async def scene() -> None:
        async with Talking(tmp_path) as talk:
            with pytest.raises(UsageError):
                await steer(talk, "image a.png missing.png")
            assert talk.images == []

    run(scene())


@pytest.mark.usefixtures("_logged")
def test_the_log_is_one_block_of_code(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Talking(tmp_path) as talk:
            await say(talk, "say ```fenced```")
            log = await steer(talk, "log")
            assert log.startswith("```\n")
            assert log.endswith("\n```")
            assert log.count("```") == 2
            assert "initialize" in log

    run(scene())


def test_help_names_every_command_and_starts_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Talking(tmp_path) as talk:
            told = await steer(talk, "help")
            assert all(f"`%claude {name}{command.usage}`" in told for name, command in COMMANDS.items())
            assert talk.state is State.STOPPED

    run(scene())


# --- the real CLI ---------------------------------------------------------------------------------------------------


@pytest.mark.real_cli
def test_the_real_cli_is_steered_by_every_command(
    cli_env: dict[str, str], project: Path, messages_api: MessagesApi
) -> None:
    options = Options(cli=str(cli_path()), cwd=str(project), environment=cli_env, inherit_environment=False)

    async def scene() -> None:
        async with Talking(project, options) as talk:
            assert "| `default` |" in await steer(talk, "model")
            assert "The model is now" in await steer(talk, "model haiku")
            assert "Hello" in await say(talk, "say:Hello")
            assert "haiku" in messages_api.last_request()["model"]
            assert "plan" in await steer(talk, "mode plan")
            assert "planned" in await say(talk, "say:planned")
            assert talk.last_started is not None
            assert talk.last_started.mode == "plan"
            session_id = talk.session.session_id
            assert "**in use**" in await steer(talk, "context")
            assert "`Bash`" in await steer(talk, "tools")
            assert "haiku" in await steer(talk, "cost")
            assert "| mode | plan |" in await steer(talk, "status")

            await steer(talk, "effort high")
            assert "again" in await say(talk, "say:again")
            assert talk.session.session_id == session_id
            assert len([m for m in messages_api.last_request()["messages"] if m["role"] == "assistant"]) == 2

            await steer(talk, "new")
            assert "fresh" in await say(talk, "say:fresh")
            assert talk.session.session_id != session_id
            assert not [m for m in messages_api.last_request()["messages"] if m["role"] == "assistant"]

            pid = talk.session.pid
            await steer(talk, "stop")
            assert pid is not None
            assert is_gone(pid)

    run(scene(), seconds=90)


@pytest.mark.real_cli
def test_a_model_that_is_not_one_is_refused_in_words(cli_env: dict[str, str], project: Path) -> None:
    options = Options(cli=str(cli_path()), cwd=str(project), environment=cli_env, inherit_environment=False)

    async def scene() -> None:
        async with Talking(project, options) as talk:
            try:
                told = await steer(talk, "model no-such-model")
            except (CliRefused, UsageError) as error:
                told = str(error)
            assert "no-such-model" in told

    run(scene(), seconds=60)
