"""What is kept of a conversation, so that it can be taken up again: the lines of its file, played once more.

Kept is what was said, the names of the rows that answered, and what files were before a tool changed them. It lies in
the person's own configuration folder, readable by nobody else. Where that cannot be written to, the demo goes on
without. It must not know the wire, nor what a tool does.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from claude_kernel.demo.checkpoints import Checkpoints

Json = dict[str, Any]

_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class NotKept(Exception):
    """There is no such conversation, or no such message in it. Says so in the real CLI's words."""


class Shelf:
    """A file of JSON lines for each conversation, and the contents of files by their hash."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._contents: dict[str, bytes] = {}
        self._writable = True

    def find_lines(self, session_id: str) -> list[Json] | None:
        try:
            written = self._path(session_id).read_bytes().splitlines()
        except OSError:
            return None
        return [line for line in map(_decode, written) if line is not None]

    def add_lines(self, session_id: str, lines: list[Json]) -> None:
        if _ID.fullmatch(session_id):  # whatever else it is, it is not to name a file
            self._write(self._path(session_id), b"".join(json.dumps(line).encode() + b"\n" for line in lines))

    def keep(self, content: bytes) -> str:
        name = hashlib.sha256(content).hexdigest()
        if name not in self._contents:
            self._contents[name] = content
            self._write(self._folder / "files" / name, content, once=True)
        return name

    def content(self, name: str) -> bytes:
        if name not in self._contents:
            self._contents[name] = (self._folder / "files" / name).read_bytes()
        return self._contents[name]

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{session_id}.jsonl"

    def _write(self, path: Path, content: bytes, *, once: bool = False) -> None:
        if not self._writable:
            return
        try:
            if once and path.exists():
                return
            self._folder.parent.parent.mkdir(parents=True, exist_ok=True)
            for folder in (self._folder.parent, self._folder, path.parent):
                folder.mkdir(mode=0o700, exist_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "wb") as file:
                file.write(content)
        except OSError:
            self._writable = False


class Spoken(NamedTuple):
    prompt: str
    uuids: list[str]
    """The prompt's own, then those of the rows that answered."""


class Conversation:
    """Each change is a line: the state is what its lines make of it. The first prompt brings them into the file."""

    def __init__(self, shelf: Shelf, folder: Path, session_id: str, *, checkpointing: bool) -> None:
        self.id = session_id
        self.turns: list[Spoken] = []
        self._shelf = shelf
        self._folder = str(folder)
        self._said_in = self._folder
        self._checkpointing = checkpointing
        self._checkpoints = Checkpoints(shelf)
        self._unwritten: list[Json] = []
        self._silent = True

    @property
    def prompts(self) -> list[str]:
        return [turn.prompt for turn in self.turns]

    # --- taking it up -------------------------------------------------------------------------------------------------

    def take_up(self, session_id: str) -> None:
        """That conversation goes on: as itself, or as a copy where this one has another id."""
        if not _ID.fullmatch(session_id):
            raise NotKept(
                "Error: --resume requires a valid session ID or session title when used with --print. "
                f'Usage: claude -p --resume <session-id|title>. Provided value "{session_id}" is not a UUID '
                "and does not match any session title."
            )
        lines = self._shelf.find_lines(session_id)
        if lines is None:
            raise NotKept(f"No conversation found with session ID: {session_id}")
        for line in lines:
            self._apply(line)
        if session_id != self.id:
            self._unwritten = lines

    def go_back(self, uuid: str) -> None:
        """To just after that message: what followed is forgotten, and can be reached in the original only."""
        if self._find(uuid) is None:
            raise NotKept(f"No message found with message.uuid of: {uuid}")
        self._add({"back_to": uuid})

    def anew(self) -> Conversation:
        return Conversation(self._shelf, Path(self._folder), str(uuid4()), checkpointing=self._checkpointing)

    # --- what happens -------------------------------------------------------------------------------------------------

    def say(self, prompt: str, uuid: str) -> None:
        self._silent = False
        self._add({"said": prompt, "uuid": uuid, "cwd": self._folder})
        if self._checkpointing:
            self._add({"checkpoint": uuid, "files": self._checkpoints.look_again()})

    def note_row(self, uuid: str) -> None:
        if self.turns:
            self._add({"row": uuid})

    def compact(self) -> None:
        self._add({"compacted": True})

    def note_change(self, path: Path) -> None:
        """A tool is about to change that file."""
        if self._checkpointing and (before := self._checkpoints.look_at(path)):
            self._add({"checkpoint": self._checkpoints.newest, "files": before})

    def rewind(self, uuid: str, *, dry_run: bool) -> Json:
        if not self._checkpointing:
            return {"canRewind": False, "error": "File rewinding is not enabled."}
        try:
            return self._checkpoints.rewind(uuid, dry_run=dry_run)
        except OSError as error:
            return {"canRewind": False, "error": f"Failed to rewind: {error}"}

    # --- lines --------------------------------------------------------------------------------------------------------

    def _add(self, line: Json) -> None:
        self._apply(line)
        self._unwritten.append(line)
        if not self._silent:
            self._shelf.add_lines(self.id, self._unwritten)
            self._unwritten = []

    def _apply(self, line: Json) -> None:
        match line:
            case {"said": prompt, "uuid": uuid, "cwd": folder}:
                self.turns.append(Spoken(prompt, [uuid]))
                self._said_in = folder
            case {"row": uuid} if self.turns:
                self.turns[-1].uuids.append(uuid)
            case {"compacted": _} if self.turns:
                self.turns[:] = [Spoken(f"(before: {len(self.turns)} prompts)", [])]
            case {"back_to": uuid} if (at := self._find(uuid)) is not None:
                del self.turns[at + 1 :]
                uuids = self.turns[at].uuids
                del uuids[uuids.index(uuid) + 1 :]
            case {"checkpoint": uuid, "files": files}:
                # As with the real CLI: another folder's files are none of ours.
                self._checkpoints.learn(uuid, files if self._said_in == self._folder else {})

    def _find(self, uuid: str) -> int | None:
        return next((at for at, turn in enumerate(self.turns) if uuid in turn.uuids), None)


def _decode(written: bytes) -> Json | None:
    """Nothing for a line that was cut off."""
    try:
        line = json.loads(written)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None
