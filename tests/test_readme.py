"""The README's and the docs' examples, run as they stand, with the loopback API behind the CLI."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest
from support.real_cli import cli_path

pytestmark = pytest.mark.real_cli

ROOT = Path(__file__).parent.parent


def _examples(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


@pytest.mark.parametrize("name", ["README.md", "docs/python-api.md"])
def test_every_example_runs(
    name: str,
    cli_env: dict[str, str],
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for variable in os.environ:
        if variable.startswith(("ANTHROPIC_", "CLAUDE")):
            monkeypatch.delenv(variable)
    for variable, value in cli_env.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("CLAUDE_CODE_PATH", str(cli_path()))
    monkeypatch.chdir(project)
    examples = _examples(name)
    assert examples
    for example in examples:
        code = compile(example, name, "exec", flags=0x2000)  # PyCF_ALLOW_TOP_LEVEL_AWAIT, as in a notebook cell
        awaitable = eval(code, {})
        if awaitable is not None:
            asyncio.run(awaitable)
    assert "You said: What does this project do?" in capsys.readouterr().out
