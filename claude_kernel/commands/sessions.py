"""`claude-kernel sessions`: the conversations that were held in a folder, and how to go on with one."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from pathlib import Path

from claude_kernel.commands.printing import DIM, count_of, paint, plain, say, say_json
from claude_kernel.kept import Kept, find_conversations
from claude_kernel.render.figures import age_text

_PROMPT_CHARACTERS = 70


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="the working folder (default: this)")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def run(arguments: argparse.Namespace) -> int:
    folder = Path(arguments.folder).expanduser().resolve()
    kept, older = find_conversations(folder)
    if arguments.json:
        say_json({"folder": str(folder), "sessions": [_as_json(one) for one in kept], "not_listed": older})
        return 0
    if not kept:
        say(f"No conversation was held in {plain(folder)} yet.")
        say("One begins with the first cell of a notebook with the Claude kernel, or with `claude` in a terminal.")
        return 0
    now = time.time()
    rows = [(plain(one.id), age_text(now - one.changed), _count(one), _about(one)) for one in kept]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        first, old, count = (row[column].ljust(widths[column]) for column in range(3))
        say(f"{first}  {old}  {count}  {row[3]}")
    if older:
        say(f"… and {older} older.")
    say()
    say(
        paint(
            "To go on with one, in that folder: `Claude(resume=ID)` in Python, `claude --resume ID` in a terminal.", DIM
        )
    )
    return 0


def _count(one: Kept) -> str:
    if one.trouble:
        return "?"
    return count_of(one.prompts, "prompt") if one.whole else f"{one.prompts}+ prompts"


def _about(one: Kept) -> str:
    return f"(cannot be read: {one.trouble})" if one.trouble else plain(one.first_prompt, _PROMPT_CHARACTERS)


def _as_json(one: Kept) -> dict[str, object]:
    return {
        "id": one.id,
        "first_prompt": one.first_prompt,
        "prompts": one.prompts,
        "whole": one.whole,
        "changed": datetime.fromtimestamp(one.changed, UTC).isoformat(timespec="seconds"),
        "path": one.path,
        "trouble": one.trouble,
    }
