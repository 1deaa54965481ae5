"""Bytes to and from a child process, and its end. It has never heard of JSON.

The child gets a session of its own (Jupyter signals the kernel's whole process group, and SIGINT ends the CLI), its
stderr is always drained, and it is closed by a ladder: end of stdin, TERM, KILL, each on the whole tree.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import uuid
from collections.abc import Callable, Sequence
from typing import cast

from claude_kernel.errors import CliNotStarted
from claude_kernel.guard import current_guard
from claude_kernel.processes import MARKER, end_tree, find_tree

STDERR_TAIL = 16 * 1024
_EOF_AFTER_EXIT_SECONDS = 0.5
_PIPE_BYTES = 1 << 20


def _check_folder(cwd: str) -> None:
    if not os.path.isdir(cwd):
        raise CliNotStarted(f"The folder {cwd} does not exist. Choose another working folder.")
    if not os.access(cwd, os.R_OK | os.X_OK):
        raise CliNotStarted(f"The folder {cwd} cannot be read. Choose another, or mend its permissions.")


def _widen(pipe: asyncio.ReadTransport) -> None:
    """The child need not wait while this side is busy. Only Linux can, and up to what it allows its users."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe.get_extra_info("pipe"), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


class _Pipes(asyncio.SubprocessProtocol):
    """asyncio's side: hands stdout on as it comes, keeps the tail of stderr."""

    def __init__(self, on_data: Callable[[bytes], None]) -> None:
        self._on_data = on_data
        self._loop = asyncio.get_running_loop()
        self._stdout_open = True
        self.tail = bytearray()
        self.exited: asyncio.Future[None] = self._loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            if self._stdout_open:
                self._on_data(data)
        else:
            self.tail += data
            del self.tail[:-STDERR_TAIL]

    def pipe_connection_lost(self, fd: int, _exc: Exception | None) -> None:
        if fd == 1:
            self.end_stdout()

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)
        # A grandchild may hold the pipe open for ever; what the CLI itself wrote is read well before this.
        self._loop.call_later(_EOF_AFTER_EXIT_SECONDS, self.end_stdout)

    def end_stdout(self) -> None:
        if self._stdout_open:
            self._stdout_open = False
            self._on_data(b"")


class Transport:
    """A running child. Made by `spawn`; `on_data` gets its stdout, and `b""` once at the end."""

    def __init__(self, process: asyncio.SubprocessTransport, pipes: _Pipes, marker: str) -> None:
        self._process = process
        self._pipes = pipes
        self._marker = marker
        self._closing: asyncio.Task[None] | None = None
        self.pid = process.get_pid()
        current_guard().watch(self.pid, marker)

    @classmethod
    async def spawn(
        cls, command: Sequence[str], *, cwd: str, environment: dict[str, str], on_data: Callable[[bytes], None]
    ) -> Transport:
        current_guard()  # before the child, so that there is no moment in which nobody watches
        marker = f"{os.getpid()}-{uuid.uuid4()}"
        loop = asyncio.get_running_loop()
        _check_folder(cwd)
        try:
            process, pipes = await loop.subprocess_exec(
                lambda: _Pipes(on_data),
                *command,
                cwd=cwd,
                env={**environment, MARKER: marker},
                start_new_session=True,
            )
        except OSError as error:
            raise CliNotStarted(f"{command[0]} could not be started in {cwd}: {error.strerror or error}") from error
        transport = cls(process, pipes, marker)
        transport._stdout(_widen)
        return transport

    @property
    def exit_code(self) -> int | None:
        return self._process.get_returncode()

    @property
    def stderr_tail(self) -> str:
        return self._pipes.tail.decode("utf-8", "replace")

    def write(self, data: bytes) -> None:
        """Queues whole lines; a child that has gone takes nothing, which shows as the end of its stdout."""
        stdin = self._stdin()
        if data and stdin is not None and not stdin.is_closing():
            stdin.write(data)

    def pause(self) -> None:
        self._stdout(lambda pipe: pipe.pause_reading())

    def resume(self) -> None:
        self._stdout(lambda pipe: pipe.resume_reading())

    async def wait_exit(self, seconds: float) -> bool:
        done, _ = await asyncio.wait({self._pipes.exited}, timeout=seconds)
        return bool(done)

    async def close(self, *, grace_seconds: float = 1.0, term_seconds: float = 2.0) -> None:
        """The ladder. Safe to call twice, and from several tasks: there is one climb."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._climb(grace_seconds, term_seconds))
        await asyncio.shield(self._closing)

    async def _climb(self, grace_seconds: float, term_seconds: float) -> None:
        try:
            stdin = self._stdin()
            if stdin is not None:
                stdin.close()
            if not await self.wait_exit(grace_seconds) or await self._left_something():
                await asyncio.to_thread(end_tree, self.pid, self._marker, term_seconds)
                await self.wait_exit(1.0)
        finally:
            current_guard().forget(self.pid)
            self._pipes.end_stdout()
            self._process.close()
            with contextlib.suppress(ProcessLookupError):
                # asyncio's own close sends KILL to a child that is still there; give it the turn to notice.
                await asyncio.sleep(0)

    async def _left_something(self) -> bool:
        return bool(await asyncio.to_thread(find_tree, None, self._marker))

    def kill_now(self) -> None:
        """Without waiting and without a loop: for an interpreter that is going down."""
        end_tree(self.pid, self._marker, grace_seconds=0.5)

    def _stdin(self) -> asyncio.WriteTransport | None:
        return cast("asyncio.WriteTransport | None", self._process.get_pipe_transport(0))

    def _stdout(self, act: Callable[[asyncio.ReadTransport], None]) -> None:
        pipe = cast("asyncio.ReadTransport | None", self._process.get_pipe_transport(1))
        if pipe is not None and not pipe.is_closing():
            act(pipe)
