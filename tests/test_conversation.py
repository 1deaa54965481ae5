"""One notebook's conversation: cells in, outputs and an end for each, whatever happens to the CLI."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.messages_api import MessagesApi
from support.papers import CellPaper, Notebook
from support.real_cli import cli_path
from support.talk import child, faulty, is_gone, marked_processes, run, until, wait_until

from claude_kernel.cli import Options
from claude_kernel.conversation import CellEnd, Conversation, refuse
from claude_kernel.prompts.scene import Scene
from claude_kernel.protocol import Allow, Decision, events
from claude_kernel.protocol.events import Outcome
from claude_kernel.session import State, Timing
from claude_kernel.shown import Shown

QUICK = Timing(interrupt_seconds=0.3, interrupted_result_seconds=0.2, close_seconds=0.5, start_seconds=0.5)
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
HOOK = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch ../hooked"}]}]}}


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    yield
    assert wait_until(lambda: not marked_processes()), f"left behind: {marked_processes()}"


class Cells:
    """A notebook on a conversation: `await cells.run("…")` is a cell."""

    def __init__(self, options: Options, **more: Any) -> None:
        self.talk = Conversation(options, **more)
        self.notebook = Notebook()

    async def run(self, prompt: str, *, plain: bool = False) -> tuple[CellPaper, CellEnd]:
        paper = self.notebook.cell()
        return paper, await self.talk.run(prompt, paper, plain=plain)

    async def __aenter__(self) -> Cells:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.talk.close()


def reads_well(paper: CellPaper) -> bool:
    both = all(set(mime) == {"text/html", "text/plain"} for mime in paper.outputs)
    return both and 'class="live"' not in paper.html


async def comes_true(condition: Callable[[], bool]) -> None:
    """What is on the page, or in a list, is not something to await."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def test_a_cell_is_a_prompt_and_its_answer(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Cells(faulty("junk", cwd=str(tmp_path))) as cells:
            paper, end = await cells.run("say **hello**")
            assert "<strong>hello</strong>" in paper.html
            assert reads_well(paper)
            assert (end.trouble, end.interrupted) == (None, False)
            assert end.ended is not None
            assert end.ended.outcome is Outcome.FINISHED
            assert len(cells.talk.journal.turns) == 1
            assert not cells.talk.running

    run(scene())


