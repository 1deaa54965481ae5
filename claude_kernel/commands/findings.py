"""What a check of `claude-kernel doctor` finds. It knows no check."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple


class State(Enum):
    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    SKIPPED = "skipped"


class Finding(NamedTuple):
    state: State
    finding: str
    remedy: str = ""


def ok(finding: str) -> Finding:
    return Finding(State.OK, finding)


def warning(finding: str, remedy: str) -> Finding:
    return Finding(State.WARNING, finding, remedy)


def problem(finding: str, remedy: str) -> Finding:
    return Finding(State.PROBLEM, finding, remedy)


def skipped(finding: str) -> Finding:
    return Finding(State.SKIPPED, finding)


@dataclass
class Case:
    """What is looked at, and what earlier checks have found."""

    folder: str
    offline: bool
    cli: str | None = None
    """As the kernel is configured: a path, `demo`, or nothing."""
    states: dict[str, State] = field(default_factory=dict)
