"""Drives the real CLI through one scene and writes down every line that passed, free of this machine's particulars.

It must not know what a scene is about (that is `scripts/record`), nor the kernel's own code: a recording has to stay
evidence about the CLI, whatever the kernel believes.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from support.messages_api import MessagesApi
from support.real_cli import cli_environment, cli_path

Json = dict[str, Any]
Reply = Callable[[Json], Json | None]

BASE_ARGUMENTS = (
    "--output-format",
    "stream-json",
    "--input-format",
    "stream-json",
    "--verbose",
    "--permission-prompt-tool",
    "stdio",
)
SILENCE_SECONDS = 60.0


def allow(request: Json, **changes: Any) -> Json:
    return {"behavior": "allow", "updatedInput": request["input"], **changes, "toolUseID": request["tool_use_id"]}


def deny(request: Json, message: str) -> Json:
    return {"behavior": "deny", "message": message, "toolUseID": request["tool_use_id"]}


def allow_all(request: Json) -> Json | None:
    return allow(request) if request["subtype"] == "can_use_tool" else None


class Scene:
    """One transcript: a fresh home, a project, and as many runs of the CLI as the scene needs."""

    def __init__(self, home: Path, api: MessagesApi, *, whole_lists: bool = True) -> None:
        self.home = home
        self._whole_lists = whole_lists
        self.project = home / "project"
        self.project.mkdir(parents=True)
        self.api = api
        self._rows: list[Json] = []

    def start(self, *arguments: str, env: dict[str, str] | None = None, **initialize: Any) -> CliRun:
        self._rows.append(
            {"t": 0.0, "dir": "=", "m": {"argv": ["claude", *BASE_ARGUMENTS, *arguments], "env": env or {}}}
        )
        environment = {**cli_environment(self.home, self.api.url), **(env or {})}
        return CliRun(self._rows, [*BASE_ARGUMENTS, *arguments], environment, self.project, initialize)

    def lines(self) -> str:
        """The transcript; refused where a streamed text spells the home in pieces, which no replacement could find."""
        streamed = "".join(_delta_text(row) for row in self._rows)
        if str(self.home) in streamed:
            raise ValueError("a streamed answer holds the home's path: let the scene end with words of its own")
        rows = self._rows if self._whole_lists else [_trim(row) for row in self._rows]
        return "".join(self._normalise(json.dumps(row, ensure_ascii=False)) + "\n" for row in rows)

    def _normalise(self, line: str) -> str:
        home = str(self.home)
        host = self.api.url.removeprefix("http://")
        slug = re.sub(r"[^A-Za-z0-9]", "-", home)
        line = line.replace(home, "/home/me").replace(slug, "-home-me").replace(host, "127.0.0.1:8000")
        line = re.sub(rf"claude-{os.getuid()}\b", "claude-1000", line)
        line = re.sub(r"cc-socks/\d+\.sock", "cc-socks/4242.sock", line)
        return re.sub(r'"pid": \d+', '"pid": 4242', line)


def _delta_text(row: Json) -> str:
    if row["dir"] != "<" or row["m"].get("type") != "stream_event":
        return ""
    delta = row["m"]["event"].get("delta", {})
    return str(delta.get("text") or delta.get("partial_json") or "")


def _trim(row: Json) -> Json:
    """Cuts the static lists of an `initialize` response: they are the same in every scene, and most of its size."""
    if row["dir"] != "<" or row["m"].get("type") != "control_response":
        return row
    body = row["m"]["response"].get("response")
    if not isinstance(body, dict) or "commands" not in body:
        return row
    cut = {name: body[name][:3] for name in ("commands", "agents", "models") if name in body}
    return {**row, "m": {**row["m"], "response": {**row["m"]["response"], "response": {**body, **cut}}}}


class CliRun:
    """One process. `reply` answers the CLI's control requests; where it returns None the request stays open."""

    def __init__(
        self, rows: list[Json], arguments: list[str], environment: dict[str, str], folder: Path, initialize: Json
    ) -> None:
        self.reply: Reply = allow_all
        self.open: list[Json] = []
        self.session_id = ""
        self._rows = rows
        self._began = time.monotonic()
        self._inbox: queue.Queue[Json | None] = queue.Queue()
        self._process = subprocess.Popen(
            [str(cli_path()), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
            text=True,
            encoding="utf-8",
        )
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._read, self._read_errors)]
        for thread in self._threads:
            thread.start()
        self.initialize_id = self.request("initialize", **initialize)

    def _record(self, direction: str, message: Any) -> None:
        self._rows.append({"t": round(time.monotonic() - self._began, 3), "dir": direction, "m": message})

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            message = json.loads(line)
            self._record("<", message)
            self._inbox.put(message)
        self._inbox.put(None)

    def _read_errors(self) -> None:
        assert self._process.stderr
        for line in self._process.stderr:
            self._record("!", line.rstrip("\n"))

    def write_line(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def send(self, message: Json) -> None:
        self._record(">", message)
        self.write_line(json.dumps(message))

    def request(self, subtype: str, **fields: Any) -> str:
        request_id = uuid4().hex[:8]
        self.send({"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}})
        return request_id

    def ask(self, subtype: str, **fields: Any) -> Json:
        return self.answer_to(self.request(subtype, **fields))

    def ready(self) -> Json:
        """The answer to `initialize`."""
        return self.answer_to(self.initialize_id)

    def answer_to(self, request_id: str) -> Json:
        def is_answer(row: Json) -> bool:
            return row.get("type") == "control_response" and row["response"]["request_id"] == request_id

        response: Json = self.until(is_answer)["response"]
        return response

    def answer(self, question: Json, response: Json) -> None:
        body = {"subtype": "success", "request_id": question["request_id"], "response": response}
        self.send({"type": "control_response", "response": body})

    def say(self, content: str | list[Json], *, uuid: bool = True) -> str:
        identity = str(uuid4())
        message: Json = {"type": "user", "session_id": "", "message": {"role": "user", "content": content}}
        message["parent_tool_use_id"] = None
        if uuid:
            message["uuid"] = identity
        self.send(message)
        return identity

    def prompt(self, content: str | list[Json], *, uuid: bool = True) -> Json:
        """Says it and waits for the turn's end: with a uuid until the CLI calls it over, else until a result."""
        identity = self.say(content, uuid=uuid)
        result = self.until(lambda row: row.get("type") == "result" and not row.get("origin"))
        if uuid and self._process.poll() is None:
            self.until_ended(identity)
        return result

    def until_ended(self, identity: str) -> Json:
        """A turn that failed or was interrupted ends as `cancelled`, every other one as `completed`."""

        def is_end(row: Json) -> bool:
            return row.get("command_uuid") == identity and row.get("state") in ("completed", "cancelled")

        return self.until(is_end)

    def until(self, wanted: Callable[[Json], bool]) -> Json:
        """Reads on, answering what `reply` answers, up to the row that `wanted` takes; {} when stdout ends first."""
        while True:
            row = self._inbox.get(timeout=SILENCE_SECONDS)
            if row is None:
                self._inbox.put(None)
                return {}
            self.session_id = row.get("session_id") or self.session_id
            if row.get("type") == "control_request":
                self._consider(row)
            if wanted(row):
                return row

    def _consider(self, question: Json) -> None:
        response = self.reply(question["request"])
        if response is None:
            self.open.append(question)
        elif "error" in response:
            body = {"subtype": "error", "request_id": question["request_id"], **response}
            self.send({"type": "control_response", "response": body})
        else:
            self.answer(question, response)

    def finish(self) -> int:
        """Ends stdin, reads to the end and records how the process left."""
        assert self._process.stdin
        # One that has left already tells so by its exit code.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self.until(lambda _: False)
        code = self._process.wait(SILENCE_SECONDS)
        for thread in self._threads:
            thread.join()
        self._record("=", {"exit": code})
        for stream in (self._process.stdout, self._process.stderr):
            assert stream
            stream.close()
        return code
