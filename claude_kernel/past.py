"""Which conversation a notebook held before, and whether it can be gone on with. It reads files and decides nothing.

A notebook is known by its path, as Jupyter's server tells its kernels. A copy that was never opened here is known by
the ids that its own outputs carry. Those are a stranger's words: all they can do is name a conversation of one's own.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import psutil

from claude_kernel.journal import Journal, is_session_id, journals_of
from claude_kernel.kept import find_conversations, find_place
from claude_kernel.render import Bundle
from claude_kernel.render.bundle import Part, publish
from claude_kernel.render.cut import count_of
from claude_kernel.render.figures import age_text, dollars_text
from claude_kernel.render.visible import exact_html, exact_text, one_line

METADATA = "claude"
"""The key of what our outputs carry."""
_VARIABLE = "JPY_SESSION_NAME"
_LARGEST_NOTEBOOK = 256 * 2**20


class Where(Enum):
    HERE = "here"
    ELSEWHERE = "elsewhere"
    """It belongs to another folder."""
    GONE = "gone"


class Past(msgspec.Struct, frozen=True, kw_only=True):
    session_id: str
    where: Where
    prompts: int = 0
    first_prompt: str = ""
    at: float = 0.0
    cost_usd: float | None = None
    place: str = ""
    """Where in it the notebook had gone back to, and asked nothing since."""
    copied: bool = False
    """Held elsewhere first: the original may go on with the same conversation, so this one branches off."""

    def told(self) -> str:
        words = [
            count_of(self.prompts, "prompt") if self.prompts else "",
            age_text(time.time() - self.at) if self.at else "",
            dollars_text(self.cost_usd) if self.cost_usd else "",
        ]
        return ", ".join(word for word in words if word)

    def render(self) -> Bundle:
        """The question itself: go on, or begin anew?"""
        about = f" ({self.told()})" if self.told() else ""
        first = one_line(self.first_prompt, 160)
        sentence = f"This notebook has a conversation{about}."
        html = f"<p><b>{exact_html(sentence)}</b></p>"
        html += f'<p class="d" dir="auto">It began with: {exact_html(first)}</p>' if first else ""
        text = sentence + (f"\nIt began with: {exact_text(first)}" if first else "")
        return publish(Part(html, text))


def find_notebook(environ: Mapping[str, str] | None = None) -> Path | None:
    """The file behind this kernel. A kernel started from within another notebook inherits that one's name: then the
    program that started it has it as well, which a Jupyter server has not. A script around the kernel has it too, but
    was told the kernel's own connection file."""
    environ = os.environ if environ is None else environ
    named = environ.get(_VARIABLE, "")
    if not named.endswith(".ipynb") or not os.path.isabs(named):
        return None
    try:
        starter = psutil.Process(os.getppid())
        inherited = starter.environ().get(_VARIABLE) == named and not _is_told(starter, sys.argv)
    except (psutil.Error, OSError):
        inherited = False
    return None if inherited else Path(named)


def _is_told(starter: psutil.Process, argv: list[str]) -> bool:
    """Whether its command line names the connection file of this kernel."""
    files = [word for word in argv[1:] if word.endswith(".json")]
    return any(file in " ".join(starter.cmdline()) for file in files)


def find_past(journal: Journal, notebook: Path | None, folder: Path, *, demo: bool) -> Past | None:
    if journal.session_id:
        turns = journal.turns
        place = journal.find_place(len(turns)) if journal.went_back else None
        if journal.went_back and place is None:
            return None
        session_id = place.session_id if place is not None else journal.session_id
        return Past(
            session_id=session_id,
            place=place.place if place is not None else "",
            where=_where(session_id, folder, demo=demo),
            copied=session_id not in journal.sessions,
            prompts=len(turns),
            first_prompt=turns[0].prompt if turns else "",
            at=turns[-1].at if turns else 0.0,
            cost_usd=journal.cost_usd if journal.cost_known else None,
        )
    if notebook is None or journal.all:  # begun anew on purpose
        return None
    session_id = read_session(notebook)
    return _describe(session_id, folder, demo=demo) if session_id else None


def read_session(notebook: Path) -> str:
    """The session that the last answered cell of a saved notebook names, or none."""
    try:
        for cell in reversed(_read_cells(notebook)):
            for told in _metadata(cell):
                if is_session_id(told.get("session_id")):
                    return str(told["session_id"])
    except _NO_NOTEBOOK:
        return ""
    return ""


def is_another(journal: Journal, notebook: Path) -> bool:
    """Whether the file at this path is not the notebook that the journal is about: `Untitled.ipynb` is many. It was
    written after the last prompt, and holds none of the cells that asked."""
    asked = {turn.cell for turn in journal.all.values() if turn.cell}
    if not asked:
        return False
    try:
        written = notebook.stat().st_mtime
        names = [cell.get("id") for cell in _read_cells(notebook)]
    except _NO_NOTEBOOK:
        return False
    known = bool(asked.intersection(name for name in names if isinstance(name, str)))
    nameless = bool(names) and not any(names)  # older notebooks do not keep the ids of their cells
    return not known and not nameless and written > max(turn.at for turn in journal.all.values())


_NO_NOTEBOOK = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


def _read_cells(notebook: Path) -> list[dict[str, Any]]:
    if notebook.stat().st_size > _LARGEST_NOTEBOOK:
        raise ValueError("too large to be looked into")
    return list(json.loads(notebook.read_bytes())["cells"])


def _metadata(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for output in reversed(cell.get("outputs") or []):
        told = (output.get("metadata") or {}).get(METADATA)
        if isinstance(told, dict):
            yield told


def _describe(session_id: str, folder: Path, *, demo: bool) -> Past:
    where = _where(session_id, folder, demo=demo)
    for journal in journals_of(folder):
        turns = [turn for turn in journal.all.values() if turn.session_id == session_id]
        if turns:
            first, last = turns[0], turns[-1]
            told: dict[str, Any] = {"prompts": len(turns), "first_prompt": first.prompt, "at": last.at}
            return Past(session_id=session_id, where=where, copied=True, **told)
    kept = next((one for one in find_conversations(folder)[0] if one.id == session_id), None)
    if kept is None:
        return Past(session_id=session_id, where=where, copied=True)
    told = {"prompts": kept.prompts, "first_prompt": kept.first_prompt, "at": kept.changed}
    return Past(session_id=session_id, where=where, copied=True, **told)


def _where(session_id: str, folder: Path, *, demo: bool) -> Where:
    place = find_place(session_id, demo=demo)
    if place is None:
        return Where.GONE
    return Where.HERE if place == folder else Where.ELSEWHERE


def find_session(wanted: str, folder: Path, *, demo: bool) -> Where:
    """Of an id that a person named."""
    return _where(wanted, folder, demo=demo) if is_session_id(wanted) else Where.GONE
