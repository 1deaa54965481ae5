"""The conversations that Claude Code keeps, as its files tell them (2.1.326). It reads, and changes nothing.

A folder's conversations lie in `projects/NAME`, where NAME is the folder's path with each character that is neither an
ASCII letter nor a digit replaced by `-`, so that `a.b` and `a-b` share one; a row's own `cwd` tells them apart. Files
are read line by line and up to a limit, and a line that cannot be understood is passed over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from claude_kernel.trust import own_folder

MOST_FILES = 100
MOST_BYTES = 64 * 1024 * 1024
LONGEST_LINE = 16 * 1024 * 1024
_LONGEST_NAME = 200

_COMMAND = re.compile(
    r"<command-name>(?P<name>[^<]*)</command-name>.*?(?:<command-args>(?P<args>.*?)</command-args>|$)", re.S
)
_NOT_SAID = ("<local-command-", "<bash-stdout>", "<bash-stderr>", "<task-notification>", "[Request interrupted by user")
"""How texts begin that the CLI writes into the person's side of a conversation."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation."""

    id: str
    path: str
    changed: float
    """Seconds since the epoch."""
    first_prompt: str = ""
    prompts: int = 0
    whole: bool = True
    """Whether the file was read to its end; where not, there may be more prompts."""
    trouble: str = ""


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Message(msgspec.Struct):
    content: str | list[_Block] = ""


class _Row(msgspec.Struct, rename="camel"):
    type: str = ""
    is_meta: bool = False
    is_sidechain: bool = False
    is_compact_summary: bool = False
    cwd: str = ""
    message: _Message | None = None


_ROW = msgspec.json.Decoder(_Row)


def find_conversations(folder: Path) -> tuple[list[Kept], int]:
    """The newest first, and how many older ones were not looked at."""
    files = sorted(_files(folder), reverse=True)
    kept = [found for changed, path in files[:MOST_FILES] if (found := _read(path, changed, folder)) is not None]
    return kept, len(files[MOST_FILES:])


def find_place(session_id: str, *, demo: bool = False) -> Path | None:
    """The folder that a conversation belongs to. The id has been found to be one, and no path."""
    kept = own_folder() / "claude-kernel" / "demo" if demo else own_folder() / "projects"
    for path in kept.glob(f"{session_id}.jsonl" if demo else f"*/{session_id}.jsonl"):
        try:
            with path.open("rb") as file:
                for line in file:
                    row = _decode(line)
                    if row is not None and row.cwd:
                        return Path(row.cwd)
        except OSError:
            continue
    return None


def _files(folder: Path) -> Iterator[tuple[float, Path]]:
    for place in _places(folder):
        try:
            entries = list(os.scandir(place))
        except OSError:
            continue
        for entry in entries:
            # Older CLIs put what a sub-agent said beside the conversations.
            if entry.name.endswith(".jsonl") and not entry.name.startswith("agent-"):
                try:
                    yield entry.stat().st_mtime, Path(entry.path)
                except OSError:
                    continue


def _places(folder: Path) -> list[Path]:
    projects = own_folder() / "projects"
    name = slug(folder)
    if len(name) <= _LONGEST_NAME:
        return [projects / name]
    # The CLI ends a long name with a hash; what was cut off is told by the rows themselves.
    return sorted(projects.glob(f"{name[:_LONGEST_NAME]}-*"))


def slug(folder: Path) -> str:
    """The CLI counts as JavaScript does: a character outside the basic plane is two."""
    return "".join(
        character if character.isascii() and character.isalnum() else "-" * (2 if ord(character) > 0xFFFF else 1)
        for character in str(folder)
    )


def _read(path: Path, changed: float, folder: Path) -> Kept | None:
    """Nothing for the conversation of another folder, and for a file in which nobody said anything."""
    first, prompts, cwd = "", 0, ""
    try:
        with path.open("rb") as file:
            for line in _lines(file):
                row = _decode(line)
                if row is None:
                    continue
                cwd = cwd or row.cwd
                said = _said(row)
                if said is not None:
                    first = first or said
                    prompts += 1
            whole = not file.read(1)
    except OSError as error:
        return Kept(id=path.stem, path=str(path), changed=changed, trouble=error.strerror or str(error))
    if prompts == 0 or (cwd and Path(cwd) != folder):
        return None
    return Kept(id=path.stem, path=str(path), changed=changed, first_prompt=first, prompts=prompts, whole=whole)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Only what a person may have said; a line too long for that is passed over without being held."""
    left, partial = MOST_BYTES, False
    while left > 0 and (line := file.readline(min(left, LONGEST_LINE))):
        left -= len(line)
        ended = line.endswith(b"\n")
        if not partial and (ended or len(line) < LONGEST_LINE) and b'"user"' in line:
            yield line
        partial = not ended


def _decode(line: bytes) -> _Row | None:
    try:
        return _ROW.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _said(row: _Row) -> str | None:
    """The prompt in a row; nothing where it holds a tool's result or a note of the CLI's own."""
    if row.type != "user" or row.message is None or row.is_meta or row.is_sidechain or row.is_compact_summary:
        return None
    content = row.message.content
    if isinstance(content, str):
        text = content
    elif any(block.type == "tool_result" for block in content):
        return None
    else:
        text = "\n".join(block.text for block in content if block.type == "text") or "(an image)"
    text = text.strip()
    if not text or text.startswith(_NOT_SAID):
        return None
    command = _COMMAND.search(text) if text.startswith("<command-") else None
    return f"{command['name']} {command['args'] or ''}".strip() if command else text
