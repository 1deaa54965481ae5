"""`claude-kernel doctor`: one row a check. A check that fails or hangs is a row like any other."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from claude_kernel.commands import claude_checks, jupyter_checks, rule_checks
from claude_kernel.commands.bounded import within
from claude_kernel.commands.findings import Case, Finding, State, problem
from claude_kernel.commands.printing import DIM, GREEN, RED, YELLOW, can_show, count_of, paint, plain, say, say_json
from claude_kernel.settings import load_settings


class Check(NamedTuple):
    name: str
    look: Callable[[Case], Finding]
    seconds: float = 20.0


CHECKS = (
    Check("Python", jupyter_checks.check_python),
    Check("Jupyter", jupyter_checks.check_jupyter),
    Check("ipykernel", jupyter_checks.check_ipykernel),
    Check("widgets", jupyter_checks.check_widgets),
    Check("kernel", jupyter_checks.check_kernel),
    Check("demo kernel", jupyter_checks.check_demo_kernel),
    Check("settings", rule_checks.check_settings),
    Check("policy", rule_checks.check_policy),
    Check("trust", rule_checks.check_trust),
    Check("Claude Code", claude_checks.check_cli, 30.0),
    Check("network", claude_checks.check_network),
    Check("login", claude_checks.check_login, claude_checks.START_SECONDS + 10),
    Check("answer", claude_checks.check_answer, claude_checks.ANSWER_SECONDS + 10),
)
"""A new check is a new row."""

_MARKS = {
    State.OK: ("✓", "ok", GREEN),
    State.WARNING: ("!", "warning", YELLOW),
    State.PROBLEM: ("✗", "problem", RED),
    State.SKIPPED: ("-", "skipped", DIM),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--offline", action="store_true", help="send no prompt: the last check costs a few tokens")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(arguments: argparse.Namespace) -> int:
    case = Case(folder=os.getcwd(), offline=arguments.offline, cli=load_settings().settings.cli or None)
    found: list[tuple[str, Finding]] = []
    for name, finding in examine(case):
        found.append((name, finding))
        if not arguments.json:
            _show(name, finding)
    problems, warnings = (
        sum(finding.state is state for _, finding in found) for state in (State.PROBLEM, State.WARNING)
    )
    if arguments.json:
        say_json({"ok": not problems, "checks": [_as_json(name, finding) for name, finding in found]})
    else:
        say()
        say(_summary(problems, warnings))
    return 1 if problems else 0


def examine(case: Case, checks: tuple[Check, ...] = CHECKS) -> Iterator[tuple[str, Finding]]:
    for check in checks:
        finding = _look(check, case)
        case.states[check.name] = finding.state
        yield check.name, finding


def _look(check: Check, case: Case) -> Finding:
    try:
        return within(check.seconds, lambda: check.look(case))
    except TimeoutError:
        return problem(f"no result within {check.seconds:g} s", "Something that this check needs hangs; try again.")
    except Exception as error:  # a check must never stop the others
        return problem(f"{type(error).__name__}: {error}", "The check itself failed; please report it.")


def _show(name: str, finding: Finding) -> None:
    mark, word, colour = _MARKS[finding.state]
    mark = mark if can_show("✓✗→") else f"{word:<7}"
    width = max(len(check.name) for check in CHECKS)
    say(f"{paint(mark, colour)} {name:<{width}}  {plain(finding.finding, 500)}")
    if finding.remedy:
        arrow = "→" if can_show("→") else ">"
        say(f"{' ' * (len(mark) + width + 3)}{paint(f'{arrow} {plain(finding.remedy, 500)}', colour)}")


def _summary(problems: int, warnings: int) -> str:
    if problems:
        more = f" and {count_of(warnings, 'warning')}" if warnings else ""
        return paint(f"{count_of(problems, 'problem')}{more}.", RED)
    if warnings:
        return paint(f"It works, with {count_of(warnings, 'warning')}.", YELLOW)
    return paint("All is well.", GREEN)


def _as_json(name: str, finding: Finding) -> dict[str, str]:
    return {"name": name, "state": finding.state.value, "finding": finding.finding, "remedy": finding.remedy}
