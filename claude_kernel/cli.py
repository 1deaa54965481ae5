"""Which CLI, with which arguments and environment. It starts nothing and knows no Jupyter."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from claude_kernel.demo import NAME as DEMO
from claude_kernel.demo import demo_command
from claude_kernel.errors import CliNotFound, UsageError
from claude_kernel.protocol.dialects import Dialect
from claude_kernel.protocol.framing import DEFAULT_LIMIT
from claude_kernel.trust import Trust

OLDEST_TESTED = (2, 1, 326)
MODES = ("default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions")
EFFORTS = ("low", "medium", "high", "xhigh", "max")

_USUAL_PLACES = (
    "~/.local/bin/claude",
    "~/.claude/local/claude",
    "~/.npm-global/bin/claude",
    "~/.bun/bin/claude",
    "~/.yarn/bin/claude",
    "~/node_modules/.bin/claude",
    "/usr/local/bin/claude",
    "/opt/homebrew/bin/claude",
)

# A CLI that is itself started from inside Claude Code refuses to run, or takes its parent's session for its own.
_NOT_INHERITED = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_CODE_SESSION_ID")

HOW_TO_GET_ONE = (
    "Claude Code was not found. Install it with `pip install claude-agent-sdk` or "
    "`npm install -g @anthropic-ai/claude-code`, or say where it is in CLAUDE_CODE_PATH."
)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a conversation is to be held. Everything has a sensible default."""

    cli: str | tuple[str, ...] | None = None
    """The executable, or a whole command; `demo` is the offline demo; found by itself where `None`."""
    cwd: str = "."
    dialect: str = "direct"
    model: str | None = None
    fallback_model: str | None = None
    mode: str | None = None
    effort: str | None = None
    resume: str | None = None
    fork: bool = False
    resume_at: str | None = None
    """With `resume` and `fork`: go back to just after this message."""
    resume_gently: bool = False
    """Where the CLI does not know the conversation any more, begin a new one."""
    session_id: str | None = None
    setting_sources: tuple[str, ...] | None = None
    max_turns: int | None = None
    max_budget_usd: float | None = None
    json_schema: dict[str, Any] | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    add_dirs: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    mcp_servers: dict[str, dict[str, Any]] = {}
    """Servers that the CLI starts or reaches itself. They may hold secrets, and never stand in argv."""
    strict_mcp: bool = False
    trust_folder: bool = False
    """The folder's own hooks, servers and rules may be used, also where Claude Code has not been told to trust it."""
    agents: dict[str, dict[str, Any]] = {}
    environment: dict[str, str] = {}
    """Added to the environment that the CLI inherits."""
    inherit_environment: bool = True
    line_limit: int = DEFAULT_LIMIT


def narrow(options: Options, trust: Trust) -> Options:
    """In a folder that is not trusted, only the person's own settings, and no servers but those given here."""
    if trust.trusted:
        return options
    sources = ("user",) if options.setting_sources is None else options.setting_sources
    allowed = tuple(source for source in sources if source == "user")
    return msgspec.structs.replace(options, setting_sources=allowed, strict_mcp=True)


