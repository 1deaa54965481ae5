"""Checks of Claude Code itself: found, of which version, over which network, logged in, answering?"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from claude_kernel.cli import HOW_TO_GET_ONE, Options, find_cli, read_version, spoken, warn_if_old
from claude_kernel.commands.findings import Case, Finding, State, ok, problem, skipped, warning
from claude_kernel.commands.login import CLOUDS, ask_login, is_on, quiet_options
from claude_kernel.demo import NAME as DEMO
from claude_kernel.errors import ClaudeKernelError, CliNotFound, CliSilent
from claude_kernel.protocol.events import Outcome, RetryNoticed, TurnEnded
from claude_kernel.session import Session
from claude_kernel.trouble import Trouble, find_trouble, trouble_of, trouble_of_retry

START_SECONDS = 30.0
ANSWER_SECONDS = 60.0
_PROMPT = "Answer with the single word: ready"
_DETAILS = 160


# --- the CLI --------------------------------------------------------------------------------------------------------


def check_cli(case: Case) -> Finding:
    if case.cli == DEMO:
        return warning(
            "the offline demo, because the setting `cli` says so",
            "Unset CLAUDE_KERNEL_CLI, or the setting `cli`, to talk to Claude.",
        )
    try:
        command = find_cli(case.cli)
    except CliNotFound as error:
        if str(error) == HOW_TO_GET_ONE:
            return problem("not found", HOW_TO_GET_ONE.partition(". ")[2])
        return problem(str(error), "Correct that path, or leave it out: then Claude Code is looked for.")
    version = read_version(command)
    if not version:
        return problem(f"{command[0]} does not tell its version", f"Run `{spoken(command)} --version` to see why.")
    old = warn_if_old(version)
    if old:
        finding, _, remedy = old.partition(". ")
        return warning(f"{finding} ({command[0]})", remedy)
    return ok(f"{version} at {command[0]}")


# --- settings of the network ----------------------------------------------------------------------------------------

_ADDRESSES = (
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_VERTEX_BASE_URL",
    "ANTHROPIC_FOUNDRY_BASE_URL",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
)
_SHOWN = ("NO_PROXY", "no_proxy", "NODE_EXTRA_CA_CERTS", "CLAUDE_CODE_CLIENT_CERT")
_FILES = ("NODE_EXTRA_CA_CERTS", "CLAUDE_CODE_CLIENT_CERT")


def check_network(_case: Case) -> Finding:
    return judge_network(os.environ)


def judge_network(environ: Mapping[str, str]) -> Finding:
    shown, wrong = list[str](), list[str]()
    for name in _ADDRESSES:
        if value := environ.get(name, ""):
            address = without_secrets(value)
            (shown if address else wrong).append(f"{name}={address}" if address else f"{name} is not an address")
    shown += [f"{name}={environ[name]}" for name in _SHOWN if environ.get(name)]
    shown += [name for name in CLOUDS if is_on(environ.get(name, ""))]
    wrong += [f"{name} names no readable file" for name in _FILES if not _is_readable(environ.get(name))]
    if environ.get("NODE_TLS_REJECT_UNAUTHORIZED") == "0":
        wrong.append("NODE_TLS_REJECT_UNAUTHORIZED=0: nobody's certificate is checked")
    if wrong:
        return warning("; ".join([*wrong, *shown]), "Correct or unset that variable before Jupyter starts.")
    return ok(", ".join(shown) or "no proxy, gateway or cloud is set: a direct connection")


def without_secrets(address: str) -> str:
    """Scheme, host and path; empty where it is no address at all. User, password and query may be secret."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" if "://" in address and host else ""


def _is_readable(path: str | None) -> bool:
    return not path or (os.path.isfile(path) and os.access(path, os.R_OK))


# --- login and round trip -------------------------------------------------------------------------------------------


def check_login(case: Case) -> Finding:
    if skip := _why_not_started(case):
        return skipped(skip)
    try:
        login = ask_login(case.folder, case.cli, START_SECONDS)
    except (ClaudeKernelError, TimeoutError) as error:
        return _failed(error, case)
    if login.known is None:
        return warning("Claude Code does not say whether it is logged in", "The answer below shows it.")
    if not login.known:
        return problem(
            "not logged in",
            f"Run `{spoken(find_cli(case.cli))}` in a terminal and choose /login, "
            "or set ANTHROPIC_API_KEY before Jupyter starts. `claude-kernel lab --demo` needs neither.",
        )
    return ok(f"logged in {login.who}".rstrip())


def check_answer(case: Case) -> Finding:
    if case.offline:
        return skipped("not asked, because of --offline")
    if skip := _why_not_started(case):
        return skipped(skip)
    if case.states.get("login") not in (State.OK, State.WARNING):
        return skipped("not asked, as there is no login")
    try:
        trip = asyncio.run(_ask(quiet_options(case.folder, case.cli)))
    except (ClaudeKernelError, TimeoutError) as error:
        return _failed(error, case)
    if trip.trouble is not None:
        return _troubled(trip.trouble)
    ended = trip.ended
    if ended is None or ended.outcome is not Outcome.FINISHED:
        return problem("the question was not answered", "Run `claude-kernel doctor` again.")
    usage = ended.usage
    tokens = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens + usage.output_tokens
    cost = f", ${usage.cost_usd:.4f}" if usage.cost_usd is not None else ""
    return ok(
        f"an answer after {trip.answer_seconds:.1f} s (Claude Code started in {trip.start_seconds:.1f} s); "
        f"it took {tokens:,} tokens{cost}"
    )


class _Trip(NamedTuple):
    start_seconds: float
    answer_seconds: float
    ended: TurnEnded | None
    trouble: Trouble | None


async def _ask(options: Options) -> _Trip:
    began = time.monotonic()
    async with Session(options) as session, asyncio.timeout(ANSWER_SECONDS):
        await session.start()
        started = time.monotonic()
        ended, trouble = None, None
        async for event in session.turn(_PROMPT):
            if isinstance(event, RetryNoticed):
                trouble = trouble or trouble_of_retry(event)
            elif isinstance(event, TurnEnded):
                ended, trouble = event, find_trouble(event)
        return _Trip(started - began, time.monotonic() - started, ended, trouble)


def _why_not_started(case: Case) -> str:
    if case.cli == DEMO:
        return "the offline demo needs no login"
    return "Claude Code cannot be started" if case.states.get("Claude Code") is State.PROBLEM else ""


def _failed(error: Exception, case: Case) -> Finding:
    if isinstance(error, CliSilent | TimeoutError):
        return problem("Claude Code does not answer", f"Run `{spoken(find_cli(case.cli))}` in a terminal to see why.")
    return _troubled(trouble_of(error))


def _troubled(trouble: Trouble) -> Finding:
    """The remedies are written for a notebook; here there is no cell to run again."""
    details = trouble.details.strip().partition("\n")[0]
    finding = f"{trouble.title} {details[:_DETAILS]}".strip()
    here = "Then run `claude-kernel doctor` again."
    return problem(finding, trouble.remedy.replace("Then run this cell again: nothing was lost.", here))
