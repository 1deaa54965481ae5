"""What a kernel holds, in a long conversation and beside many others.

Against: the same kernel after ten turns; as many stock Python kernels.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
from support.kernels import Client

from benchmarks.answers import run_prompt
from benchmarks.children import claude_kernel, scratch, stock_kernel, streaming, write_prose
from benchmarks.rows import Effort, Row, in_turn, ratio

MIB = 1 << 20
TURNS = 1_000
SAMPLE = 60
"""Turns in the old and in a young kernel, in turn, whose times are compared."""
CHARACTERS = 1_500
KERNELS = 50
CLI = "child.py"
BUSY = "import time; print('working', flush=True); time.sleep(600)"


def measure_long_conversation(effort: Effort) -> Iterator[Row]:
    turns = effort.rounds(TURNS)
    with scratch() as folder:
        prompt = streaming(write_prose(folder, CHARACTERS))
        with _kernel_after(10, prompt, folder / "old") as old:
            kernel = psutil.Process(old.pid)
            before = kernel.memory_info().rss
            for _ in range(turns - 10):
                run_prompt(old, prompt)
            grown = (kernel.memory_info().rss - before) / MIB
            with _kernel_after(10, prompt, folder / "young") as young:
                late, early = in_turn(
                    effort.rounds(SAMPLE),
                    lambda: run_prompt(old, prompt).seconds,
                    lambda: run_prompt(young, prompt).seconds,
                )
    details = {"turns": turns, "seconds": {"old": late, "young": early}, "grown_mib": grown}
    yield Row(f"Memory that {turns:,} turns add", "after 10 turns", grown, "MB", 20, details=details)
    what = f"Time of a turn after {turns:,} turns"
    yield Row(what, "in a kernel after 10 turns", ratio(late, early), "×", 1.1, details=details)


@contextmanager
def _kernel_after(turns: int, prompt: str, folder: Path) -> Iterator[Client]:
    folder.mkdir()
    with claude_kernel(folder) as client:
        for _ in range(turns):
            run_prompt(client, prompt)
        yield client


def measure_many_kernels(effort: Effort) -> Iterator[Row]:
    count = effort.rounds(KERNELS)
    with scratch() as folder:
        stock = _memory_of(count, folder, stock=True)
        ours = _memory_of(count, folder, stock=False)
    more = (statistics.mean(ours) - statistics.mean(stock)) / MIB
    means = {"ours": statistics.mean(ours) / MIB, "stock": statistics.mean(stock) / MIB}
    details = {"kernels": count, "mean_mib": means}
    what = f"Memory that each of {count} kernels in a turn adds"
    yield Row(what, "a stock kernel", more, "MB", 20, details=details)


def _memory_of(count: int, folder: Path, *, stock: bool) -> list[float]:
    """Of each kernel and all it started but the CLI; shared pages are shared out."""
    with ExitStack() as running, ThreadPoolExecutor(4) as starting:

        def start(number: int) -> Client:
            place = folder / f"{'stock' if stock else 'ours'}-{number}"
            place.mkdir()
            return running.enter_context(stock_kernel(place) if stock else claude_kernel(place))

        clients = list(starting.map(start, range(count)))
        for client in clients:
            message_id = client.send(BUSY if stock else "bench:hold")
            _wait_for(client, message_id, "working")
        held = [_held_by(client.pid) for client in clients]
        for client in clients:  # nobody waits for these turns to end
            client.manager.shutdown_kernel(now=True)
    return held


def _wait_for(client: Client, message_id: str, word: str) -> None:
    for message in client.follow(message_id):
        content = message["content"]
        if word in str(content.get("text", "")) or word in str(content.get("data", {}).get("text/html", "")):
            return
    raise RuntimeError("the turn did not begin")


def _held_by(pid: int) -> float:
    kernel = psutil.Process(pid)
    held = 0.0
    for process in [kernel, *kernel.children(recursive=True)]:
        if not any(CLI in word for word in process.cmdline()):
            held += process.memory_full_info().pss
    return held