def test_the_same_in_plain_text(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Cells(faulty("junk", cwd=str(tmp_path))) as cells:
            paper, _end = await cells.run("say **hello**", plain=True)
            assert paper.written.startswith("**hello**\n\n")
            assert not paper.outputs

    run(scene())


# --- failures -------------------------------------------------------------------------------------------------------

FAILURES: dict[str, tuple[dict[str, Any], str]] = {
    "it ends at its start": ({"fault": "exit-at-start"}, "say hello"),
    "it never answers": ({"fault": "never-init"}, "say hello"),
    "it dies in the middle": ({"fault": "die-mid-turn"}, "misbehave"),
    "it is killed": ({"fault": "die-by-signal"}, "misbehave"),
    "it leaves without a word": ({"fault": "exit-0-without-result"}, "misbehave"),
    "it stops talking": ({"fault": "close-stdout"}, "misbehave"),
    "there is none": ({"cli": "/nowhere/claude"}, "hello"),
    "it is no program": ({"cli": "TMP/notes.md"}, "hello"),
    "the folder is gone": ({"fault": "junk", "cwd": "/nowhere/at/all"}, "say hello"),
    "the dialect is none": ({"fault": "junk", "dialect": "klingon"}, "say hello"),
}


@pytest.mark.parametrize("what", FAILURES)
def test_every_failure_is_shown_and_returned_and_none_is_raised(what: str, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes")
    given, prompt = dict(FAILURES[what][0]), FAILURES[what][1]
    given.setdefault("cwd", str(tmp_path))
    fault = given.pop("fault", None)
    if "cli" in given:
        given["cli"] = given["cli"].replace("TMP", str(tmp_path))
    options = Options(**given) if fault is None else faulty(fault, **given)

    async def scene() -> None:
        async with Cells(options, timing=QUICK) as cells:
            paper, end = await cells.run(prompt)
            assert end.trouble is not None
            assert end.trouble.title
            assert end.trouble.remedy
            assert end.trouble.kind.isidentifier()
            assert not end.interrupted
            assert end.trouble.title.rstrip(".") in paper.plain
            assert 'class="trouble"' in paper.html
            assert reads_well(paper)
            assert not cells.talk.running

    run(scene())


def test_in_plain_text_a_failure_is_left_to_the_face_which_reports_it_as_an_error(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Cells(faulty("die-mid-turn", cwd=str(tmp_path))) as cells:
            paper, end = await cells.run("misbehave", plain=True)
            assert end.trouble is not None
            assert end.trouble.title not in paper.written

    run(scene())


@pytest.mark.parametrize("fault", ["die-mid-turn", "die-by-signal", "exit-0-without-result"])
def test_after_a_failure_the_next_cell_goes_on(fault: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with Cells(faulty(fault, cwd=str(tmp_path)), timing=QUICK) as cells:
            first, _end = await cells.run("misbehave")
            session_id = cells.talk.session.session_id
            second, end = await cells.run("say alive")
            assert end.trouble is None
            assert "alive" in second.plain
            assert cells.talk.session.session_id == session_id
            assert reads_well(first)

    run(scene())


def test_asking_that_fails_is_a_refusal_and_not_the_end(tmp_path: Path) -> None:
    async def ask(_question: events.Question, _shown: Shown, _scene: Scene) -> Decision:
        raise RuntimeError("no screen")

    async def scene() -> None:
        async with Cells(faulty("pause-then-go", cwd=str(tmp_path)), ask=ask) as cells:
            paper, end = await cells.run("misbehave")
            assert end.trouble is None
            assert "no screen" in paper.plain

    run(scene())


# --- questions ------------------------------------------------------------------------------------------------------


def test_the_cell_waits_for_the_person_and_says_so(tmp_path: Path) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()
    seen: list[str] = []

    async def ask(question: events.Question, _shown: Shown, _scene: Scene) -> Decision:
        seen.append(question.tool_name)
        asked.set()
        await answer.wait()
        return Allow()

    async def scene() -> None:
        async with Cells(faulty("pause-then-go", cwd=str(tmp_path)), ask=ask) as cells:
            paper = cells.notebook.cell()
            cell = asyncio.ensure_future(cells.talk.run("misbehave", paper))
            await asked.wait()
            assert cells.talk.state is State.WAITING
            assert paper.outputs[-1]["text/plain"] == "Waiting for you"
            await comes_true(lambda: "waiting for you" in paper.visible)
            answer.set()
            end = await cell
            assert end.trouble is None
            assert "went on: allow" in paper.plain

    run(scene())
    assert seen == ["Bash"]


def test_where_nobody_can_be_asked_the_tool_is_refused_and_the_cell_fails_saying_what_would_allow_it(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with Cells(faulty("pause-then-go", cwd=str(tmp_path)), ask=refuse) as cells:
            paper, end = await cells.run("misbehave")
            assert "Refused (Bash): nobody could be asked." in paper.plain
            assert end.trouble is not None
            assert end.trouble.kind == "PermissionNeeded"
            assert "permissions.allow" in paper.plain
            _paper, end = await cells.run("say again")
            assert end.trouble is None

    run(scene())


def test_a_question_that_is_withdrawn_leaves_no_trace_of_waiting(tmp_path: Path) -> None:
    async def ask(_question: events.Question, _shown: Shown, _scene: Scene) -> Decision:
        await asyncio.Event().wait()
        raise AssertionError("nobody answers")

    async def scene() -> None:
        async with Cells(faulty("withdraw", cwd=str(tmp_path)), ask=ask) as cells:
            paper, end = await cells.run("misbehave")
            assert end.trouble is None
            assert reads_well(paper)
            assert "waiting for you" not in paper.visible

    run(scene())


# --- interrupts -----------------------------------------------------------------------------------------------------


def test_an_interrupted_cell_keeps_what_was_streamed_and_the_same_process_goes_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Cells(Options(cli=child("dialect_child", "--dialect=direct"), cwd=str(tmp_path))) as cells:
            paper = cells.notebook.cell()
            cell = asyncio.ensure_future(cells.talk.run("wait", paper))
            await comes_true(lambda: "working" in paper.visible)
            assert cells.talk.running
            pid = cells.talk.session.pid
            assert await cells.talk.interrupt()
            end = await cell
            assert end.interrupted
            assert end.trouble is None
            assert paper.plain.index("working") < paper.plain.index("Interrupted.")
            assert reads_well(paper)
            after, _end = await cells.run("say still here")
            assert "still here" in after.plain
            assert cells.talk.session.pid == pid

    run(scene())


def test_a_cli_that_ignores_the_interrupt_is_replaced(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Cells(faulty("ignore-interrupt", cwd=str(tmp_path)), timing=QUICK) as cells:
            paper = cells.notebook.cell()
            cell = asyncio.ensure_future(cells.talk.run("misbehave", paper))
            await until(cells.talk.session, State.WORKING)
            pid = cells.talk.session.pid
            await cells.talk.interrupt()
            assert (await cell).interrupted
            after, _end = await cells.run("say still here")
            assert "still here" in after.plain
            assert pid is not None
            assert wait_until(lambda: is_gone(pid))

    run(scene())


def test_with_no_cell_running_there_is_nothing_to_interrupt(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Cells(faulty("junk", cwd=str(tmp_path))) as cells:
            assert not await cells.talk.interrupt()
            assert cells.talk.state is State.STOPPED

    run(scene())


def test_a_conversation_that_was_warmed_up_answers_with_the_process_that_was_started(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Cells(faulty("junk", cwd=str(tmp_path))) as cells:
            cells.talk.prewarm()
            await until(cells.talk.session, State.IDLE)
            pid = cells.talk.session.pid
            await cells.run("say hello")
            assert cells.talk.session.pid == pid

    run(scene())


# --- trust and notices ----------------------------------------------------------------------------------------------


def untrusted(folder: Path) -> None:
    (folder / ".claude").mkdir()
    (folder / ".claude" / "settings.json").write_text(json.dumps(HOOK))


def flags(talk: Conversation) -> list[str]:
    assert talk.session.pid is not None
    return [word for word in psutil.Process(talk.session.pid).cmdline() if "setting" in word or "strict" in word]


def test_a_folder_that_is_not_trusted_is_entered_with_the_persons_own_settings_only(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "home" / "project"
    project.mkdir(parents=True)
    untrusted(project)
    options = faulty("junk", cwd=str(project), environment={"HOME": str(home), "CLAUDE_CONFIG_DIR": ""})

    async def scene() -> None:
        async with Cells(options) as cells:
            first, _end = await cells.run("say one")
            assert flags(cells.talk) == ["--setting-sources=user", "--strict-mcp-config"]
            assert "not trusted yet" in first.plain
            assert ".claude/settings.json" in first.plain
            second, _end = await cells.run("say two")
            assert "not trusted" not in second.plain

            accepted = {"projects": {str(project): {"hasTrustDialogAccepted": True}}}
            (home / ".claude.json").write_text(json.dumps(accepted))
            await cells.talk.restart()
            third, _end = await cells.run("say three")
            assert flags(cells.talk) == []
            assert "not trusted" not in third.plain

    run(scene())


@pytest.mark.parametrize(
    ("asked", "given"), [(("user", "project"), "user"), (("user",), "user"), (("project", "local"), "")]
)
def test_options_do_not_let_the_settings_of_such_a_folder_in(
    tmp_path: Path, asked: tuple[str, ...], given: str
) -> None:
    untrusted(tmp_path)
    environment = {"HOME": str(tmp_path / "home"), "CLAUDE_CONFIG_DIR": ""}
    options = faulty("junk", cwd=str(tmp_path), setting_sources=asked, environment=environment)

    async def scene() -> None:
        async with Cells(options) as cells:
            await cells.run("say hello")
            assert flags(cells.talk) == [f"--setting-sources={given}", "--strict-mcp-config"]

    run(scene())


def test_a_trusted_folder_is_entered_as_the_cli_would(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Cells(faulty("junk", cwd=str(tmp_path))) as cells:
            await cells.run("say hello")
            assert flags(cells.talk) == []

    run(scene())


def test_a_notice_of_the_session_is_told_once_and_in_the_cell(tmp_path: Path) -> None:
    async def scene() -> None:
        async with Cells(faulty("junk", cwd=str(tmp_path))) as cells:
            cells.talk.session.notices.append("Claude Code 2.0.1 is older than any.")
            first, _end = await cells.run("say one")
            second, _end = await cells.run("say two")
            assert "older than any" in first.plain
            assert "older than any" not in second.plain

    run(scene())


# --- the real CLI ---------------------------------------------------------------------------------------------------


@pytest.fixture
def options(cli_env: dict[str, str], project: Path) -> Options:
    return Options(cli=str(cli_path()), cwd=str(project), environment=cli_env, inherit_environment=False)


@pytest.mark.real_cli
def test_an_agent_that_comes_home_between_cells_is_shown_where_it_left_and_told_in_the_next_cell(
    options: Options,
) -> None:
    errand = {"description": "my errand", "prompt": "slow:3", "subagent_type": "general-purpose"}

    async def scene() -> None:
        async with Cells(options) as cells:
            first, _end = await cells.run(f'steps:[[["Task", {json.dumps(errand)}]], "sent"]')
            assert "Working in the background" in first.visible
            unasked = cells.talk.session.unasked
            await comes_true(lambda: any(isinstance(event, events.UnaskedTurnEnded) for event in unasked))
            assert "Working in the background" not in first.visible
            assert reads_well(first)
            second, _end = await cells.run("say:mine")
            told, footer = second.plain.index("A background task came home: my errand"), second.plain.index("mine")
            assert told < footer
            assert "Noted:" in second.plain
            third, _end = await cells.run("say:later")
            assert "came home" not in third.plain
            assert len(cells.talk.journal.all) + len(cells.talk.journal.unasked) == 4

    run(scene(), seconds=60)


@pytest.mark.real_cli
def test_an_attached_image_goes_with_one_prompt_and_a_mentioned_one_with_its_own(
    options: Options, project: Path, messages_api: MessagesApi
) -> None:
    (project / "dot.png").write_bytes(base64.b64decode(DOT))

    def images() -> int:
        contents = [message["content"] for message in messages_api.last_request()["messages"]]
        return sum(block["type"] == "image" for blocks in contents for block in blocks if isinstance(block, dict))

    async def scene() -> None:
        async with Cells(options) as cells:
            cells.talk.images.append(events.Image("image/png", DOT))
            await cells.run("say:attached")
            assert images() == 1
            await cells.run("say:nothing more")
            assert images() == 1
            await cells.run("say:mentioned\n\n@dot.png")
            assert images() == 2

    run(scene(), seconds=60)


@pytest.mark.real_cli
def test_an_api_error_is_shown_and_returned(options: Options) -> None:
    async def scene() -> None:
        async with Cells(options) as cells:
            paper, end = await cells.run("fail:400")
            assert end.trouble is not None
            assert end.ended is not None
            assert end.ended.outcome is Outcome.API_ERROR
            assert end.trouble.title.rstrip(".") in paper.plain

    run(scene(), seconds=60)


@pytest.mark.real_cli
def test_a_hook_of_a_folder_that_is_not_trusted_does_not_run(options: Options, project: Path, cli_home: Path) -> None:
    untrusted(project)

    async def scene() -> None:
        async with Cells(options) as cells:
            paper, end = await cells.run("say:hello")
            assert end.trouble is None
            assert "not trusted yet" in paper.plain
        assert not (cli_home / "hooked").exists()

    run(scene(), seconds=60)


@pytest.mark.real_cli
@pytest.mark.parametrize("file", ["settings.json", "settings.local.json"])
def test_a_rule_that_a_folder_brings_allows_nothing(options: Options, project: Path, file: str) -> None:
    """The CLI obeys those of a `settings.local.json` that git does not know, trusted or not (2.1.326)."""
    (project / ".claude").mkdir()
    (project / ".claude" / file).write_text(json.dumps({"permissions": {"allow": ["Bash(touch:*)", "Bash"]}}))
    call = f"tool:Bash:{json.dumps({'command': 'touch made.txt'})}"

    async def scene() -> None:
        async with Cells(options) as cells:
            _paper, end = await cells.run(call)
            assert end.trouble is not None
        assert not (project / "made.txt").exists()

    run(scene(), seconds=60)


@pytest.mark.real_cli
def test_a_rule_that_the_person_kept_is_obeyed_after_a_restart(options: Options, project: Path) -> None:
    call = f"tool:Bash:{json.dumps({'command': 'python3 -c 1'})}"
    asked: list[str] = []

    async def always(question: events.Question, _shown: Shown, _scene: Scene) -> Decision:
        asked.append(question.id)
        rules = [given for given in question.suggestions if given["type"] == "addRules"]
        return Allow(permissions=tuple({**given, "destination": "localSettings"} for given in rules))

    async def scene() -> None:
        for _ in range(2):
            async with Cells(options, ask=always) as cells:
                paper, end = await cells.run(call)
                assert end.trouble is None
                assert "not trusted" not in paper.plain

    run(scene(), seconds=60)
    assert (project / ".claude" / "settings.local.json").exists()
    assert len(asked) == 1
