"""A host killed with -9 while the real CLI runs a command: five seconds later neither is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.real_cli import cli_path
from support.talk import commands_under, is_gone, wait_until

pytestmark = pytest.mark.real_cli

HOST = """
import asyncio, json, sys
from claude_kernel import Allow, Options, Session

async def ask(question):
    return Allow()

async def main():
    session = Session(Options(inherit_environment=False, **json.loads(sys.argv[1])), ask=ask)
    await session.start()
    print(session.pid, flush=True)
    async for event in session.turn(sys.argv[2]):
        pass

asyncio.run(main())
"""
COMMAND = "python3 -c 'import time; time.sleep(97)'"


def test_neither_the_cli_nor_its_running_command_survives(cli_env: dict[str, str], project: Path) -> None:
    settings = {"cli": str(cli_path()), "cwd": str(project), "environment": cli_env}
    prompt = f"tool:Bash:{json.dumps({'command': COMMAND})}"
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, json.dumps(settings), prompt],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent.parent.parent,
    )
    assert host.stdout is not None
    cli = int(host.stdout.readline())
    assert wait_until(lambda: bool(commands_under(cli, "time.sleep(97)")))
    left = [cli, *commands_under(cli, "time.sleep(97)")]
    host.kill()
    host.wait()
    host.stdout.close()
    assert wait_until(lambda: all(map(is_gone, left)), seconds=5)
