"""The whole run: every family in turn, then the table, the files and what was not reached. It measures nothing."""

from __future__ import annotations

import argparse
import os
import signal
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks import report
from benchmarks.answers import measure_answers
from benchmarks.latency import measure_latency
from benchmarks.memory import measure_long_conversation, measure_many_kernels
from benchmarks.page import measure_page
from benchmarks.peers import measure_peers
from benchmarks.pipe import measure_pipe
from benchmarks.rows import Effort, Family, Missing, Row
from benchmarks.starts import measure_first_prompt, measure_import, measure_kernel_start

FAMILIES: dict[str, Family] = {
    "pipe": measure_pipe,
    "answers": measure_answers,
    "latency": measure_latency,
    "import": measure_import,
    "start": measure_kernel_start,
    "first-prompt": measure_first_prompt,
    "conversation": measure_long_conversation,
    "page": measure_page,
    "peers": measure_peers,
    "kernels": measure_many_kernels,
}
LONGEST_SECONDS = 150
"""What a family may take before it is given up."""
LOG = report.ROOT / ".artifacts" / "bench.log"
MARK = "CLAUDE_KERNEL_BENCH"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measures speed and size. A whole run also writes the table into benchmarks/ and the README.",
        epilog="It exits with 0 even where a target is missed: it measures, the tests judge.",
    )
    parser.add_argument("row", nargs="*", metavar="ROW", help=f"only these: {', '.join(FAMILIES)}")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions; writes nothing")
    given = parser.parse_args(argv)
    unknown = [name for name in given.row if name not in FAMILIES]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(FAMILIES)}")

    os.environ[MARK] = uuid.uuid4().hex
    began = time.monotonic()
    try:
        rows, missing = measure(given.row or list(FAMILIES), Effort(quick=given.quick))
    finally:
        end_leftovers()
    print(f"\n{report.table(rows, missing)}\n")
    if not given.row and not given.quick:
        run = report.describe_run() | {"seconds": f"{time.monotonic() - began:.0f}"}
        report.write_results(rows, missing, run)
        report.CHART.write_text(report.chart(rows))
        placed = report.put_into_readme(rows, missing, run)
        print(f"Written: {report.RESULTS.name}, {report.CHART.name}{' and the table in README.md' if placed else ''}.")
    reached = sum(row.reached is True for row in rows)
    missed = [row for row in rows if row.reached is False]
    print(f"{reached} targets reached, {len(missed)} not, in {time.monotonic() - began:.0f} s.")
    for row in missed:
        print(f"  not reached: {row.what} ({row.against}): {row.measured}, wanted {row.wanted}")
    return 0


def measure(names: Sequence[str], effort: Effort) -> tuple[list[Row], list[Missing]]:
    rows: list[Row] = []
    missing: list[Missing] = []
    for name in names:
        began = time.monotonic()
        print(f"{name} …", flush=True)
        try:
            with at_most(LONGEST_SECONDS), kernels_warn_into(LOG):
                for row in FAMILIES[name](effort):
                    rows.append(row)
                    print(f"  {row.what}: {row.measured} ({row.wanted or 'no target'})", flush=True)
        except Exception as error:  # one family that cannot run costs its own rows only
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            missing.append(Missing(name, reason))
            print(f"  not measured: {reason}", flush=True)
        print(f"  {time.monotonic() - began:.0f} s", flush=True)
    return rows, missing


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    def give_up(*_signal: object) -> None:
        raise TimeoutError(f"took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def kernels_warn_into(log: Path) -> Iterator[None]:
    """What is started here writes to our stderr, and every kernel warns that loopback is not encrypted."""
    log.parent.mkdir(exist_ok=True)
    before = os.dup(2)
    with log.open("ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def end_leftovers() -> None:
    """Everything started here carries the mark, also what has lost its parent."""
    left = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == os.environ[MARK]:
                process.kill()
                left.append(process)
        except psutil.Error:  # gone meanwhile, or not ours to see
            continue
    psutil.wait_procs(left, timeout=5)
