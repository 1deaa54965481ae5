"""A kernel on the real CLI, for each test its own or one for a whole file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.kernels import Client, running_kernel, write_spec
from support.real_cli import cli_path


@pytest.fixture
def kernel_env(cli_env: dict[str, str]) -> dict[str, str]:
    return cli_env | {"CLAUDE_CODE_PATH": str(cli_path())}


@pytest.fixture
def kernel(kernel_env: dict[str, str], project: Path, tmp_path: Path) -> Iterator[Client]:
    with running_kernel(write_spec(tmp_path / "jupyter"), kernel_env, project) as client:
        yield client
