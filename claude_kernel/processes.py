"""Ending a process and everything it started. It knows pids and signals, and nothing of what they run.

A process group is not enough: the CLI starts each shell command in a session of its own, and a command outlives a CLI
that was killed, as a child of init. So a tree is what descends from the root, and also whatever carries the root's
marker in its environment, which children inherit wherever they end up.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable

import psutil

MARKER = "CLAUDE_KERNEL_PROCESS"


def find_tree(root: int | None, marker: str) -> list[psutil.Process]:
    """The root and all that it started, wherever they are now; never this process itself."""
    found: dict[int, psutil.Process] = {}
    if root is not None:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(root)
            if _carries(process, marker) is not False:  # else the pid has been given to somebody else
                for member in (process, *process.children(recursive=True)):
                    found[member.pid] = member
    for process in psutil.process_iter():
        if process.pid not in found and _carries(process, marker):
            found[process.pid] = process
    found.pop(os.getpid(), None)
    return list(found.values())


def _carries(process: psutil.Process, marker: str) -> bool | None:
    """`None` where the system does not let us see."""
    try:
        return bool(process.environ().get(MARKER) == marker)
    except psutil.NoSuchProcess:
        return False
    except (psutil.Error, OSError):
        return None


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def terminate(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.terminate()


def kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()


def end_tree(root: int | None, marker: str, grace_seconds: float = 2.0) -> None:
    """TERM to the whole tree, then KILL to what is left. Blocks until it is gone, a little over the grace at most."""
    tree = find_tree(root, marker)
    terminate(tree)
    _wait_until_gone(tree, grace_seconds)
    left = [process for process in tree if is_alive(process)]
    left += [process for process in find_tree(None, marker) if process.pid not in {known.pid for known in left}]
    kill(left)
    _wait_until_gone(left, 1.0)


def _wait_until_gone(processes: list[psutil.Process], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(is_alive(process) for process in processes):
        time.sleep(0.02)
