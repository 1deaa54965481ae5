"""Where the real CLI is, and an environment in which it runs without an account.

It must not know the kernel, nor what a test wants from the CLI, and never imports claude_agent_sdk: that takes seconds.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

MISSING = "the tests need the real CLI, which claude-agent-sdk carries: pip install -e '.[test]'"


def find_cli() -> Path | None:
    spec = importlib.util.find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "_bundled" / "claude"
    return path if path.is_file() else None


def cli_path() -> Path:
    """The CLI, or a failure that says how to get it: a missing CLI must never turn a test green."""
    path = find_cli()
    if path is None:
        raise FileNotFoundError(MISSING)
    return path


def cli_environment(home: Path, api_url: str) -> dict[str, str]:
    """A whole environment, built from nothing: a developer's own CLAUDECODE, proxy or ANTHROPIC_* cannot leak in."""
    config, temporary = home / ".claude", home / "tmp"
    for folder in (home, config, temporary):
        folder.mkdir(parents=True, exist_ok=True)
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "USER": "me",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TMPDIR": str(temporary),
        "CLAUDE_CODE_TMPDIR": str(temporary),
        "CLAUDE_CONFIG_DIR": str(config),
        "ANTHROPIC_BASE_URL": api_url,
        "ANTHROPIC_API_KEY": "sk-ant-stand-in",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
