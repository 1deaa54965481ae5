"""Which CLI is found, and what it is told: by table."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from support.real_cli import cli_path

from claude_kernel import cli
from claude_kernel.cli import Options, build_arguments, build_environment, find_cli
from claude_kernel.errors import CliNotFound, UsageError
from claude_kernel.protocol import DIALECTS


def _program(folder: Path, name: str = "claude") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\necho '2.0.9 (Claude Code)'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_an_explicit_path_comes_first_then_the_variable_then_the_path(tmp_path: Path) -> None:
    explicit, variable, on_path = (_program(tmp_path / name) for name in ("explicit", "variable", "path"))
    environ = {"CLAUDE_CODE_PATH": str(variable), "PATH": str(on_path.parent)}
    assert find_cli(str(explicit), environ) == [str(explicit)]
    assert find_cli(None, environ) == [str(variable)]
    assert find_cli(None, {"PATH": str(on_path.parent)}) == [str(on_path)]


def test_a_whole_command_is_taken_as_it_is() -> None:
    assert find_cli(("python", "child.py")) == ["python", "child.py"]


@pytest.mark.parametrize("environ", [{"CLAUDE_CODE_PATH": "/nowhere/claude", "PATH": ""}])
def test_a_named_cli_that_is_not_there_is_an_error_and_not_replaced_by_another(environ: dict[str, str]) -> None:
    with pytest.raises(CliNotFound, match="CLAUDE_CODE_PATH"):
        find_cli(None, environ)
    with pytest.raises(CliNotFound, match="/nowhere/else"):
        find_cli("/nowhere/else", environ)


def test_the_last_resort_is_the_one_inside_the_sdk_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_cli(None, {"PATH": ""}) == [str(cli_path())]


def test_without_any_cli_the_error_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(cli, "_find_bundled", lambda: None)
    with pytest.raises(CliNotFound, match=r"pip install claude-agent-sdk"):
        find_cli(None, {"PATH": ""})


def test_the_version_is_read_from_the_program_itself(tmp_path: Path) -> None:
    assert cli.read_version([str(_program(tmp_path))]) == "2.0.9"
    assert cli.read_version([str(tmp_path / "missing")]) == ""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"model": "haiku"}, "--model=haiku"),
        ({"mode": "plan"}, "--permission-mode=plan"),
        ({"effort": "high"}, "--effort=high"),
        ({"resume": "abc-1", "fork": True}, "--fork-session"),
        ({"setting_sources": ("user", "project")}, "--setting-sources=user,project"),
        ({"setting_sources": ()}, "--setting-sources="),
        ({"max_turns": 3}, "--max-turns=3"),
        ({"max_budget_usd": 0.00001}, "--max-budget-usd=0.00001"),
        ({"max_budget_usd": 2.5}, "--max-budget-usd=2.5"),
        ({"json_schema": {"type": "object"}}, '--json-schema={"type": "object"}'),
        ({"add_dirs": ("-rf", "/x")}, "--add-dir=-rf"),
        ({"allowed_tools": ("Read", "Bash(ls *)")}, "--allowedTools=Read,Bash(ls *)"),
        ({"strict_mcp": True}, "--strict-mcp-config"),
    ],
)
def test_an_option_becomes_one_argument(given: dict[str, Any], expected: str) -> None:
    assert expected in build_arguments(Options(**given), DIALECTS["direct"])


@pytest.mark.parametrize(
    "given",
    [
        {"model": "--dangerously-skip-permissions"},
        {"model": "a b"},
        {"resume": "../../etc/passwd\0"},
        {"resume": "-x"},
        {"session_id": ""},
        {"mode": "yolo"},
        {"effort": "-5"},
        {"add_dirs": ("a\0b",)},
    ],
)
def test_what_could_become_a_flag_or_is_no_name_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        build_arguments(Options(**given), DIALECTS["direct"])


def test_the_working_folder_is_an_argument_only_where_the_dialect_says_so() -> None:
    assert not any("--cwd" in argument for argument in build_arguments(Options(), DIALECTS["direct"]))
    assert any(argument.startswith("--cwd=/") for argument in build_arguments(Options(), DIALECTS["bridge"]))


def test_the_environment_is_cleaned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    environment = build_environment(Options(environment={"EXTRA": "yes"}))
    assert "CLAUDECODE" not in environment
    assert (environment["ANTHROPIC_API_KEY"], environment["EXTRA"]) == ("key", "yes")
    assert build_environment(Options(inherit_environment=False)) == {}


def test_no_secret_stands_in_the_arguments() -> None:
    options = Options(
        mcp_servers={"db": {"command": "db", "env": {"TOKEN": "hunter2"}}}, environment={"KEY": "hunter2"}
    )
    assert "hunter2" not in " ".join(build_arguments(options, DIALECTS["direct"], mcp_config="/tmp/private.json"))
