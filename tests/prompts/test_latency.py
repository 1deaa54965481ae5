"""How long a click takes to become bytes on the CLI's stdin. Measured and printed; a slow machine fails no test."""

from __future__ import annotations

import json
import statistics
from functools import partial
from pathlib import Path

import pytest
from prompts.person import Person

pytestmark = pytest.mark.real_cli

CLICKS = 60
# The kernel's own wire trace says when a line went to the CLI; the click's time is on its message, same clock.
_TRACE = """%%python
import logging
class _Times(logging.Handler):
    def emit(self, record):
        if record.getMessage().startswith('>') and 'behavior' in record.getMessage():
            times.append(record.created)
times = []
logging.getLogger('claude_kernel').addHandler(_Times())
"""


def test_a_click_reaches_the_cli_at_once(person: Person, project: Path) -> None:
    person.finish(person.run(_TRACE))
    steps = [[["Bash", {"command": f"touch {number}.txt"}]] for number in range(CLICKS)]
    cell = person.run(f"steps:{json.dumps(steps)}")
    clicked = []
    for number in range(CLICKS):
        card = person.card(number)
        person.click(card, "Allow once")
        clicked.append(person.sent[-1]["header"]["date"].timestamp())
        person.until(partial(person.is_gone, card))
    person.finish(cell)
    assert len(list(project.glob("*.txt"))) == CLICKS
    ran = person.finish(person.run("%%python\nimport json\nprint(json.dumps(times))"))
    answered = json.loads(ran.stream)
    assert len(answered) == CLICKS
    waits = sorted(1000 * (after - before) for before, after in zip(clicked, answered, strict=True))
    p50, p95 = statistics.median(waits), waits[int(0.95 * len(waits))]
    print(f"click to the CLI's stdin: p50 {p50:.1f} ms, p95 {p95:.1f} ms, worst {waits[-1]:.1f} ms ({CLICKS} clicks)")
    assert waits[0] > 0
