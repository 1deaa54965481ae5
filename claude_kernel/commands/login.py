"""Whether there is a login, by the environment or by Claude Code's own word. No key is ever looked at or shown."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import NamedTuple

from claude_kernel.cli import Options
from claude_kernel.protocol.events import Initialised
from claude_kernel.session import Session
from claude_kernel.trust import read_trust

CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
_OFF = ("", "0", "false", "no", "off")

_QUIET = {
    "CLAUDE_CODE_SKIP_PROMPT_HISTORY": "1",  # a question of ours is no conversation of the person's
    "CLAUDE_CODE_MAX_RETRIES": "1",  # whoever asks what is wrong does not wait for ten attempts
}


class Login(NamedTuple):
    known: bool | None
    """`None` where Claude Code does not say."""
    who: str = ""


def quiet_options(folder: str, cli: str | None) -> Options:
    """A conversation that leaves no trace and has no tools. As in a notebook, a folder that is not trusted brings no
    settings of its own, and here nobody's MCP servers are started either."""
    return Options(
        cli=cli,
        cwd=folder,
        setting_sources=read_trust(folder).setting_sources,
        strict_mcp=True,
        disallowed_tools=("*",),
        max_turns=1,
        system_prompt="Answer as briefly as you can.",
        environment=dict(_QUIET),
    )


def find_credential(environ: Mapping[str, str] | None = None) -> str | None:
    """The variable by which the environment gives a login, if one does."""
    environ = os.environ if environ is None else environ
    for name in CREDENTIALS:
        if environ.get(name, "").strip():
            return name
    return next((name for name in CLOUDS if is_on(environ.get(name, ""))), None)


def is_on(value: str) -> bool:
    return value.strip().lower() not in _OFF


def ask_login(folder: str, cli: str | None, seconds: float) -> Login:
    """Starts Claude Code and sends no prompt. Raises `TimeoutError` and what a session raises."""
    return describe(asyncio.run(_start(quiet_options(folder, cli), seconds)))


async def _start(options: Options, seconds: float) -> Initialised | None:
    async with Session(options) as session, asyncio.timeout(seconds):
        return await session.start()


def describe(initialised: Initialised | None) -> Login:
    if initialised is None or initialised.logged_in is None:
        return Login(None)
    account = initialised.account
    provider = account.get("apiProvider")
    ways = (
        (account.get("email"), "as {}"),
        (account.get("apiKeySource"), "with a key from {}"),
        (provider if provider != "firstParty" else None, "through {}"),
        (account.get("tokenSource"), "with a token from {}"),
    )
    who = next((words.format(value) for value, words in ways if value and value != "none"), "")
    return Login(initialised.logged_in, who)
