"""What can stand at the cursor, and what it is: slash commands, `@` paths, `%claude` words. It knows no Jupyter."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from claude_kernel.cli import EFFORTS, MODES
from claude_kernel.prompts.asker import WAYS
from claude_kernel.protocol.events import Initialised
from claude_kernel.steering import COMMANDS

MOST_PATHS = 200
_HEAD_LINES, _HEAD_BYTES = 40, 4_000
_SLASH = re.compile(r"\s*(/[\w:.-]*)$")
_MENTION = re.compile(r'(?:^|[\s(])@(?:"(?P<quoted>[^"]*)|(?P<bare>[^\s"]*))$')
_STEER = re.compile(r"^[ \t]*%claude[ \t]+(?:(\w+)[ \t]+)?([\w.\[\]:-]*)$")


class Match(NamedTuple):
    text: str
    kind: str
    about: str = ""


class Completion(NamedTuple):
    start: int
    matches: tuple[Match, ...]


def find_completions(before: str, folder: Path, initialised: Initialised | None) -> Completion:
    """`before` is the cell up to the cursor."""
    line = before.rpartition("\n")[2]
    steered = _STEER.match(line)
    if steered is not None:
        return Completion(len(before) - len(steered[2]), _starting(steered[2], _words(steered[1], initialised)))
    slash = _SLASH.fullmatch(before)
    if slash is not None:
        commands = initialised.commands if initialised else ()
        words = (Match(f"/{command.name}", "command", command.description) for command in commands)
        return Completion(len(before) - len(slash[1]), _starting(slash[1], words))
    mention = _MENTION.search(line)
    if mention is not None:
        typed = mention["bare"] if mention["quoted"] is None else mention["quoted"]
        return Completion(len(before) - len(typed), _paths(typed, folder, quoted=mention["quoted"] is not None))
    return Completion(len(before), ())


def _words(verb: str | None, initialised: Initialised | None) -> Iterable[Match]:
    if verb is None:
        return [Match(name, "keyword", command.summary) for name, command in COMMANDS.items()]
    if verb == "model":
        models = initialised.models if initialised else ()
        return [Match(model.value, "model", model.description) for model in models]
    choices = {"mode": MODES, "effort": EFFORTS, "prompts": WAYS}.get(verb, ())
    return [Match(word, verb) for word in choices]


def _starting(typed: str, matches: Iterable[Match]) -> tuple[Match, ...]:
    return tuple(match for match in matches if match.text.startswith(typed))


def _paths(typed: str, folder: Path, *, quoted: bool) -> tuple[Match, ...]:
    parent, _, name = typed.rpartition("/")
    base = folder / os.path.expanduser(f"{parent}/" if parent or typed.startswith("/") else "")
    found = []
    try:
        entries = sorted(os.scandir(base), key=lambda entry: (not entry.is_dir(), entry.name.lower()))
    except (OSError, ValueError):  # a NUL character is a ValueError
        return ()
    for entry in entries:
        hidden = entry.name.startswith(".") and not name.startswith(".")
        if entry.name.startswith(name) and not hidden:
            lead = f"{parent}/" if parent or typed.startswith("/") else ""
            text, kind = (f"{entry.name}/", "folder") if entry.is_dir() else (entry.name, "file")
            found.append(Match(_written(lead + text, quoted=quoted), kind))
    return tuple(found[:MOST_PATHS])


def _written(path: str, *, quoted: bool) -> str:
    """A mention with a space in it needs quotes; those of a folder stay open, for what follows."""
    closing = "" if path.endswith("/") else '"'
    if quoted:
        return path + closing
    return f'"{path}{closing}' if any(character.isspace() for character in path) else path


def describe(cell: str, cursor: int, folder: Path, initialised: Initialised | None) -> str | None:
    """Markdown about the word under the cursor: what a command does, how a file begins."""
    word = _word_at(cell, cursor)
    if word.startswith("/"):
        for command in initialised.commands if initialised else ():
            if command.name == word[1:]:
                return f"**/{command.name}** {command.argument_hint}\n\n{command.description}"
        return None
    if word.startswith("@"):
        return _file_head(folder / os.path.expanduser(word[1:].strip('"')))
    if cell.lstrip().startswith("%claude") and word in COMMANDS:
        return f"**%claude {word}{COMMANDS[word].usage}**\n\n{COMMANDS[word].summary}"
    return None


def _word_at(cell: str, cursor: int) -> str:
    start = max(cell.rfind(space, 0, cursor) for space in " \n\t(") + 1
    end = re.search(r"[\s)]|$", cell[cursor:])
    return cell[start : cursor + (end.start() if end else 0)]


def _file_head(path: Path) -> str | None:
    try:
        if path.is_dir():
            names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in os.scandir(path))
            return f"**{path.name}/** has {len(names)} entries\n\n" + _fenced(names)
        if not path.is_file():  # a pipe would be waited for
            return None
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except (OSError, ValueError):
        return None
    if b"\0" in head:
        return f"**{path.name}**, {size:,} bytes, not text"
    return f"**{path.name}**, {size:,} bytes\n\n" + _fenced(head.decode("utf-8", "replace").split("\n"))


def _fenced(lines: list[str]) -> str:
    """As it is: a file's own Markdown is not to be rendered."""
    shown = "\n".join(lines[:_HEAD_LINES])
    fence = "`" * (2 + max((len(run) for run in re.findall("`+", shown)), default=1))
    return f"{fence}\n{shown}\n{fence}"
