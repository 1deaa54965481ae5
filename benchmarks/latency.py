"""How long one thing takes to get through an idle kernel, in each direction. Absolute: there is no baseline.

The times at both ends are of the machine's one monotonic clock; the CLI's stand-in writes its own into the answer.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from functools import partial

from prompts.person import Person
from support.kernels import Client

from benchmarks.children import claude_kernel, find_stamps, scratch
from benchmarks.rows import Effort, Row, percentile

TURNS = 100
NONE = "no baseline"
WAIT_MS = 60
"""Before the first delta: what the start of the turn brought has been shown by then."""


def measure_latency(effort: Effort) -> Iterator[Row]:
    turns = effort.rounds(TURNS)
    with scratch() as folder, claude_kernel(folder) as client:
        client.run("warm up")
        waits = [_first_delta(client) for _ in range(turns)]
        details = {"milliseconds": waits}
        what = "First delta to the front end"
        yield Row(f"{what}, median", NONE, statistics.median(waits), "ms", 5, details=details)
        yield Row(f"{what}, 95th percentile", NONE, percentile(waits, 95), "ms", 20, details=details)
        waits = [_prompt(client) for _ in range(turns)]
        details = {"milliseconds": waits}
        yield Row("Prompt to the CLI's stdin, median", NONE, statistics.median(waits), "ms", 10, details=details)
        waits = _clicks(client, turns)
        details = {"milliseconds": waits}
        yield Row("Click to the CLI's stdin, 95th percentile", NONE, percentile(waits, 95), "ms", 50, details=details)


def _first_delta(client: Client) -> float:
    message_id = client.send(f"bench:stamp:{WAIT_MS}")
    seen: float | None = None
    for message in client.follow(message_id):
        arrived = time.monotonic_ns()
        stamps = find_stamps(str(message["content"].get("data", {}).get("text/html", "")))
        if stamps and seen is None:
            seen = (arrived - stamps[0]) / 1e6
    client.kernel.get_shell_msg(timeout=10)
    if seen is None:
        raise RuntimeError("the delta was never shown")
    return seen


def _prompt(client: Client) -> float:
    sent = time.monotonic_ns()
    ran = client.run("bench:received")
    return (find_stamps(ran.html)[0] - sent) / 1e6


def _clicks(client: Client, count: int) -> list[float]:
    person = Person(client)
    cell = person.run(f"bench:ask:{count}")
    sent: list[int] = []
    for number in range(count):
        card = person.card(number)
        sent.append(time.monotonic_ns())
        person.click(card, "Allow once")
        person.until(partial(person.is_gone, card))
    read = find_stamps(person.finish(cell).html)
    return [(after - before) / 1e6 for before, after in zip(sent, read, strict=True)]
