"""A kernel on the real CLI, and the people who sit before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prompts.person import Person
from support.kernels import running_kernel, write_spec
from support.real_cli import cli_path


@pytest.fixture
def kernel_env(cli_env: dict[str, str]) -> dict[str, str]:
    return cli_env | {"CLAUDE_CODE_PATH": str(cli_path())}


@pytest.fixture
def person(kernel_env: dict[str, str], project: Path, tmp_path: Path) -> Iterator[Person]:
    """At a front end that shows widgets and clicks by comm message."""
    with running_kernel(write_spec(tmp_path / "jupyter"), kernel_env, project) as client:
        yield Person(client)
