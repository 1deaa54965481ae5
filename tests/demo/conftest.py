"""The demo as a bare process, for what no event of the engine tells. It must not know the engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

Json = dict[str, Any]
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def config(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo keeps its conversations here, and never those of a test in a developer's own folder."""
    folder = tmp_path_factory.mktemp("config")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder))
    return folder


class Run:
    """One process, asked one thing after another. `rows` is all that it wrote."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.rows: list[Json] = []
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "claude_kernel.demo", "--permission-mode=acceptEdits", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "CLAUDE_KERNEL_DEMO_PACE": "0", **environment},
        )  # fmt: skip

    @property
    def session_id(self) -> str:
        return next(str(row["session_id"]) for row in reversed(self.rows) if "session_id" in row)

    def begin(self, content: str | list[Json]) -> str:
        uuid = str(uuid4())
        self._send({"type": "user", "uuid": uuid, "message": {"role": "user", "content": content}})
        return uuid

    def prompt(self, content: str | list[Json]) -> tuple[str, Json, list[str]]:
        """The prompt's uuid, the result, and the uuids of the rows between them."""
        before, uuid = len(self.rows), self.begin(content)
        return uuid, *self.end(before)

    def end(self, before: int) -> tuple[Json, list[str]]:
        result = self._until(lambda row: row["type"] == "result")
        self._until(lambda row: row.get("state") == "completed")
        kinds = ("assistant", "user")
        return result, [row["uuid"] for row in self.rows[before:] if row["type"] in kinds]

    def say(self, text: str) -> str:
        return str(self.prompt(text)[1]["result"])

    def change(self, text: str) -> str:
        """The uuid of a prompt after which something has changed."""
        uuid, result, _ = self.prompt(text)
        assert not result["is_error"]
        return uuid

    def ask(self, subtype: str, **fields: Any) -> Json:
        """The inner answer; an error as `error`."""
        request_id = str(uuid4())
        self._send({"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}})
        response = self._until(lambda row: row["type"] == "control_response")["response"]
        assert response["request_id"] == request_id
        return response["response"] if response["subtype"] == "success" else {"error": response["error"]}

    def finish(self) -> tuple[int, str]:
        """Its exit code and what it said beside the rows."""
        rest, said = self._process.communicate(timeout=20)
        self.rows += [json.loads(line) for line in rest.splitlines()]
        return self._process.returncode, said

    def _send(self, row: Json) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(row) + "\n")
        self._process.stdin.flush()

    def _until(self, wanted: Callable[[Json], bool]) -> Json:
        assert self._process.stdout
        for line in self._process.stdout:
            self.rows.append(json.loads(line))
            if wanted(self.rows[-1]):
                return self.rows[-1]
        raise EOFError("the demo ended before that")


Start = Callable[..., Run]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the demo in `tmp_path` unless told otherwise, and ends what the test left running."""
    runs: list[Run] = []

    def start(*arguments: str, folder: Path = tmp_path, **environment: str) -> Run:
        runs.append(Run(folder, *arguments, **environment))
        return runs[-1]

    yield start
    for run in runs:
        run.finish()
