"""`claude-kernel version`."""

from __future__ import annotations

import argparse
import platform
import sys

from claude_kernel import __version__
from claude_kernel.commands.printing import say

_PATIENCE_SECONDS = 3.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There is nothing to choose."""


def run(_arguments: argparse.Namespace) -> int:
    say(f"claude-kernel {__version__}")
    say(f"Python {platform.python_version()} ({sys.executable})")
    say(f"Claude Code {_describe_cli()}")
    return 0


def _describe_cli() -> str:
    from claude_kernel.cli import find_cli, read_version
    from claude_kernel.commands.bounded import within
    from claude_kernel.errors import CliNotFound

    try:
        command = find_cli()
    except CliNotFound:
        return "not found; `claude-kernel doctor` says what to do"
    try:
        version = within(_PATIENCE_SECONDS, lambda: read_version(command))
    except TimeoutError:
        version = ""
    return f"{version or 'of unknown version'} ({command[0]})"
