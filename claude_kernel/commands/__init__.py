"""`claude-kernel COMMAND`: one table of commands; the module of a command is loaded when it is asked for.

Here only the standard library is imported, so that `claude-kernel version` answers at once. A command's module has
`add_arguments(parser)` and `run(arguments) -> exit code`; one with `HANDS_ON` gets what it does not know itself as
`arguments.handed_on`.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from claude_kernel.errors import ClaudeKernelError

COMMANDS = {
    "lab": "start JupyterLab with Claude, or with the offline demo where there is no login",
    "doctor": "check all that must be in place, and say what to do",
    "install": "register the kernels with Jupyter",
    "uninstall": "remove what install has registered",
    "sessions": "list the conversations that were held in a folder",
    "policy": "show which permission settings apply in a folder, and where each comes from",
    "version": "say which versions are in use",
}
"""Each name is that of a module beside this file."""

_CLOSED_PIPE = 128 + 13
_INTERRUPTED = 128 + 2


def main(words: Sequence[str] | None = None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a prompt or a path may hold what the terminal cannot show
    try:
        try:
            return _run(list(sys.argv[1:] if words is None else words))
        finally:
            sys.stdout.flush()  # here, where a closed pipe can still be caught
    except BrokenPipeError:
        # Whoever read has what it wanted (`| head`). At its exit the interpreter flushes once more: into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _CLOSED_PIPE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except ClaudeKernelError as error:
        sys.stderr.write(f"claude-kernel: {error}\n")
        return 1


def _run(words: list[str]) -> int:
    if words[:1] == ["--version"]:
        words[0] = "version"
    if not words or words[0] not in COMMANDS:
        return _help(words)
    name, *rest = words
    command = import_module(f"{__name__}.{name}")
    hands_on = getattr(command, "HANDS_ON", False)
    parser = argparse.ArgumentParser(
        prog=f"claude-kernel {name}",
        description=_sentence(COMMANDS[name]),
        allow_abbrev=False,  # what is handed on must not be taken for the beginning of an option of ours
    )
    command.add_arguments(parser)
    cut = rest.index("--") if hands_on and "--" in rest else len(rest)
    arguments, unknown = parser.parse_known_args(rest[:cut])
    if unknown and not hands_on:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    arguments.handed_on = [*unknown, *rest[cut + 1 :]]
    code: int = command.run(arguments)
    return code


def _help(words: list[str]) -> int:
    width = max(map(len, COMMANDS))
    rows = [f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items()]
    parser = argparse.ArgumentParser(
        prog="claude-kernel",
        usage="claude-kernel COMMAND [OPTION …]",
        description="Claude Code inside a Jupyter notebook.",
        epilog="\n".join(
            ["commands:", *rows, "", "`claude-kernel COMMAND --help` tells more of one. `--version` is `version`."]
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", nargs="?", choices=[*COMMANDS], metavar="COMMAND", help=argparse.SUPPRESS)
    parser.parse_args(words)  # leaves here for `--help`, an unknown command or an unknown option
    parser.print_help()
    return 0


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."
