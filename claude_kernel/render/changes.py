"""What an undo would take back: a row for each file, with the difference between then and now."""

from __future__ import annotations

from collections.abc import Iterable

from claude_kernel.render.bundle import Bundle, join_parts, publish
from claude_kernel.render.code import language_of
from claude_kernel.render.cut import Room
from claude_kernel.render.diff import compare_texts, compose_diff
from claude_kernel.render.rows import EMPTY, Note, View, compose_quiet, compose_row

_ROOM = Room(lines=100, chars=9_000)
_OPENED = 3
"""Beyond so many files the rows are closed."""


def render_changes(files: Iterable[tuple[str, bool, str | None, str | None]], *, project: str) -> Bundle:
    """Of each file: its path, whether its text before is known, that text (`None`: there was no file), and its text now
    (`None`: there is none, or none that can be shown)."""
    view = View(project=project)
    rows = list(files)
    parts = []
    for path, known, before, now in rows:
        subject, notes, title, body = view.path(path), list[Note](), "Changed", EMPTY
        if not known or (now is None and before is None):
            body = compose_quiet("What changed in it cannot be shown; it is put back all the same.")
        elif before is None:
            title, body = "Added", compose_quiet("It did not exist before: it would be removed.")
        else:
            diff = compare_texts(before, now or "", numbered=True)
            notes = [(f"+{diff.added:,}", "ok"), (f"−{diff.removed:,}", "no")]
            body = compose_diff(diff, language_of(path), _ROOM)
            title = "Deleted" if now is None else "Changed"
        parts.append(compose_row(title, subject, notes, body, opened=len(rows) <= _OPENED, plain=body))
    return publish(join_parts(parts))
