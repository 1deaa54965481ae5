"""The README's and the docs' examples, run as they stand, with the loopback API behind the CLI."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.real_cli import cli_path

pytestmark = pytest.mark.real_cli

ROOT = Path(__file__).parent.parent


def _examples(name: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


# Each example is a cell of its own: IPython knows magics, and `await` outside of a function.
_RUN = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell

for cell in json.load(sys.stdin):
    InteractiveShell.instance().run_cell(cell).raise_error()
"""


@pytest.mark.parametrize("name", ["README.md", "docs/python-api.md"])
def test_every_example_runs(name: str, cli_env: dict[str, str], project: Path) -> None:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("ANTHROPIC_", "CLAUDE"))}
    environment = inherited | cli_env | {"CLAUDE_CODE_PATH": str(cli_path()), "PYTHONPATH": str(ROOT)}
    examples = _examples(name)
    assert examples
    done = subprocess.run(
        [sys.executable, "-c", _RUN],
        input=json.dumps(examples),
        capture_output=True,
        text=True,
        env=environment,
        cwd=project,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "You said: What does this project do?" in done.stdout
