"""`run_python` in IPython's own shell, without a kernel."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from claude_kernel.tools.running import PythonRunner


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    config = Config()
    config.HistoryManager.enabled = False
    make: Any = InteractiveShell
    return make(config=config)


def test_code_that_was_asked_for_before_the_stop_does_not_start_after_it(shell: Any) -> None:
    async def scene() -> None:
        runner = PythonRunner(shell)
        assert (await runner.run("made = 1")).failed is False
        runner.stop()
        late = await runner.run("made = 2")
        assert (late.failed, late.text) == (True, "It was interrupted.")
        assert shell.user_ns["made"] == 1
        runner.begin()
        assert (await runner.run("made = 3")).failed is False
        assert shell.user_ns["made"] == 3

    asyncio.run(scene())


def test_a_stop_between_two_steps_of_the_loop_finds_the_code_too(shell: Any) -> None:
    async def scene() -> None:
        runner = PythonRunner(shell)
        running = asyncio.create_task(runner.run("made = 1"))
        await asyncio.sleep(0)
        assert runner.running
        runner.start_no_more()
        assert (await running).failed
        assert "made" not in shell.user_ns
        assert not runner.running

    asyncio.run(scene())


def test_code_that_waits_is_stopped_where_it_waits(shell: Any) -> None:
    async def scene() -> None:
        runner = PythonRunner(shell)
        begun = asyncio.Event()
        shell.user_ns["begun"] = begun
        running = asyncio.create_task(runner.run("import asyncio\nbegun.set()\nawait asyncio.sleep(100)"))
        await begun.wait()
        runner.stop()
        assert (await running).failed

    asyncio.run(scene())
