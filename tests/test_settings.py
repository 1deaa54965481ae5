"""Settings come from where Jupyter's come from, the strongest wins, and what cannot be is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.papers import CellPaper
from support.talk import run
from traitlets.config import Application, Config, Configurable

from claude_kernel.conversation import Conversation
from claude_kernel.desk import Page
from claude_kernel.errors import UsageError
from claude_kernel.settings import NAMES, Loaded, load_settings, put_table, variable_of
from claude_kernel.steering import steer

PAGE = Path(__file__).parent.parent / "docs" / "configuration.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's configuration folder, alone with the machine's."""
    for name in ("mine", "machine"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(
        "claude_kernel.settings.jupyter_config_path", lambda: [str(tmp_path / "mine"), str(tmp_path / "machine")]
    )
    return tmp_path / "mine"


def app(files: dict[str, Any] | None = None, told: dict[str, Any] | None = None) -> Application:
    """An application that has read its files and its command line."""
    both = Config({"ClaudeSettings": (files or {}) | (told or {})})
    return Application(config=both, cli_config=Config({"ClaudeSettings": told or {}}))


def source_of(name: str, loaded: Loaded) -> str:
    return next(row.source for row in loaded.rows if row.name == name)


@pytest.mark.usefixtures("folder")
def test_without_anything_said_the_defaults_hold() -> None:
    loaded = load_settings(environ={})
    assert [row.name for row in loaded.rows] == list(NAMES)
    assert {row.source for row in loaded.rows} == {"default"}
    assert loaded.settings.options().cli is None
    assert loaded.problems == ()


def test_each_stands_above_the_one_before(folder: Path) -> None:
    machine = folder.parent / "machine" / "jupyter_claude_config.json"
    machine.write_text(json.dumps({"ClaudeSettings": {"model": "one", "effort": "low", "prompts": "never"}}))
    mine = folder / "jupyter_claude_config.py"
    mine.write_text('c = get_config()\nc.ClaudeSettings.model = "two"\nc.ClaudeSettings.effort = "high"\n')

    loaded = load_settings(environ={})
    assert (loaded.settings.model, source_of("model", loaded)) == ("two", f"`{mine}`")
    assert (loaded.settings.prompts, source_of("prompts", loaded)) == ("never", f"`{machine}`")

    loaded = load_settings(app({"model": "three"}), {})
    assert (loaded.settings.model, source_of("model", loaded)) == ("three", "IPython's configuration")
    loaded = load_settings(app({"model": "three"}), {"CLAUDE_KERNEL_MODEL": "four"})
    assert (loaded.settings.model, source_of("model", loaded)) == ("four", "environment, CLAUDE_KERNEL_MODEL")
    loaded = load_settings(app({"model": "three"}, {"model": "five"}), {"CLAUDE_KERNEL_MODEL": "four"})
    assert (loaded.settings.model, source_of("model", loaded)) == ("five", "command line")
    assert loaded.settings.options().effort == "high"


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        (
            {"CLAUDE_KERNEL_MODE": "yolo"},
            "`mode` cannot be 'yolo' (environment, CLAUDE_KERNEL_MODE). It may be default,",
        ),
        ({"CLAUDE_KERNEL_PROMPTS": "shout"}, "It may be auto, widgets, stdin, never."),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_value_that_cannot_be_is_told_and_left_out(environ: dict[str, str], told: str) -> None:
    loaded = load_settings(environ=environ)
    assert told in loaded.problems[0]
    assert loaded.settings.mode == ""
    assert loaded.settings.prompts == "auto"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("jupyter_claude_config.json", "{", "cannot be read: JSONDecodeError"),
        ("jupyter_claude_config.py", "c = 1 / 0", "cannot be read: ZeroDivisionError"),
        ("jupyter_claude_config.json", '{"ClaudeSettings": {"modle": "x"}}', "There is no setting `modle`"),
        ("jupyter_claude_config.json", '{"ClaudeSettings": {"model": 3}}', "`model` cannot be 3"),
    ],
)
def test_a_broken_file_costs_only_itself(name: str, content: str, told: str, folder: Path) -> None:
    (folder / name).write_text(content)
    loaded = load_settings(environ={"CLAUDE_KERNEL_EFFORT": "low"})
    assert told in loaded.problems[0]
    assert str(folder / name) in loaded.problems[0]
    assert loaded.settings.effort == "low"


def test_the_documentation_holds_the_table_as_it_is() -> None:
    page = PAGE.read_text()
    assert put_table(page) == page, "run scripts/docs"
    for name in NAMES:
        assert f"`{variable_of(name)}`" in page


@pytest.mark.usefixtures("folder")
def test_a_person_can_see_what_holds_and_why() -> None:
    loaded = load_settings(environ={"CLAUDE_KERNEL_CLI": "demo", "CLAUDE_KERNEL_MODE": "yolo"})

    async def scene() -> str:
        talk = Conversation(loaded.settings.options(), settings=loaded.rows, notices=loaded.problems)
        return await steer(talk, "config", Page(CellPaper()))

    said = run(scene())
    assert "| `cli` | `demo`, environment, CLAUDE_KERNEL_CLI |" in said
    assert "| `model` | empty, default |" in said
    assert "`mode` cannot be 'yolo'" in said


def test_a_conversation_of_a_program_has_no_configuration() -> None:
    async def scene() -> None:
        with pytest.raises(UsageError, match="not configured"):
            await steer(Conversation(load_settings(environ={}).settings.options()), "config", Page(CellPaper()))

    run(scene())


@pytest.mark.usefixtures("folder")
def test_a_shell_in_a_kernel_finds_the_application_above_it() -> None:
    kernel = Configurable(parent=app({"model": "three"}, {"model": "five"}))
    assert load_settings(kernel, {}).settings.model == "five"
