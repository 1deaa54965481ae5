"""What a notebook's conversation has done, on disk: one JSON line each, only ever appended, for its owner's eyes.

It is what survives a restart: which session the notebook held, which cell asked what, what that cost, and enough of
each turn to show it again. The CLI keeps its own transcripts; these lines say which of them belong together. A line
that cannot be read is passed over; a disk that cannot be written costs the memory, never the turn.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from claude_kernel.trust import own_folder

log = logging.getLogger("claude_kernel.journal")

_NOTHING = msgspec.Raw(b"[]")


class Line(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="kind"):
    """The base of lines."""

    at: float = 0.0
    """Seconds since the epoch."""


class Book(Line, tag="book"):
    """The first line: whose conversation this is."""

    notebook: str = ""
    folder: str = ""
    name: str = ""


class Turn(Line, tag="turn"):
    """One prompt and what came of it. Written when its session is known, and once more when it has ended."""

    prompt_id: str
    prompt: str = ""
    after: str = ""
    """The prompt before it in its conversation."""
    cell: str = ""
    session_id: str = ""
    place: str = ""
    outcome: str = ""
    """Empty: the turn never came to its end."""
    model: str = ""
    version: str = ""
    seconds: float = 0.0
    cost_usd: float | None = None
    by_model: dict[str, float] = {}
    input_tokens: int = 0
    output_tokens: int = 0
    tools: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """What its edits changed."""
    events: msgspec.Raw = _NOTHING
    """As `recording.pack` made them. In memory only where there is no file; see `Journal.with_events`."""


class Unasked(Line, tag="unasked"):
    """What an agent that came home between two cells has cost."""

    session_id: str = ""
    cost_usd: float | None = None
    by_model: dict[str, float] = {}


class Back(Line, tag="back"):
    """The conversation went back: only so many of its turns are part of it still."""

    turns: int


class Went(Line, tag="went"):
    """The notebook goes on with another session; with none, a new one begins."""

    session_id: str = ""


class Budget(Line, tag="budget"):
    usd: float | None = None


_LINE = msgspec.json.Decoder(Book | Turn | Unasked | Back | Went | Budget)
_SESSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{3,80}")


def is_session_id(text: object) -> bool:
    """Whether it could be one: such a word can be neither a path nor a flag."""
    return isinstance(text, str) and bool(_SESSION.fullmatch(text))


class Journal:
    """`path` is `None` where nothing is to be kept."""

    def __init__(self, path: Path | None, book: Book | None = None) -> None:
        self.path = path
        self.book = book or Book()
        self.turns: list[Turn] = []
        """Those that the conversation holds now."""
        self.all: dict[str, Turn] = {}
        """Every turn by its prompt's id, also of branches that were left."""
        self.unasked: list[Unasked] = []
        self.session_id = ""
        self.went_back = False
        """And nothing was asked since."""
        self.budget: float | None = None
        self.trouble = ""
        self._begun = False
        for line in read_lines(path) if path is not None else ():
            self._begun = True
            self._take(_light(line))

    @property
    def cost_usd(self) -> float:
        return sum(paid.cost_usd or 0.0 for paid in self._paid())

    @property
    def cost_known(self) -> bool:
        return any(paid.cost_usd is not None for paid in self._paid())

    @property
    def by_model(self) -> dict[str, float]:
        totals: dict[str, float] = {}
        for paid in self._paid():
            for model, cost in paid.by_model.items():
                totals[model] = totals.get(model, 0.0) + cost
        return totals

    @property
    def sessions(self) -> set[str]:
        """All that this notebook held itself."""
        return {turn.session_id for turn in self.all.values()}

    def with_events(self, turns: Sequence[Turn]) -> list[Turn]:
        """The same turns with what happened in them, which is read again: a thousand turns need not be held for it."""
        kept = {turn.prompt_id: turn for turn in turns}
        for line in read_lines(self.path) if self.path is not None else ():
            if isinstance(line, Turn) and line.prompt_id in kept and line.events != _NOTHING:
                kept[line.prompt_id] = line
        return list(kept.values())

    def add(self, line: Line) -> None:
        if self.path is None:
            self._take(line)
            return
        lines = [line] if self._begun else [self.book, line]
        try:
            if not self._begun:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _append(self.path, b"".join(msgspec.json.encode(each) + b"\n" for each in lines))
        except OSError as error:
            self._take(line)
            log.warning("the journal cannot be written", exc_info=True)
            self.trouble = (
                f"What is said here is not kept for after a restart: {self.path} cannot be written "
                f"({error.strerror or error})."
            )
        else:
            self._take(_light(line))
            self._begun, self.trouble = True, ""

    def put_aside(self) -> Journal:
        """For another notebook at the same path: a journal of its own. This one is still found by its folder."""
        if self.path is None:
            return Journal(None, self.book)
        with contextlib.suppress(OSError):
            self.path.rename(self.path.with_name(f"{uuid.uuid4().hex}.jsonl"))
        return Journal(self.path, self.book)

    def find_cell(self, cell: str) -> int | None:
        """Where in the conversation a cell was first run."""
        return next((at for at, turn in enumerate(self.turns) if cell and turn.cell == cell), None)

    def find_place(self, count: int) -> Turn | None:
        """Where the first `count` turns end, if the conversation can be taken back to there."""
        return next((turn for turn in reversed(self.turns[:count]) if turn.place), None)

    def _paid(self) -> Iterator[Turn | Unasked]:
        yield from self.all.values()
        yield from self.unasked

    def _take(self, line: Line) -> None:
        _TAKE[type(line)](self, line)

    def _take_book(self, line: Book) -> None:
        self.book = line

    def _take_turn(self, line: Turn) -> None:
        before = self.all.get(line.prompt_id)
        self.all[line.prompt_id] = line
        self.session_id = line.session_id or self.session_id
        self.went_back = False
        held = next((at for at, turn in enumerate(self.turns) if turn is before), None)
        if held is not None:
            self.turns[held] = line
        elif before is None:
            # Two kernels may write about one notebook: what came before is what the line says, not what stands above.
            follows = self.turns[-1].prompt_id if self.turns else ""
            self.turns = [*self.turns, line] if line.after == follows else self.way_to(line)

    def _take_unasked(self, line: Unasked) -> None:
        self.unasked.append(line)

    def _take_back(self, line: Back) -> None:
        del self.turns[line.turns :]
        self.went_back = True

    def _take_went(self, line: Went) -> None:
        self.session_id, self.went_back = line.session_id, False
        held = [turn for turn in self.all.values() if line.session_id and turn.session_id == line.session_id]
        self.turns = self.way_to(held[-1]) if held else []

    def way_to(self, turn: Turn) -> list[Turn]:
        """A conversation that branched off holds turns of the one it came from."""
        way = [turn]
        while (before := self.all.get(way[-1].after)) is not None and before not in way:
            way.append(before)
        return way[::-1]

    def _take_budget(self, line: Budget) -> None:
        self.budget = line.usd


