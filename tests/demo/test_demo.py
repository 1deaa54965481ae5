"""The offline demo through the engine: each of its scenes, what it asks before, and that it never pretends."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate
from support.talk import ended, is_gone, marked_processes, of, run, text, turn, wait_until

from claude_kernel.cli import Options
from claude_kernel.demo.rules import Rules
from claude_kernel.demo.scenes import SCENES
from claude_kernel.demo.schemas import example_of
from claude_kernel.protocol import Allow, Answers, Decision, Deny, events
from claude_kernel.protocol.events import Outcome
from claude_kernel.session import Session

EXAMPLES = [scene.example for scene in SCENES if scene.example]


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CLAUDE_KERNEL_DEMO_PACE", "0")
    yield
    assert wait_until(lambda: not marked_processes()), f"left behind: {marked_processes()}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_text("a first line\nimport this\n")
    (tmp_path / "README.md").write_text("# Title\n")
    return tmp_path


class Asked:
    """Decides every question, and remembers it."""

    def __init__(self, decision: Decision | None = None) -> None:
        self.questions: list[events.Question] = []
        self.decision = decision

    async def __call__(self, question: events.Question) -> Decision:
        self.questions.append(question)
        if self.decision is not None:
            return self.decision
        if question.form:
            return Answers({form.text: form.choices[0].label for form in question.form})
        return Allow()

    @property
    def tools(self) -> list[str]:
        return [question.tool_name for question in self.questions]


def demo(folder: Path, **more: Any) -> Options:
    return Options(cli="demo", cwd=str(folder), **more)


def play(folder: Path, *prompts: str, ask: Asked | None = None, **more: Any) -> list[list[events.Event]]:
    async def scene() -> list[list[events.Event]]:
        async with Session(demo(folder, **more), ask=ask) as session:
            return [await turn(session, prompt) for prompt in prompts]

    return run(scene())


@pytest.mark.parametrize(
    "example", [*EXAMPLES, "hello", "What is the meaning of life?", "/help", "/compact", "/nothing"]
)
def test_every_scene_ends_well_costs_nothing_and_says_what_it_is(example: str, folder: Path) -> None:
    (happened,) = play(folder, example.replace("Count to 20", "Count to 1"), ask=Asked())
    end = ended(happened)
    assert end.outcome is Outcome.FINISHED
    assert end.usage.cost_usd == 0
    assert "not from a model" in text(happened)
    assert not of(events.Unrecognized, happened)
    started = of(events.SessionStarted, happened)[0]
    assert (started.model, started.version) == ("offline-demo", "offline demo")


def test_it_says_of_itself_that_it_is_no_model(folder: Path) -> None:
    async def scene() -> None:
        async with Session(demo(folder)) as session:
            initialised = await session.start()
            assert initialised is not None
            assert "no account" in initialised.account["apiProvider"]
            assert [model.description for model in initialised.models] == ["A script, not a model. It costs nothing."]
            assert session.notices == []

    run(scene())


def test_what_changes_something_is_asked_for_and_then_really_done(folder: Path) -> None:
    ask = Asked()
    play(
        folder,
        "Write new.txt with `a line`",
        "Replace `first` with `second` in notes.txt",
        "Run `echo hi > ran`",
        ask=ask,
    )
    assert ask.tools == ["Write", "Edit", "Bash"]
    assert (folder / "new.txt").read_text() == "a line\n"
    assert (folder / "notes.txt").read_text() == "a second line\nimport this\n"
    assert (folder / "ran").read_text() == "hi\n"


def test_an_edit_leaves_the_other_line_ends_alone(folder: Path) -> None:
    (folder / "notes.txt").write_bytes(b"one\r\ntwo\r\n")
    play(folder, "Replace `two` with `three` in notes.txt", ask=Asked())
    assert (folder / "notes.txt").read_bytes() == b"one\r\nthree\r\n"


def test_a_file_is_named_with_and_without_backticks(folder: Path) -> None:
    ask = Asked()
    play(
        folder,
        "Write `new.txt` with `a line`",
        "Replace `line` with `word` in `new.txt`",
        "Plan a script, deep/in/it.py, that greets.",
        ask=ask,
    )
    assert (folder / "new.txt").read_text() == "a word\n"
    assert ask.tools[2:] == ["ExitPlanMode", "Write", "Bash"]
    assert (folder / "deep" / "in" / "it.py").exists()


def test_a_question_says_nothing_that_its_card_does_not_show_anyway(folder: Path) -> None:
    ask = Asked()
    play(folder, "Write new.txt with `a line`", "Run `date`", ask=ask)
    assert [question.description for question in ask.questions] == ["", "What you asked for"]


def test_a_step_of_a_plan_names_the_file_from_the_folder(folder: Path) -> None:
    ask = Asked()
    play(folder, "Write new.txt with `a line`", ask=ask, mode="plan")
    assert ask.questions[0].input["plan"] == "1. Write `new.txt`"


def test_what_is_refused_is_not_done_and_the_reason_comes_back(folder: Path) -> None:
    ask = Asked(Deny(reason="not on a Friday"))
    for happened in play(folder, "Write new.txt with `x`", "Run `touch ran`", "Plan a small script", ask=ask):
        assert "not on a Friday" in text(happened)
        assert ended(happened).refused_tools
        assert any(isinstance(event, events.ToolFinished) and event.refused for event in happened)
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "notes.txt"]


def test_nobody_there_means_no(folder: Path) -> None:
    (happened,) = play(folder, "Run `touch ran`")
    assert "It was not run" in text(happened)
    assert not (folder / "ran").exists()


def test_an_edited_command_is_what_runs(folder: Path) -> None:
    play(folder, "Run `touch one`", ask=Asked(Allow(input={"command": "touch two"})))
    assert (folder / "two").exists()
    assert not (folder / "one").exists()


def test_a_kept_rule_is_not_asked_for_again(folder: Path) -> None:
    rule = {"type": "addRules", "rules": [{"toolName": "Bash", "ruleContent": "date"}], "behavior": "allow"}
    ask = Asked(Allow(permissions=({**rule, "destination": "session"},)))
    play(folder, "Run `date`", "Run `date`", "Run `date -u`", ask=ask)
    assert [question.input["command"] for question in ask.questions] == ["date", "date -u"]


@pytest.mark.parametrize(
    ("mode", "asked", "done"),
    [
        ("default", ["Write"], True),
        ("acceptEdits", [], True),
        ("plan", ["ExitPlanMode", "Write"], True),
        ("dontAsk", [], False),
        ("bypassPermissions", [], True),
    ],
)
def test_the_modes(mode: str, asked: list[str], done: bool, folder: Path) -> None:
    ask = Asked()
    play(folder, "Write new.txt with `x`", ask=ask, mode=mode)
    assert ask.tools == asked
    assert (folder / "new.txt").exists() is done


def test_outside_the_folder_reading_asks_too(folder: Path) -> None:
    ask = Asked(Deny(reason="no"))
    play(folder, "Read ../other.txt", ask=ask)
    assert ask.tools == ["Read"]


@pytest.mark.parametrize(
    ("rule", "command", "allowed"),
    [
        ("Bash(git:*)", "git status", True),
        ("Bash(git:*)", "git status; rm -r x", False),
        ("Bash(git:*)", "git log > x", False),
        ("Bash(date)", "date", True),
        ("Bash(date)", "date -u", False),
        ("Bash", "anything at all", True),
        ("Read", "date", False),
    ],
)
def test_rules(rule: str, command: str, allowed: bool, tmp_path: Path) -> None:
    rules = Rules(tmp_path, allow=[rule])
    assert (rules.decide("Bash", {"command": command}) == "allow") is allowed
    rules.deny = [rule]
    assert (rules.decide("Bash", {"command": command}) not in ("allow", "ask")) is allowed


def test_the_form_goes_back_with_what_was_chosen(folder: Path) -> None:
    ask = Asked(Answers({"Which colour for the chart?": "Teal", "What should it have?": ["A title", "A grid"]}))
    (happened,) = play(folder, "Ask me", ask=ask)
    assert "**Teal**" in text(happened)


def test_an_agent_works_below_its_call(folder: Path) -> None:
    (happened,) = play(folder, "Send an agent")
    (task,) = of(events.TaskStarted, happened)
    steps = [started for started in of(events.ToolStarted, happened) if started.parent == task.tool_use_id]
    assert [step.name for step in steps] == ["Glob", "Read", "Read"]
    assert of(events.TaskFinished, happened)[0].status == "completed"


def test_a_stop_ends_the_command_and_keeps_the_conversation(folder: Path) -> None:
    async def scene() -> None:
        async with Session(demo(folder), ask=Asked()) as session:
            running = asyncio.create_task(turn(session, "Run `echo $$ > pid; sleep 60`"))
            while not (folder / "pid").exists() or not (folder / "pid").read_text():  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.02)
            await session.interrupt()
            assert ended(await running).outcome is Outcome.INTERRUPTED
            assert wait_until(lambda: is_gone(int((folder / "pid").read_text())))
            pid = session.pid
            assert "1. Run `echo" in text(await turn(session, "What did I say?"))
            assert session.pid == pid

    run(scene())


def test_a_stop_while_it_asks_withdraws_the_question(folder: Path) -> None:
    async def scene() -> None:
        open_question = asyncio.Event()

        async def ask(_question: events.Question) -> Decision:
            open_question.set()
            await asyncio.sleep(60)
            return Allow()

        async with Session(demo(folder), ask=ask) as session:
            running = asyncio.create_task(turn(session, "Run `touch ran`"))
            await open_question.wait()
            await session.interrupt()
            happened = await running
            assert of(events.QuestionWithdrawn, happened)
            assert ended(happened).outcome is Outcome.INTERRUPTED
            assert "Hello" in text(await turn(session, "hello"))

    run(scene())
    assert not (folder / "ran").exists()


def test_a_new_conversation_forgets(folder: Path) -> None:
    first, second, third = play(folder, "hello", "/clear", "What did I say?")
    assert of(events.ConversationReset, second)
    assert "Nothing yet" in text(third)
    assert ended(first).session_id != ended(third).session_id


def test_a_folder_cannot_put_its_own_modules_before_pythons(folder: Path) -> None:
    (folder / "json.py").write_text("open('ran', 'w')\n")
    (happened,) = play(folder, "hello")
    assert ended(happened).outcome is Outcome.FINISHED
    assert not (folder / "ran").exists()


def test_a_line_that_is_not_json_ends_it_with_a_reason(folder: Path) -> None:
    async def scene() -> tuple[int | None, bytes]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "claude_kernel.demo", stdin=-1, stdout=-1, stderr=-1, cwd=folder,
            env={"PYTHONPATH": str(Path(__file__).parent.parent.parent)},
        )  # fmt: skip
        _, err = await process.communicate(b"{]\n")
        return process.returncode, err

    code, err = run(scene())
    assert code == 0
    assert b"not JSON" in err


SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}, "s": {}}, "required": ["n"]},
    {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2},
    {"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object", "required": ["next"], "properties": {
        "next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}}}}},
    {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]},
    {"const": 7},
    {},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_an_answer_of_a_type_fits_the_type(schema: dict[str, Any], folder: Path) -> None:
    validate(example_of(schema), schema)
    (happened,) = play(folder, "What is it?", json_schema=schema)
    validate(ended(happened).structured, schema)
