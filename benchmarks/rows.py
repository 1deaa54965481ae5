"""What a measurement is: one row of the table, with its baseline and its target. It measures nothing."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """One measured number. `target` is a bound, from below where `at_least`; `None` where there is none to reach."""

    what: str
    against: str
    value: float
    unit: str
    target: float | None
    at_least: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    """What stands behind the number, for the JSON file."""

    @property
    def reached(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target

    @property
    def measured(self) -> str:
        return _amount(self.value, self.unit)

    @property
    def wanted(self) -> str:
        if self.target is None:
            return ""
        return f"at {'least' if self.at_least else 'most'} {_amount(self.target, self.unit)}"


@dataclass(frozen=True)
class Missing:
    """A family that could not be measured here, and why."""

    family: str
    reason: str


@dataclass(frozen=True)
class Effort:
    """How often things are repeated. `quick` is for trying the measurements themselves."""

    quick: bool = False

    def rounds(self, whole: int) -> int:
        return max(1, whole // 3) if self.quick else whole


Family = Callable[[Effort], Iterator[Row]]


def in_turn(rounds: int, *sides: Callable[[], float]) -> list[list[float]]:
    """Each side's values, one a round. The order alternates: what heats up or fills a cache favours nobody."""
    values: list[list[float]] = [[] for _ in sides]
    for number in range(rounds):
        order = range(len(sides)) if number % 2 == 0 else reversed(range(len(sides)))
        for index in order:
            values[index].append(sides[index]())
    return values


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median over the rounds of the two sides' ratio in the same round."""
    return statistics.median(our / their for our, their in zip(ours, theirs, strict=True))


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def _amount(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return f"{number} {unit}" if unit != "×" else f"{number}×"
