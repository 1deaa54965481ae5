"""The transport with plain programs as children: it carries bytes and has never heard of JSON."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from support.talk import is_gone, run

from claude_kernel.errors import CliNotStarted
from claude_kernel.transport import STDERR_TAIL, Transport


async def _spawn(code: str, received: list[bytes], ended: asyncio.Event, cwd: str = ".") -> Transport:
    def on_data(data: bytes) -> None:
        received.append(data)
        if not data:
            ended.set()

    return await Transport.spawn([sys.executable, "-c", code], cwd=cwd, environment={}, on_data=on_data)


def test_bytes_go_in_and_come_out_unchanged() -> None:
    async def scene() -> None:
        received: list[bytes] = []
        ended = asyncio.Event()
        transport = await _spawn("import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())", received, ended)
        sent = bytes(range(256)) * 4096
        transport.write(sent)
        await transport.close(grace_seconds=5)
        assert b"".join(received) == sent
        assert received.count(b"") == 1
        assert transport.exit_code == 0

    run(scene())


def test_the_tail_of_stderr_is_kept_and_no_more() -> None:
    async def scene() -> None:
        ended = asyncio.Event()
        code = "import sys; sys.stderr.write('x' * 5_000_000 + 'the end')"
        transport = await _spawn(code, [], ended)
        await ended.wait()
        assert await transport.wait_exit(5)
        await transport.close()
        assert transport.stderr_tail.endswith("the end")
        assert len(transport.stderr_tail) <= STDERR_TAIL

    run(scene())


def test_a_grandchild_that_holds_stdout_does_not_hide_the_end() -> None:
    async def scene() -> None:
        ended = asyncio.Event()
        code = "import subprocess; subprocess.Popen(['sleep', '60'])"
        transport = await _spawn(code, [], ended)
        async with asyncio.timeout(5):
            await ended.wait()
        await transport.close()

    run(scene())


def test_writing_to_a_child_that_has_gone_is_not_an_error() -> None:
    async def scene() -> None:
        ended = asyncio.Event()
        transport = await _spawn("pass", [], ended)
        await ended.wait()
        transport.write(b"too late\n" * 100_000)
        await transport.close()
        transport.write(b"later still\n")

    run(scene())


def test_a_child_has_a_session_of_its_own() -> None:
    async def scene() -> None:
        received: list[bytes] = []
        ended = asyncio.Event()
        transport = await _spawn("import os; print(os.getpid() == os.getsid(0))", received, ended)
        await ended.wait()
        await transport.close()
        assert b"".join(received).strip() == b"True"

    run(scene())


def test_closing_twice_at_once_is_one_climb() -> None:
    async def scene() -> int:
        transport = await _spawn("import time; time.sleep(60)", [], asyncio.Event())
        await asyncio.gather(transport.close(grace_seconds=0), transport.close(grace_seconds=0))
        return transport.pid

    assert is_gone(run(scene()))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere")
    with pytest.raises(CliNotStarted, match="nowhere"):
        run(_spawn("pass", [], asyncio.Event(), cwd=missing))


def test_a_program_that_cannot_be_run_is_named(tmp_path: Path) -> None:
    async def scene() -> None:
        await Transport.spawn([str(tmp_path / "claude")], cwd=".", environment={}, on_data=lambda _data: None)

    with pytest.raises(CliNotStarted, match="claude could not be started"):
        run(scene())
