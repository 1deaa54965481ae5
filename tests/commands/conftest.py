"""A person with a home of their own, who types `claude-kernel …`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from commands.keyboard import Program, Said, Typed

from claude_kernel.commands import main

TRANSCRIPTS = Path(__file__).parent.parent / "transcripts"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the developer's own is seen: no login, no proxy, no settings, no Jupyter folder, no `claude`."""
    for name in [*os.environ]:
        if name.startswith(("ANTHROPIC_", "CLAUDE", "JUPYTER", "NODE_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    home = tmp_path.resolve() / "home"
    (home / "bin").mkdir(parents=True)
    for name in ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(home if name == "HOME" else home / name.lower()))
    monkeypatch.setenv("PATH", f"{home / 'bin'}:/usr/bin:/bin")
    return home


@pytest.fixture
def folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = home / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def typed(folder: Path, capsys: pytest.CaptureFixture[str]) -> Typed:  # noqa: ARG001 - where it is typed
    def type_words(*words: str) -> Said:
        try:
            code = main(words)
        except SystemExit as left:
            code = int(left.code or 0)
        return Said(code, *capsys.readouterr())

    return type_words


@pytest.fixture
def program(home: Path) -> Program:
    def write(name: str, code: str) -> Path:
        path = home / "bin" / name
        path.write_text(f"#!{sys.executable} -I\n{code}")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def claude_without_login(program: Program) -> Path:
    """Answers `--version` and `initialize` as the real CLI was recorded to without a login, and nothing else."""
    rows = [json.loads(line) for line in (TRANSCRIPTS / "not_logged_in.jsonl").read_text().splitlines()]
    answer = next(row["m"] for row in rows if row["m"].get("type") == "control_response")
    code = f"""
import json, sys
if sys.argv[1:] == ["--version"]:
    sys.exit(print("2.1.326 (Claude Code)"))
answer = json.loads({json.dumps(answer)!r})
for line in sys.stdin:
    row = json.loads(line)
    if row.get("type") == "control_request":
        answer["response"]["request_id"] = row["request_id"]
        print(json.dumps(answer), flush=True)
"""
    return program("claude", code)
