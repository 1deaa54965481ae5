"""The README's and the docs' examples, run as they stand, with the loopback API behind the CLI."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.messages_api import MessagesApi
from support.model_script import find_prompt, tool_block
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


PAGES = [
    page.relative_to(ROOT).as_posix()
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if "```python\n" in page.read_text()
]


OUTLIERS = {"value": [{"name": "sold", "outliers": 1}]}


def answer_by_the_schema(request: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The guide asks for data of a type, which the stand-in cannot think of by itself."""
    asked = "StructuredOutput" in {tool.get("name") for tool in request.get("tools", [])}
    return [tool_block("StructuredOutput", OUTLIERS)] if asked and not find_prompt(request).result else None


@pytest.mark.parametrize("name", PAGES)
def test_every_example_runs(
    name: str, cli_env: dict[str, str], messages_api: MessagesApi, project: Path, request: pytest.FixtureRequest
) -> None:
    messages_api.script(answer_by_the_schema)
    request.addfinalizer(lambda: messages_api.script(None))
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
    if "What does this project do?" in "".join(examples):
        assert "You said: What does this project do?" in done.stdout
