"""Driving a session in a test: children as CLIs, a whole turn as a list, processes that must be gone."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import psutil

from claude_kernel.cli import Options
from claude_kernel.processes import MARKER
from claude_kernel.protocol import Prompt, events
from claude_kernel.session import Session, State

CHILDREN = Path(__file__).parent.parent / "children"
Result = TypeVar("Result")
E = TypeVar("E", bound=events.Event)


def run(work: Coroutine[Any, Any, Result], seconds: float = 30) -> Result:
    """`asyncio.run` that never hangs: a test that would is a test that failed."""

    async def bounded() -> Result:
        async with asyncio.timeout(seconds):
            return await work

    return asyncio.run(bounded())


def child(name: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-I", str(CHILDREN / f"{name}.py"), *arguments)


def faulty(fault: str, *arguments: str, **options: Any) -> Options:
    return Options(cli=child("misbehaving_child", f"--fault={fault}", *arguments), **options)


async def turn(session: Session, prompt: Prompt | str) -> list[events.Event]:
    return [event async for event in session.turn(prompt)]


async def until(session: Session, state: State) -> None:
    """The state is a view of what goes on, not something to await."""
    while session.state is not state:  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def ended(happened: list[events.Event]) -> events.TurnEnded:
    last = happened[-1]
    assert isinstance(last, events.TurnEnded)
    return last


def of(kind: type[E], happened: list[events.Event]) -> list[E]:
    return [event for event in happened if isinstance(event, kind)]


def text(happened: list[events.Event]) -> str:
    return "".join(event.text for event in of(events.TextStreamed, happened) if event.parent is None)


def marked_processes() -> list[psutil.Process]:
    """Every process that a transport of this very process started and that still lives."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get(MARKER, "").startswith(f"{os.getpid()}-")
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    """Waits for something outside this process; the deadline is only for a failing run."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def commands_under(pid: int, words: str) -> list[int]:
    """The processes that descend from `pid` and were started with these words."""
    found = []
    for process in psutil.Process(pid).children(recursive=True):
        try:
            if words in " ".join(process.cmdline()):
                found.append(process.pid)
        except psutil.Error:  # gone, or a zombie
            continue
    return found


def is_gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