def find_cli(explicit: str | Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> list[str]:
    """The command to start, before its arguments. Raises `CliNotFound`, which says how to get one."""
    environ = os.environ if environ is None else environ
    if explicit is not None and not isinstance(explicit, str):
        return list(explicit)
    if explicit == DEMO:
        return demo_command()
    for named, where in ((explicit, "given"), (environ.get("CLAUDE_CODE_PATH"), "in CLAUDE_CODE_PATH")):
        if named:
            found = shutil.which(os.path.expanduser(named), path=environ.get("PATH"))
            if found is None:
                raise CliNotFound(f"The Claude Code {where} is not an executable file: {named}")
            return [found]
    on_path = shutil.which("claude", path=environ.get("PATH"))
    candidates = [on_path, *map(os.path.expanduser, _USUAL_PLACES), _find_bundled()]
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return [candidate]
    raise CliNotFound(HOW_TO_GET_ONE)


def _find_bundled() -> str | None:
    """The CLI inside the claude-agent-sdk wheel; the package is not imported, which would take seconds."""
    spec = importlib.util.find_spec("claude_agent_sdk")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        for name in ("claude", "claude.exe"):
            path = Path(folder, "_bundled", name)
            if path.is_file():
                return str(path)
    return None


def spoken(command: Sequence[str]) -> str:
    """What a person types to start this CLI: the one inside a wheel is not on the PATH."""
    return "claude" if shutil.which("claude") == command[0] else shlex.join(command)


def read_version(command: Sequence[str], environ: Mapping[str, str] | None = None) -> str:
    """What `--version` prints, or "" where it prints nothing useful."""
    try:
        done = subprocess.run(  # noqa: S603 - the command is the CLI that was just found
            [*command, "--version"], capture_output=True, text=True, timeout=20, env=environ, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    match = re.search(r"\d+\.\d+\.\d+", done.stdout)
    return match.group() if match else ""


def warn_if_old(version: str) -> str | None:
    """A sentence for the person where the CLI is older than any that was tested, else nothing."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    if not numbers or numbers >= OLDEST_TESTED:
        return None
    tested = ".".join(map(str, OLDEST_TESTED))
    return (
        f"Claude Code {version} is older than {tested}, the oldest this was tested with. "
        "It may work; `claude update` brings a newer one."
    )


# --- arguments ------------------------------------------------------------------------------------------------------

# One row a flag: the option's name, the flag, how its value is written. Values always ride in `--flag=value`, so that
# nothing a person or a notebook supplies can become a flag of its own.
_FLAGS: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("model", "--model", str),
    ("fallback_model", "--fallback-model", str),
    ("mode", "--permission-mode", str),
    ("effort", "--effort", str),
    ("resume", "--resume", str),
    ("resume_at", "--resume-session-at", str),
    ("session_id", "--session-id", str),
    ("setting_sources", "--setting-sources", ",".join),
    ("max_turns", "--max-turns", str),
    ("max_budget_usd", "--max-budget-usd", lambda amount: f"{amount:f}".rstrip("0").rstrip(".")),
    ("json_schema", "--json-schema", json.dumps),
    ("allowed_tools", "--allowedTools", ",".join),
    ("disallowed_tools", "--disallowedTools", ",".join),
)
_SWITCHES = (("fork", "--fork-session"), ("strict_mcp", "--strict-mcp-config"))
_SAFE_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@\[\]-]*")
_WORDS = ("model", "fallback_model", "resume", "resume_at", "session_id")


def build_arguments(options: Options, dialect: Dialect, *, mcp_config: str | None = None) -> list[str]:
    """Everything after the command. `mcp_config` is the path of a private file."""
    _check(options)
    arguments = list(dialect.arguments)
    for name, flag, encode in _FLAGS:
        value = getattr(options, name)
        if value is None or (value == () and name != "setting_sources"):
            continue  # no setting sources at all is a choice, and the strictest one
        arguments.append(f"{flag}={encode(value)}")
    arguments += [f"--add-dir={folder}" for folder in options.add_dirs]
    arguments += [flag for name, flag in _SWITCHES if getattr(options, name)]
    if mcp_config is not None:
        arguments.append(f"--mcp-config={mcp_config}")
    if dialect.passes_cwd:
        arguments.append(f"--cwd={os.path.abspath(options.cwd)}")
    return arguments


def _check(options: Options) -> None:
    for name in _WORDS:
        value = getattr(options, name)
        if value is not None and not _SAFE_WORD.fullmatch(value):
            raise UsageError(f"{name.replace('_', ' ')} {value!r} is not a name that Claude Code could know")
    if options.mode is not None and options.mode not in MODES:
        raise UsageError(f"no permission mode {options.mode!r}; there are {', '.join(MODES)}")
    if options.effort is not None and options.effort not in EFFORTS:
        raise UsageError(f"no effort {options.effort!r}; there are {', '.join(EFFORTS)}")
    if any("\0" in folder for folder in options.add_dirs):
        raise UsageError("a folder's name cannot hold a NUL character")


def build_environment(options: Options) -> dict[str, str]:
    inherited = os.environ if options.inherit_environment else {}
    environment = {name: value for name, value in inherited.items() if name not in _NOT_INHERITED}
    return environment | options.environment
