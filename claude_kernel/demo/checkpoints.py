"""What files were at each prompt, and how they become that again. What the shell did to others is not covered.

A prompt's checkpoint holds every file that a tool has changed so far, as it was when the prompt came; a file changed
for the first time joins the newest one just before. It must not know prompts, turns or where contents are kept.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from claude_kernel.demo.tools import MOST_BYTES

Json = dict[str, Any]
Copies = dict[str, Json | None]
"""By path: `content`, the name under which it is kept, and `mode`; nothing where there was no file."""


class State(NamedTuple):
    content: bytes
    mode: int


class Keeper(Protocol):
    def keep(self, content: bytes) -> str: ...
    def content(self, name: str) -> bytes: ...


class Checkpoints:
    def __init__(self, keeper: Keeper) -> None:
        self.newest = ""
        self._keeper = keeper
        self._copies: dict[str, Copies] = {}
        self._first: Copies = {}

    def learn(self, prompt: str, copies: Copies) -> None:
        self.newest = prompt
        self._copies.setdefault(prompt, {}).update(copies)
        self._first = copies | self._first

    def look_again(self) -> Copies:
        """The files of all checkpoints, as they are now."""
        return {name: copy for path in self._first for name, copy in self._copy(Path(path)).items()}

    def look_at(self, path: Path) -> Copies:
        """A file that no checkpoint knows yet; nothing where one does, or while no prompt has one."""
        return {} if self.newest == "" or str(path) in self._first else self._copy(path)

    def rewind(self, prompt: str, *, dry_run: bool) -> Json:
        """The answer of the real CLI, whose numbers say what going back puts in and takes out."""
        copies = self._copies.get(prompt)
        if copies is None:
            return {"canRewind": False, "error": "No file checkpoint found for this message."}
        changed: list[str] = []
        put_in = taken_out = links = 0
        for path in map(Path, self._first):
            was = self._state(copies.get(str(path), self._first[str(path)]))
            if path.is_symlink():  # it was none when it was looked at
                links += 1
                continue
            now = _read(path)
            if now == was:
                continue
            changed.append(str(path))
            more, less = _count_lines(now.content if now else b"", was.content if was else b"")
            put_in, taken_out = put_in + more, taken_out + less
            if not dry_run:
                _put_back(path, was)
        if dry_run:
            return {"canRewind": True, "filesChanged": changed, "insertions": put_in, "deletions": taken_out}
        return {"canRewind": True, "skippedLinks": links}

    def _copy(self, path: Path) -> Copies:
        """Nothing of a file that no tool could read or change."""
        try:
            if path.is_file() and path.stat().st_size > MOST_BYTES:
                return {}
            state = _read(path)
        except OSError:
            return {}
        return {str(path): state and {"content": self._keeper.keep(state.content), "mode": state.mode}}

    def _state(self, copy: Json | None) -> State | None:
        return None if copy is None else State(self._keeper.content(copy["content"]), copy["mode"])


def _read(path: Path) -> State | None:
    return State(path.read_bytes(), path.stat().st_mode & 0o777) if path.is_file() else None


def _put_back(path: Path, state: State | None) -> None:
    if state is None:
        path.unlink()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(state.content)
    path.chmod(state.mode)


def _count_lines(before: bytes, after: bytes) -> tuple[int, int]:
    """How many lines are new, how many are gone."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    same = sum(block.size for block in difflib.SequenceMatcher(None, old, new).get_matching_blocks())
    return len(new) - same, len(old) - same
