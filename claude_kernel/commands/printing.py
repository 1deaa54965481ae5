"""How the commands print: plain lines, colour only where a person looks, nothing that could steer a terminal."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

GREEN, YELLOW, RED, DIM = "32", "33", "31", "2"


def say(line: str = "") -> None:
    """At once: whoever waits sees what has been done so far."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def complain(line: str) -> None:
    sys.stderr.write(f"claude-kernel: {line}\n")


def say_json(value: Any) -> None:
    say(json.dumps(value, indent=2))


def paint(text: str, colour: str) -> str:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{colour}m{text}\x1b[0m"


def can_show(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def plain(text: object, limit: int = 300) -> str:
    """Words of others (paths, rules, prompts, errors) on one line, with whatever is hidden in them made visible."""
    from claude_kernel.render.visible import exact_text, one_line

    return exact_text(one_line(str(text), limit))


def count_of(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
