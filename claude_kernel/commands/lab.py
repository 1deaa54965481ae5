"""`claude-kernel lab`: JupyterLab of this environment, with Claude where there is a login and the demo where not.

In demo mode the server's environment says `CLAUDE_KERNEL_CLI=demo`, which each kernel reads: so a notebook opens with
whichever kernel its file names and works, and no file of a person's is changed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import NoReturn

from claude_kernel.commands.printing import complain, plain, say
from claude_kernel.commands.specs import CLAUDE, DEMO
from claude_kernel.errors import UsageError

HANDS_ON = True

_CLI = "CLAUDE_KERNEL_CLI"
_DEFAULT_KERNEL = "--MultiKernelManager.default_kernel_name"
_START_SECONDS = 20.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "claude-kernel lab [--demo] [NOTEBOOK | FOLDER] [OPTION OF JUPYTERLAB …]"
    parser.epilog = "All else is handed on to JupyterLab; what follows `--` also where it looks like an option of ours."
    parser.add_argument("--demo", action="store_true", help="the offline demo, also where there is a login")


def run(arguments: argparse.Namespace) -> int:
    if importlib.util.find_spec("jupyterlab") is None:
        complain(f'JupyterLab is not installed here. Run `{sys.executable} -m pip install "claude-kernel[lab,cli]"`.')
        return 1
    notebooks = [Path(word) for word in arguments.handed_on if word.endswith(".ipynb") and not word.startswith("-")]
    for notebook in notebooks:
        if not notebook.is_file():
            raise UsageError(f"There is no notebook {plain(notebook)}.")
    environment = dict(os.environ)
    why_demo = "because of --demo." if arguments.demo else why_not_claude()
    if why_demo:
        environment[_CLI] = "demo"
        say(f"The offline demo answers, {why_demo}")
        say(f"({_CLI}=demo is set for this JupyterLab, so that every Claude notebook runs the demo.)")
    else:
        say("Claude answers in notebooks with the Claude kernel.")
    for notebook in notebooks:
        _tell_kernel(notebook, demo=bool(why_demo))
    kernel = _find_kernel((DEMO, CLAUDE) if why_demo else (CLAUDE,))
    if kernel is None:
        complain("Jupyter does not know the kernel yet. Stop this and run `claude-kernel install --sys-prefix`.")
    chosen = [f"{_DEFAULT_KERNEL}={kernel}"] if kernel and not _is_chosen(arguments.handed_on) else []
    if advice := root_advice(arguments.handed_on, os.geteuid()):
        say(advice)
    # -P, as the `jupyter` command has it: a file called json.py in this folder is not JupyterLab's to import.
    command = [sys.executable, "-P", "-m", "jupyterlab", *chosen, *arguments.handed_on]
    say(f"Starting JupyterLab in {plain(Path.cwd())}. It opens in a browser, or prints its address; Ctrl-C ends it.")
    return _become(command, environment)


def root_advice(words: list[str], user: int) -> str:
    """JupyterLab itself refuses, in fewer words, unless its configuration lets root in."""
    if user != 0 or any(word.startswith(("--allow-root", "--ServerApp.allow_root")) for word in words):
        return ""
    return (
        "You are root, as in many containers: if JupyterLab refuses to run, start this again with --allow-root "
        "(and with --ip=0.0.0.0 to reach it from outside of a container)."
    )


def _become(command: list[str], environment: dict[str, str]) -> NoReturn:
    """In place of this program: so Ctrl-C and every other signal are JupyterLab's own, and so is the exit code."""
    os.execve(command[0], command, environment)  # noqa: S606 - a list of words, and no shell


def why_not_claude() -> str:
    """Why Claude cannot answer, with what to do; empty where it can. The words follow a comma."""
    from claude_kernel.cli import find_cli, spoken
    from claude_kernel.commands.bounded import within
    from claude_kernel.commands.login import ask_login, find_credential
    from claude_kernel.errors import ClaudeKernelError, CliNotFound
    from claude_kernel.settings import load_settings

    cli = load_settings().settings.cli or None
    if cli == "demo":
        return f"because the setting `cli` ({_CLI}) says so."
    try:
        command = find_cli(cli)
    except CliNotFound as error:
        return f"because Claude Code cannot be used: {error}"
    if find_credential():
        return ""
    try:
        login = within(_START_SECONDS + 5, lambda: ask_login(os.getcwd(), cli, _START_SECONDS))
    except (ClaudeKernelError, TimeoutError):
        return "because Claude Code does not start. `claude-kernel doctor` says more."
    if login.known is False:
        return (
            f"because nobody is logged in. To talk to Claude, run `{spoken(command)}` in a terminal and choose /login, "
            "or set ANTHROPIC_API_KEY; then start this again."
        )
    return ""


def _tell_kernel(notebook: Path, *, demo: bool) -> None:
    """One sentence where the kernel that the notebook names is not the one that was chosen."""
    try:
        wanted = json.loads(notebook.read_text("utf-8"))["metadata"]["kernelspec"]["name"]
    except (OSError, ValueError, LookupError, TypeError):
        return
    if demo and wanted == CLAUDE:
        say(f"{plain(notebook)} names the Claude kernel; here that kernel runs the demo as well.")
    elif not demo and wanted == DEMO:
        say(f"{plain(notebook)} names the demo kernel: choose Claude at the top right of the notebook to talk to it.")


def _find_kernel(names: tuple[str, ...]) -> str | None:
    from jupyter_client.kernelspec import KernelSpecManager

    known = KernelSpecManager().find_kernel_specs()
    return next((name for name in names if name in known), None)


def _is_chosen(words: list[str]) -> bool:
    return any(word.partition("=")[0] == _DEFAULT_KERNEL for word in words)
