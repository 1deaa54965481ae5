"""How many messages a second come from the CLI's stdout as typed events.

Against: claude-agent-sdk's client on the same child, and a bare pipe with typed msgspec and nothing else.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec

from benchmarks.children import COMMAND, scratch, streaming, write_launcher
from benchmarks.rows import Effort, Row, in_turn, ratio
from claude_kernel.cli import Options
from claude_kernel.protocol import events
from claude_kernel.session import Session

DELTAS, CHARACTERS = 50_000, 16


class _Delta(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Event(msgspec.Struct):
    type: str = ""
    delta: _Delta | None = None


class _Line(msgspec.Struct):
    type: str
    event: _Event | None = None


class BarePipe:
    """The least that can be done: read, split, decode to types."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, "--include-partial-messages"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._decode = msgspec.json.Decoder(_Line).decode

    def turn(self, prompt: str) -> tuple[int, float]:
        """How many deltas came, and in how many seconds."""
        row = {"type": "user", "message": {"role": "user", "content": prompt}, "parent_tool_use_id": None}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        began, deltas, rest, decode = time.perf_counter(), 0, b"", self._decode
        self._process.stdin.write(msgspec.json.encode(row) + b"\n")
        descriptor = self._process.stdout.fileno()
        while True:
            *lines, rest = (rest + os.read(descriptor, 1 << 18)).split(b"\n")
            for line in lines:
                decoded = decode(line)
                if decoded.event is not None and decoded.event.delta is not None and decoded.event.delta.text:
                    deltas += 1
                elif decoded.type == "result":
                    return deltas, time.perf_counter() - began

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class OurSession:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._session = Session(Options(cli=COMMAND))
        self._loop.run_until_complete(self._session.start())

    def turn(self, prompt: str) -> tuple[int, float]:
        return self._loop.run_until_complete(self._turn(prompt))

    async def _turn(self, prompt: str) -> tuple[int, float]:
        """Deltas that wait together are handed on as one event, so they are counted by what they hold."""
        began, characters = time.perf_counter(), 0
        async for event in self._session.turn(prompt):
            if type(event) is events.TextStreamed:
                characters += len(event.text)
        return characters // CHARACTERS, time.perf_counter() - began

    def close(self) -> None:
        self._loop.run_until_complete(self._session.close())
        self._loop.close()


class SdkClient:
    """As its documentation shows it, with partial messages on, since without them nothing streams."""

    def __init__(self, folder: Path) -> None:
        from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient

        self._loop = asyncio.new_event_loop()
        options = ClaudeAgentOptions(cli_path=str(write_launcher(folder)), include_partial_messages=True)
        self._client = ClaudeSDKClient(options)
        self._loop.run_until_complete(self._client.connect())

    def turn(self, prompt: str) -> tuple[int, float]:
        return self._loop.run_until_complete(self._turn(prompt))

    async def _turn(self, prompt: str) -> tuple[int, float]:
        from claude_agent_sdk import StreamEvent

        began, deltas = time.perf_counter(), 0
        await self._client.query(prompt)
        async for message in self._client.receive_response():
            if isinstance(message, StreamEvent) and message.event["type"] == "content_block_delta":
                deltas += 1
        return deltas, time.perf_counter() - began

    def close(self) -> None:
        self._loop.run_until_complete(self._client.disconnect())
        self._loop.close()


def measure_pipe(effort: Effort) -> Iterator[Row]:
    with scratch() as folder:
        text = folder / "words.md"
        text.write_text("sixteen letters " * DELTAS)  # as one line under the client's limit of 1 MiB
        prompt = streaming(text, piece=CHARACTERS)
        with ExitStack() as open_sides:
            sides = (
                open_sides.enter_context(closing(OurSession())),
                open_sides.enter_context(closing(SdkClient(folder))),
                open_sides.enter_context(closing(BarePipe())),
            )
            for side in sides:
                side.turn(prompt)  # the child makes its rows

            def rate_of(side: OurSession | SdkClient | BarePipe) -> float:
                deltas, seconds = side.turn(prompt)
                if deltas != DELTAS:
                    raise RuntimeError(f"{type(side).__name__} saw {deltas} of {DELTAS} deltas")
                return deltas / seconds

            ours, sdk, bare = in_turn(effort.rounds(9), *(lambda side=side: rate_of(side) for side in sides))
    details = {"messages_per_second": {"ours": ours, "claude-agent-sdk": sdk, "bare pipe": bare}, "deltas": DELTAS}
    what = "Messages a second, CLI to events"
    yield Row(what, "`claude-agent-sdk` on the same child", ratio(ours, sdk), "×", 5, at_least=True, details=details)
    yield Row(what, "a bare pipe with typed msgspec", ratio(ours, bare), "×", 0.5, at_least=True, details=details)
