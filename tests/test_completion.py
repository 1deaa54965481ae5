"""What can stand at the cursor, and what it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claude_kernel.cli import EFFORTS, MODES
from claude_kernel.completion import MOST_PATHS, describe, find_completions
from claude_kernel.protocol.events import Initialised, Model, SlashCommand
from claude_kernel.steering import COMMANDS

READY = Initialised(
    commands=(
        SlashCommand("compact", "Make room", "[what to keep]"),
        SlashCommand("context", "What fills the window"),
        SlashCommand("mcp:server:run", "A server's own"),
    ),
    models=(Model("default", description="The best"), Model("opus[1m]", description="Long"), Model("haiku")),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    for name in ["src/main.py", "src/.env", "docs/a b.md", "readme.md", "Zoo.txt", ".hidden", "my file.txt", "日本.md"]:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"# {name}\ntext\n")
    (project / "my folder").mkdir()
    return project


def texts(before: str, folder: Path, initialised: Initialised | None = READY) -> list[str]:
    return [match.text for match in find_completions(before, folder, initialised).matches]


def completed(before: str, folder: Path) -> list[str]:
    """The cell as it is after each of the choices."""
    found = find_completions(before, folder, READY)
    return [before[: found.start] + match.text for match in found.matches]


# --- slash commands -------------------------------------------------------------------------------------------------


def test_commands_come_with_their_descriptions(folder: Path) -> None:
    found = find_completions("/com", folder, READY)
    assert [(match.text, match.kind, match.about) for match in found.matches] == [("/compact", "command", "Make room")]
    assert found.start == 0


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("/", ["/compact", "/context", "/mcp:server:run"]),
        ("\n  /co", ["\n  /compact", "\n  /context"]),
        ("/mcp:server:", ["/mcp:server:run"]),
        ("/nothing", []),
        ("hello /co", []),
        ("/compact now /co", []),
    ],
)
def test_commands_are_offered_where_they_can_stand(folder: Path, before: str, expected: list[str]) -> None:
    assert completed(before, folder) == expected


def test_before_the_cli_has_answered_there_are_no_commands_and_no_models(folder: Path) -> None:
    assert texts("/co", folder, None) == []
    assert texts("%claude model ", folder, None) == []


# --- paths ----------------------------------------------------------------------------------------------------------


def test_folders_come_first_and_hidden_files_only_when_asked_for(folder: Path) -> None:
    found = find_completions("@", folder, READY)
    assert [match.text for match in found.matches] == [
        "docs/",
        '"my folder/',
        "src/",
        '"my file.txt"',
        "readme.md",
        "Zoo.txt",
        "日本.md",
    ]
    assert {match.kind for match in found.matches} == {"folder", "file"}
    assert texts("@.", folder) == [".hidden"]
    assert texts("@src/", folder) == ["src/main.py"]
    assert texts("@src/.", folder) == ["src/.env"]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("see @rea", ["see @readme.md"]),
        ("see (@src/ma", ["see (@src/main.py"]),
        ("é日本 @日", ["é日本 @日本.md"]),
        ("first\nthen @do", ["first\nthen @docs/"]),
        ("@my", ['@"my folder/', '@"my file.txt"']),
        ('@"my f', ['@"my folder/', '@"my file.txt"']),
        ('@"docs/a', ['@"docs/a b.md"']),
        ("@docs/a", ['@"docs/a b.md"']),
        ('@"rea', ['@"readme.md"']),
        ('@"my file.txt" and @rea', ['@"my file.txt" and @readme.md']),
        ("@missing/", []),
        ("@readme.md/", []),
        ("me@rea", []),
        ("@rea now", []),
        ("@nul\0/", []),
        ("@~nobody-of-this-name/", []),
    ],
)
def test_a_path_is_completed_in_its_place(folder: Path, before: str, expected: list[str]) -> None:
    assert completed(before, folder) == expected


def test_absolute_paths_and_those_from_home_keep_their_spelling(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert texts(f"@{folder}/rea", folder / "src") == [f"{folder}/readme.md"]
    assert texts("@~/rea", folder / "src") == ["~/readme.md"]
    assert texts("@../rea", folder / "src") == ["../readme.md"]
    assert "tmp/" in [text.lstrip("/") for text in texts("@/tm", folder)]


def test_a_folder_of_thousands_is_offered_in_part(tmp_path: Path) -> None:
    for number in range(MOST_PATHS + 20):
        (tmp_path / f"f{number}").touch()
    assert len(texts("@f", tmp_path)) == MOST_PATHS


# --- steering -------------------------------------------------------------------------------------------------------


def test_the_words_after_claude_are_the_commands_with_what_they_do(folder: Path) -> None:
    found = find_completions("%claude ", folder, READY)
    assert [match.text for match in found.matches] == list(COMMANDS)
    assert all(match.about for match in found.matches)
    assert texts("%claude mo", folder) == ["model", "mode"]
    assert texts("%claude model opus\n  %claude st", folder) == ["status", "stop"]
    assert texts("%claudest", folder) == []


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("%claude model ", ["default", "opus[1m]", "haiku"]),
        ("%claude model o", ["opus[1m]"]),
        ("%claude model opus[", ["opus[1m]"]),
        ("%claude mode ", list(MODES)),
        ("%claude\tmode\tacc", ["acceptEdits"]),
        ("%claude effort ", list(EFFORTS)),
        ("%claude effort x", ["xhigh"]),
        ("%claude status ", []),
        ("%claude nothing ", []),
    ],
)
def test_the_choices_of_a_command_are_offered(folder: Path, before: str, expected: list[str]) -> None:
    assert texts(before, folder) == expected


def test_every_command_with_a_table_of_words_offers_them(folder: Path) -> None:
    for verb in ("model", "mode", "effort", "prompts"):
        assert verb in COMMANDS
        assert texts(f"%claude {verb} ", folder)


def test_an_ordinary_word_has_no_completions(folder: Path) -> None:
    found = find_completions("just a word", folder, READY)
    assert found.matches == ()
    assert found.start == len("just a word")


# --- what it is -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cursor", range(1, 9))
def test_a_command_is_described_wherever_the_cursor_stands_in_it(folder: Path, cursor: int) -> None:
    assert describe("/compact", cursor, folder, READY) == "**/compact** [what to keep]\n\nMake room"


def test_what_is_not_known_is_not_described(folder: Path) -> None:
    for cell in ("/nothing", "@missing.txt", "word", "", "model", "@nul\0"):
        assert describe(cell, len(cell), folder, READY) is None
    assert describe("/compact", 3, folder, None) is None


def test_a_file_is_described_by_how_it_begins_as_it_is(folder: Path) -> None:
    (folder / "fenced.md").write_text("# Title\n````\ncode\n````\n" + "line\n" * 100)
    about = describe("see @fenced.md please", 8, folder, READY)
    assert about is not None
    head, _, rest = about.partition("\n\n")
    assert head == "**fenced.md**, 523 bytes"
    assert rest.startswith("`" * 6 + "\n# Title\n````\n")
    assert rest.count("\n") == 41
    assert describe("(@readme.md)", 5, folder, READY) is not None
    assert describe("@src/main.py", 0, folder, READY) is not None


def test_a_folder_is_described_by_what_is_in_it(folder: Path) -> None:
    assert describe("@src", 3, folder, READY) == "**src/** has 2 entries\n\n```\n.env\nmain.py\n```"


def test_a_file_that_is_no_text_is_said_to_be_none(folder: Path) -> None:
    (folder / "data.bin").write_bytes(b"\0\1\2")
    assert describe("@data.bin", 4, folder, READY) == "**data.bin**, 3 bytes, not text"


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert describe("@pipe", 3, folder, READY) is None


@pytest.mark.parametrize("verb", COMMANDS)
def test_every_word_of_steering_is_described(folder: Path, verb: str) -> None:
    about = describe(f"%claude {verb}", 10, folder, READY)
    assert about is not None
    assert COMMANDS[verb].summary in about


PIECES = [
    "@",
    '"',
    "/",
    "~",
    "..",
    "%claude ",
    "model ",
    "\n",
    " ",
    "\t",
    "\0",
    "é",
    "日",
    "\ud800",
    "(",
    "src",
    ".",
    "[",
]


@settings(
    derandomize=True, max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)), st.integers(0, 40))
def test_nothing_that_is_typed_makes_it_fail(folder: Path, cell: str, cursor: int) -> None:
    found = find_completions(cell[:cursor], folder, READY)
    assert 0 <= found.start <= len(cell[:cursor])
    described = describe(cell, min(cursor, len(cell)), folder, READY)
    assert described is None or described
