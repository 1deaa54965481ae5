"""What an answer costs on its way to the front end, in time and in bytes.

Against: reading a bare pipe of the same answer; the size of the text itself.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.kernels import Client

from benchmarks.children import claude_kernel, scratch, streaming, write_dense, write_prose
from benchmarks.pipe import BarePipe
from benchmarks.rows import Effort, Row, in_turn, ratio

MEGABYTE = 43_000 * 25
REPAINT_SECONDS = 0.010
SIZES = (10_000, 40_000, 160_000, 640_000, 1_000_000)
PACE_MS = 25.0
"""Between two deltas of 25 characters: a thousand characters a second, which is a fast model."""
PACED = 10_000
KINDS = {"prose": write_prose, "dense Markdown": write_dense}
_LONGEST_SECONDS = 120.0


@dataclass(frozen=True)
class Cost:
    """What one cell's answer came to at a plain client."""

    seconds: float
    outputs: int
    """Messages that show or repaint something."""
    size: int
    """Bytes of all its messages on iopub, headers and all."""


def run_prompt(client: Client, prompt: str) -> Cost:
    began = time.perf_counter()
    messages = list(client.follow(client.send(prompt), _LONGEST_SECONDS))
    seconds = time.perf_counter() - began
    client.kernel.get_shell_msg(timeout=_LONGEST_SECONDS)
    shown = [message for message in messages if message["msg_type"] in ("display_data", "update_display_data")]
    return Cost(seconds, len(shown), sum(map(size_of, messages)))


def size_of(message: dict[str, Any]) -> int:
    parts = (message["header"], message["parent_header"], message["metadata"], message["content"])
    return sum(len(json.dumps(part, default=str, ensure_ascii=False).encode()) for part in parts)


def measure_answers(effort: Effort) -> Iterator[Row]:
    with scratch() as folder, claude_kernel(folder) as client:
        for kind, write in KINDS.items():
            yield from _megabyte(client, kind, write(folder, MEGABYTE), effort)
        for kind, write in KINDS.items():
            yield from _bytes(client, kind, {characters: write(folder, characters) for characters in SIZES})
        paced = run_prompt(client, streaming(write_prose(folder, PACED), pause_ms=PACE_MS))
        yield Row(
            "Bytes a second to the front end, at 1,000 characters a second",
            "no baseline",
            paced.size / paced.seconds / 1000,
            "KB",
            20,
            details={"bytes": paced.size, "seconds": paced.seconds, "outputs": paced.outputs},
        )


def _megabyte(client: Client, kind: str, text: Path, effort: Effort) -> Iterator[Row]:
    prompt = streaming(text)
    repaints: list[int] = []

    def through_the_kernel() -> float:
        cost = run_prompt(client, prompt)
        repaints.append(cost.outputs)
        return cost.seconds

    with closing(BarePipe()) as pipe:
        pipe.turn(prompt)  # both children make their rows
        run_prompt(client, prompt)
        ours, bare = in_turn(effort.rounds(3), through_the_kernel, lambda: pipe.turn(prompt)[1])
    allowed = [seconds + REPAINT_SECONDS * count for seconds, count in zip(bare, repaints, strict=True)]
    yield Row(
        f"1 MB of {kind} in 43,000 deltas, to the last message",
        "a bare pipe, and 10 ms for each repaint",
        ratio(ours, allowed),
        "×",
        2,
        details={"seconds": {"ours": ours, "bare pipe": bare}, "repaints": repaints},
    )


def _bytes(client: Client, kind: str, texts: dict[int, Path]) -> Iterator[Row]:
    sizes = {characters: run_prompt(client, streaming(text)).size for characters, text in texts.items()}
    worst = max(size / characters for characters, size in sizes.items())
    details = {"bytes": sizes}
    yield Row(f"Bytes to the front end, 10 KB to 1 MB of {kind}", "the text itself", worst, "×", 4, details=details)
    growth = max(sizes[4 * characters] / sizes[characters] for characters in sizes if 4 * characters in sizes)
    yield Row(f"Bytes for four times the {kind}", "bytes for the text", growth, "×", 5, details=details)
