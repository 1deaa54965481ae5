"""The command itself: its table, its help, how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from commands.keyboard import Program, Typed

from claude_kernel.commands import COMMANDS, main

ROOT = Path(__file__).parent.parent.parent
RUN = "import sys; from claude_kernel.commands import main; sys.exit(main())"


def test_the_project_names_it_as_its_console_command() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["claude-kernel"].partition(":")
    assert getattr(import_module(module), function) is main


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_alone_it_lists_every_command_in_one_line_each(typed: Typed, words: tuple[str, ...]) -> None:
    code, out, err = typed(*words)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    for name, summary in COMMANDS.items():
        assert [line for line in lines if line.split()[:1] == [name] and line.endswith(summary)]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(typed: Typed, name: str) -> None:
    code, out, _ = typed(name, "--help")
    assert code == 0
    assert out.startswith(f"usage: claude-kernel {name}")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("docter",), "invalid choice: 'docter'"),
        (("--nope",), "unrecognized arguments: --nope"),
        (("doctor", "--nope"), "unrecognized arguments: --nope"),
        (("doctor", "--off"), "unrecognized arguments: --off"),
        (("policy", "a", "b"), "unrecognized arguments: b"),
        (("install", "--user", "--sys-prefix"), "not allowed with argument --user"),
    ],
)
def test_what_it_does_not_know_is_an_error_of_usage(typed: Typed, words: tuple[str, ...], reason: str) -> None:
    code, out, err = typed(*words)
    assert (code, out) == (2, "")
    assert reason in err


@pytest.mark.parametrize("words", [["--help"], ["policy"], ["sessions", "--json"]], ids=" ".join)
def test_a_closed_pipe_ends_it_without_a_traceback(home: Path, folder: Path, words: list[str]) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as nobody_reads:
        done = subprocess.run(
            [sys.executable, "-c", RUN, *words],
            stdout=nobody_reads,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={**inherited, "PYTHONPATH": str(ROOT), "HOME": str(home)},
            check=False,
        )
    assert done.stderr == b""
    assert done.returncode == 128 + 13


def test_the_versions_come_without_anything_heavy(home: Path, program: Program) -> None:
    program("claude", 'print("2.0.9 (Claude Code)")')
    code = f"{RUN.replace('sys.exit(main())', 'main()')}; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code, "version"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    ours, python, cli, modules = done.stdout.splitlines()
    assert ours.startswith("claude-kernel 0.")
    assert python == f"Python {sys.version.split()[0]} ({sys.executable})"
    assert cli == f"Claude Code 2.0.9 ({home / 'bin' / 'claude'})"
    assert not {"jupyter_client", "traitlets", "asyncio", "markdown_it"} & set(modules.split())


def test_a_version_is_told_where_there_is_no_cli(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_PATH", "/nowhere/claude")
    code, out, _ = typed("--version")
    assert code == 0
    assert "Claude Code not found; `claude-kernel doctor` says what to do" in out
