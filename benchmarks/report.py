"""The measured rows as a table, as JSON, and as a chart. It measures nothing."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path

from benchmarks.rows import Missing, Row

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results.json"
CHART = ROOT / "benchmarks" / "results.svg"
README = ROOT / "README.md"
OPENS, CLOSES = "<!-- bench: written by scripts/bench -->", "<!-- /bench -->"
_PACKAGES = ("claude-kernel", "ipykernel", "jupyterlab", "claude-agent-sdk")
_MARKS = {True: "yes", False: "no", None: ""}


def describe_run() -> dict[str, str]:
    versions = {name: importlib.metadata.version(name) for name in _PACKAGES}
    processors = f"{os.cpu_count()} processors"
    return {"date": datetime.now(UTC).date().isoformat(), "Python": platform.python_version(), **versions} | {
        "machine": f"{platform.system()} {platform.machine()}, {processors}"
    }


def table(rows: Sequence[Row], missing: Sequence[Missing]) -> str:
    lines = ["| what | against | measured | to reach | reached |", "|---|---|---:|---:|---|"]
    lines += [f"| {row.what} | {row.against} | {row.measured} | {row.wanted} | {_MARKS[row.reached]} |" for row in rows]
    lines += [f"| {one.family} | | not measured: {one.reason} | | |" for one in missing]
    return "\n".join(lines)


def write_results(rows: Sequence[Row], missing: Sequence[Missing], run: dict[str, str]) -> None:
    held = {
        "run": run,
        "rows": [
            {
                "what": row.what,
                "against": row.against,
                "value": row.value,
                "unit": row.unit,
                "target": row.target,
                "at_least": row.at_least,
                "reached": row.reached,
                "details": row.details,
            }
            for row in rows
        ],
        "missing": [{"family": one.family, "reason": one.reason} for one in missing],
    }
    RESULTS.write_text(json.dumps(_rounded(held), indent=1) + "\n")


def _rounded(value: object) -> object:
    """Four digits are more than a measurement holds."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {str(key): _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list) else value


def put_into_readme(rows: Sequence[Row], missing: Sequence[Missing], run: dict[str, str]) -> bool:
    """Whether the README has the place for it."""
    page = README.read_text()
    before, opened, rest = page.partition(OPENS)
    _, closed, after = rest.partition(CLOSES)
    if not opened or not closed:
        return False
    versions = ", ".join(f"{name} {run[name]}" for name in ("Python", *_PACKAGES))
    about = f"× is ours over what it is compared with. Measured on {run['date']} ({run['machine']}; {versions})."
    README.write_text(f"{before}{OPENS}\n{table(rows, missing)}\n\n{about}\n{CLOSES}{after}")
    return True


# --- the chart ------------------------------------------------------------------------------------------------------

_WIDTH, _LABEL, _NUMBER, _LINE, _BAR = 860, 440, 110, 26, 12
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.number { text-anchor: end } .quiet { fill: #57606a }
.reached { fill: #1a7f64 } .missed { fill: #c2571a } .wanted { stroke: #24292f; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .quiet { fill: #9da7b3 }
  .reached { fill: #3fb68b } .missed { fill: #f0883e } .wanted { stroke: #e6edf3 }
}
"""


def chart(rows: Sequence[Row]) -> str:
    """How far each row is from its target: the line in the middle is the target, to the right is better."""
    shown = [row for row in rows if row.target]
    names = Counter(row.what for row in shown)
    height = 44 + _LINE * len(shown)
    left, right = _LABEL + 10, _WIDTH - _NUMBER
    middle, reach = (left + right) / 2, (right - left) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>Measured against target</title><style>{_STYLE}</style>",
        f'<text class="quiet" x="{middle}" y="16" text-anchor="middle">target</text>',
        f'<text class="quiet number" x="{right}" y="16">ten times better</text>',
    ]
    for number, row in enumerate(shown):
        y = 30 + _LINE * number
        x = middle + reach * max(-1.0, min(1.0, _tens_better(row)))
        start, width = min(x, middle), max(abs(x - middle), 1.0)
        kind = "reached" if row.reached else "missed"
        told = f"{row.what} / {row.against}" if names[row.what] > 1 else row.what
        label = escape(told.replace("`", ""))
        parts += [
            f'<text x="{_LABEL}" y="{y + _BAR}" class="number">{label}</text>',
            f'<rect class="{kind}" x="{start:.1f}" y="{y + 1}" width="{width:.1f}" height="{_BAR}" rx="2"/>',
            f'<text x="{_WIDTH}" y="{y + _BAR}" class="number">{escape(row.measured)}</text>',
        ]
    parts.append(f'<line class="wanted" x1="{middle}" x2="{middle}" y1="24" y2="{height - 10}"/></svg>')
    return "\n".join(parts) + "\n"


def _tens_better(row: Row) -> float:
    """1 is ten times better than the target, -1 ten times worse."""
    target = row.target or 1.0
    better = row.value / target if row.at_least else target / max(row.value, target / 10)
    return math.log10(max(better, 0.1))
