"""Whatever way our process dies, five seconds later nothing that it started is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from support.talk import child, is_gone, wait_until

HOST = """
import asyncio, os, sys
from claude_kernel.cli import Options
from claude_kernel.session import Session

async def main():
    session = Session(Options(cli=tuple(sys.argv[1:])))
    async for event in session.turn("misbehave"):
        if type(event).__name__ == "TurnEnded":
            print(session.pid, event.text.split()[-1], flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def _start_host() -> tuple[subprocess.Popen[str], int, int]:
    """A process of ours with a child that has started a command in a session of its own."""
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, *child("misbehaving_child", "--fault=grandchild")],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent,
        start_new_session=True,
    )
    assert host.stdout is not None
    cli, command = map(int, host.stdout.readline().split())
    return host, cli, command


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_host_that_is_killed_takes_the_cli_and_its_commands_along(number: signal.Signals) -> None:
    host, cli, command = _start_host()
    host.send_signal(number)
    host.wait()
    assert host.stdout is not None
    host.stdout.close()
    assert wait_until(lambda: is_gone(cli) and is_gone(command), seconds=5)


def test_a_host_and_a_cli_killed_together_still_leave_no_command() -> None:
    """The command is then a child of init, in a session of its own: only its environment tells whose it was."""
    host, cli, command = _start_host()
    os.kill(cli, signal.SIGKILL)
    host.kill()
    host.wait()
    assert host.stdout is not None
    host.stdout.close()
    assert wait_until(lambda: is_gone(cli) and is_gone(command), seconds=5)


def test_a_forked_worker_that_holds_the_pipe_does_not_keep_the_guard_waiting() -> None:
    host, cli, command = _start_host()
    assert host.stdout is not None
    guard = next(
        process for process in psutil.Process(host.pid).children() if "guard.py" in " ".join(process.cmdline())
    )
    # Stands for a fork of the host: another process with the guard's stdin open for writing.
    with Path(f"/proc/{guard.pid}/fd/0").open("w") as pipe:
        holder = subprocess.Popen(["sleep", "60"], stdin=pipe)
    try:
        host.kill()
        host.wait()
        host.stdout.close()
        assert wait_until(lambda: is_gone(cli) and is_gone(command), seconds=5)
    finally:
        holder.kill()
        holder.wait()


def test_the_guard_is_small_and_ends_with_its_host() -> None:
    host, _cli, _command = _start_host()
    assert host.stdout is not None
    guard = next(
        process for process in psutil.Process(host.pid).children() if "guard.py" in " ".join(process.cmdline())
    )
    assert guard.memory_info().rss < 16 << 20
    host.kill()
    host.wait()
    host.stdout.close()
    assert wait_until(lambda: is_gone(guard.pid), seconds=6)
