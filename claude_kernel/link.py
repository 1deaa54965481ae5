"""One CLI process as the session sees it: a transport and a connection joined, and our requests awaiting answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import tempfile
from collections.abc import Callable
from typing import Any

from claude_kernel.cli import Options, build_arguments, build_environment, find_cli
from claude_kernel.protocol import Connection, events, find_dialect
from claude_kernel.transport import Transport

log = logging.getLogger("claude_kernel.wire")
_LOGGED = 400


class Link:
    """A process and its protocol state. `on_events` is called on the loop's thread, and must only queue."""

    def __init__(self, options: Options, on_events: Callable[[Link, list[events.Event]], None]) -> None:
        self.options = options
        self.connection = Connection(find_dialect(options.dialect), line_limit=options.line_limit)
        self.initialised: events.Initialised | None = None
        self.start_error = ""
        """What the CLI gave as the reason for not starting (scene `resume_unknown`)."""
        self.last_heard = 0.0
        self.ended = False
        self._on_events = on_events
        self._transport: Transport | None = None
        self._answers: dict[str, asyncio.Future[events.RequestAnswered]] = {}
        self._mcp_config: str | None = None
        self._cwd = os.path.abspath(os.path.expanduser(options.cwd))

    async def open(self, sdk_servers: tuple[str, ...]) -> None:
        """Starts the process. It is not initialised yet."""
        command = find_cli(self.options.cli, build_environment(self.options))
        self._write_mcp_config(sdk_servers)
        arguments = build_arguments(self.options, self.connection.dialect, mcp_config=self._mcp_config)
        log.debug("= %s %s", command[0], " ".join(arguments)[:_LOGGED])
        self._touch()
        try:
            self._transport = await Transport.spawn(
                [*command, *arguments],
                cwd=self._cwd,
                environment=build_environment(self.options),
                on_data=self._received,
            )
        except BaseException:
            self.discard_mcp_config()
            raise

    def send(self, line: bytes) -> None:
        if line and self._transport is not None:
            log.debug("> %s", line[:_LOGGED])
            self._transport.write(line)

    def request(self, subtype: str, **fields: Any) -> asyncio.Future[events.RequestAnswered]:
        request_id, line = self.connection.request(subtype, **fields)
        return self._expect(request_id, line)

    def interrupt(self) -> asyncio.Future[events.RequestAnswered]:
        request_id, line = self.connection.interrupt()
        return self._expect(request_id, line)

    def pause(self) -> None:
        if self._transport is not None:
            self._transport.pause()

    def resume(self) -> None:
        if self._transport is not None:
            self._transport.resume()

    @property
    def pid(self) -> int | None:
        return self._transport.pid if self._transport else None

    @property
    def exit_code(self) -> int | None:
        return self._transport.exit_code if self._transport else None

    @property
    def stderr_tail(self) -> str:
        return self._transport.stderr_tail if self._transport else ""

    async def close(self, *, grace_seconds: float) -> None:
        self.discard_mcp_config()
        if self._transport is not None:
            await self._transport.close(grace_seconds=grace_seconds)

    async def wait_exit(self, seconds: float) -> None:
        if self._transport is not None:
            await self._transport.wait_exit(seconds)

    def kill_now(self) -> None:
        self.discard_mcp_config()
        if self._transport is not None:
            self._transport.kill_now()

    def _expect(self, request_id: str, line: bytes) -> asyncio.Future[events.RequestAnswered]:
        answer: asyncio.Future[events.RequestAnswered] = asyncio.get_running_loop().create_future()
        self._answers[request_id] = answer
        self.send(line)
        if self.ended:  # a CLI that exits at once is gone before it can be asked
            self._settle(events.RequestAnswered(request_id, subtype="", error="Claude Code ended"))
        return answer

    def _received(self, data: bytes) -> None:
        self._touch()
        if log.isEnabledFor(logging.DEBUG):
            log.debug("< %s", data[:_LOGGED])
        happened = self.connection.receive_data(data)
        self.send(self.connection.bytes_to_send())
        for event in happened:
            kind = type(event)
            if kind is events.RequestAnswered:
                self._settle(event)  # type: ignore[arg-type]  # narrowed by `kind`, which mypy does not follow
            elif kind is events.Initialised:
                self.initialised = event  # type: ignore[assignment]  # likewise
                self.discard_mcp_config()
        if not data:
            self.ended = True
        self._on_events(self, happened)

    def _settle(self, answered: events.RequestAnswered) -> None:
        waiting = self._answers.pop(answered.request_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answered)

    def _touch(self) -> None:
        self.last_heard = asyncio.get_running_loop().time()

    def _write_mcp_config(self, sdk_servers: tuple[str, ...]) -> None:
        """Server settings may hold keys: a file that only we can read, gone as soon as the CLI has read it."""
        servers = dict(self.options.mcp_servers)
        servers.update({name: {"type": "sdk", "name": name} for name in sdk_servers})
        if not servers:
            return
        descriptor, self._mcp_config = tempfile.mkstemp(prefix="claude-kernel-", suffix=".json")
        with os.fdopen(descriptor, "w") as file:
            json.dump({"mcpServers": servers}, file)

    def discard_mcp_config(self) -> None:
        if self._mcp_config is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._mcp_config)
            self._mcp_config = None
