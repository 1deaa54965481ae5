"""The two faces, so that each scenario runs for both: the Claude kernel, and `%%claude` in a stock Python kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from prompts.person import Person
from support.kernels import running_kernel, write_spec, write_stock_spec
from support.real_cli import cli_path


@dataclass
class Face:
    """A person at one of the faces, and how a prompt and Python code are written there."""

    name: str
    person: Person

    def prompt(self, text: str, options: str = "") -> str:
        return text if self.name == "kernel" else f"%%claude {options}\n{text}"

    def python(self, code: str) -> str:
        return f"%%python\n{code}" if self.name == "kernel" else code


@pytest.fixture
def kernel_env(cli_env: dict[str, str]) -> dict[str, str]:
    return cli_env | {"CLAUDE_CODE_PATH": str(cli_path())}


@pytest.fixture
def magic(kernel_env: dict[str, str], project: Path, tmp_path: Path) -> Iterator[Face]:
    with running_kernel(write_stock_spec(tmp_path / "jupyter"), kernel_env, project, "python3") as client:
        face = Face("magic", Person(client))
        assert client.run("%load_ext claude_kernel").reply["status"] == "ok"
        yield face


@pytest.fixture(params=["kernel", "magic"])
def face(request: pytest.FixtureRequest, kernel_env: dict[str, str], project: Path, tmp_path: Path) -> Iterator[Face]:
    if request.param == "magic":
        yield request.getfixturevalue("magic")
        return
    with running_kernel(write_spec(tmp_path / "jupyter"), kernel_env, project) as client:
        yield Face("kernel", Person(client))