_TAKE: dict[type[Line], Any] = {
    Book: Journal._take_book,
    Turn: Journal._take_turn,
    Unasked: Journal._take_unasked,
    Back: Journal._take_back,
    Went: Journal._take_went,
    Budget: Journal._take_budget,
}


# --- where it lies --------------------------------------------------------------------------------------------------


def _light(line: Line) -> Line:
    return msgspec.structs.replace(line, events=_NOTHING) if isinstance(line, Turn) else line


def open_journal(notebook: Path | None, folder: Path, name: str, environ: Mapping[str, str] | None = None) -> Journal:
    """A notebook has one for each name; what is no notebook (a console, a script) begins a new one each time."""
    book = Book(notebook=str(notebook or ""), folder=str(folder), name=name)
    key = f"{notebook}\0{name}" if notebook is not None else uuid.uuid4().hex
    file = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:32] + ".jsonl"
    return Journal(journals_folder(environ) / file, book)


def forget_old(days: int, environ: Mapping[str, str] | None = None) -> None:
    """Journals to which nothing was added for so long, and what undos had kept aside. 0: nothing is forgotten."""
    if days <= 0:
        return
    own, limit = own_folder(environ) / "claude-kernel", time.time() - 86_400 * days
    for path in (*own.glob("notebooks/*.jsonl"), *own.glob("undone/*")):
        with contextlib.suppress(OSError):
            if path.lstat().st_mtime < limit:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def journals_folder(environ: Mapping[str, str] | None = None) -> Path:
    return own_folder(environ) / "claude-kernel" / "notebooks"


def journals_of(folder: Path, environ: Mapping[str, str] | None = None) -> Iterator[Journal]:
    """All that were held in a folder."""
    try:
        paths = sorted(journals_folder(environ).glob("*.jsonl"))
    except OSError:
        return
    for path in paths:
        first = next(read_lines(path, most=1), None)
        if isinstance(first, Book) and first.folder == str(folder):
            yield Journal(path)


def _append(path: Path, written: bytes) -> None:
    """In one piece, as others may write as well. A line that was cut off stays alone on its own."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        if size := os.fstat(descriptor).st_size:
            file.seek(size - 1)
            written = written if file.read(1) == b"\n" else b"\n" + written
        if file.write(written) != len(written):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def read_lines(path: Path, most: int | None = None) -> Iterator[Line]:
    try:
        with path.open("rb") as file:
            for number, row in enumerate(file):
                if number == most:
                    return
                try:
                    yield _LINE.decode(row)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue
    except OSError:
        return
