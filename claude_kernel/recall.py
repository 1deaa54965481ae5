"""What `%claude resume`, `sessions`, `rewind`, `last` and `export` do: the conversation's past, at a person's word."""

from __future__ import annotations

import os
import time
from pathlib import Path

from claude_kernel.conversation import Conversation
from claude_kernel.desk import Desk
from claude_kernel.errors import UsageError
from claude_kernel.export import as_json, as_markdown
from claude_kernel.journal import journals_of
from claude_kernel.kept import find_conversations
from claude_kernel.past import Where, find_session
from claude_kernel.render import render_notice
from claude_kernel.render.cut import count_of
from claude_kernel.render.figures import age_text, dollars_text
from claude_kernel.render.visible import one_line
from claude_kernel.tables import code, table

_MOST_LISTED = 30


async def resume(talk: Conversation, rest: list[str], _desk: Desk) -> str:
    if not rest:
        if talk.memory.past is None:
            raise UsageError("This notebook has no earlier conversation. `%claude sessions` lists this folder's.")
        if talk.memory.past.where is not Where.HERE:
            raise UsageError("This notebook's earlier conversation is not in this folder of this machine.")
        about = f" ({talk.memory.past.told()})" if talk.memory.past.told() else ""
        await talk.memory.go_on()
        return f"The next prompt goes on with this notebook's conversation{about}."
    wanted = rest[0]
    if wanted == talk.session.session_id and talk.memory.past is None:  # a branch that has not begun has no id yet
        return "That is the conversation of this notebook already."
    where = find_session(wanted, talk.folder, demo=talk.is_demo)
    if where is not Where.HERE:
        why = "belongs to another folder" if where is Where.ELSEWHERE else "is not known here"
        raise UsageError(f"The conversation `{one_line(wanted, 80)}` {why}. `%claude sessions` lists this folder's.")
    on_branch = "" if wanted in talk.journal.sessions else ", on a branch of its own"
    await talk.memory.go_on_with(wanted)
    return f"The next prompt goes on with `{wanted}`{on_branch}."


async def sessions(talk: Conversation, _rest: list[str], _desk: Desk) -> str:
    """This folder's: those of notebooks by their journals, those of terminals by the CLI's own files."""
    rows: dict[str, tuple[float, str, int, float | None]] = {}
    for journal in journals_of(talk.folder):
        for turn in journal.all.values():  # the last of each session stands for it
            way = journal.way_to(turn)
            costs = [own.cost_usd for own in way if own.session_id == turn.session_id and own.cost_usd is not None]
            rows[turn.session_id] = (turn.at, way[0].prompt, len(way), sum(costs) if costs else None)
    for kept in find_conversations(talk.folder)[0] if not talk.is_demo else ():
        if kept.id not in rows:
            rows[kept.id] = (kept.changed, kept.first_prompt, kept.prompts, None)
    newest = sorted(rows.items(), key=lambda row: -row[1][0])
    newest = [row for row in newest if find_session(row[0], talk.folder, demo=talk.is_demo) is Where.HERE]
    if not newest:
        return "No conversation was held in this folder yet."
    current = talk.session.session_id
    now = time.time()
    listed = [
        (
            f"`{session_id}`{' (this one)' if session_id == current else ''}",
            code(one_line(first, 60)) if first else "",
            age_text(now - at),
            str(count),
            dollars_text(cost) if cost is not None else "",
        )
        for session_id, (at, first, count, cost) in newest[:_MOST_LISTED]
    ]
    told = [table(("conversation", "began with", "last", "prompts", "cost"), listed, right=(3, 4))]
    if len(newest) > _MOST_LISTED:
        told.append(f"… and {len(newest) - _MOST_LISTED} older.")
    told.append("`%claude resume ID` goes on with one.")
    return "\n\n".join(told)


async def rewind(talk: Conversation, rest: list[str], desk: Desk) -> str:
    """To before this cell, where it was run before; else by so many prompts."""
    turns = talk.journal.turns
    if not turns:
        raise UsageError("There is nothing to take back: nothing was said in this conversation yet.")
    if rest:
        if not rest[0].isdecimal() or not 1 <= int(rest[0]) <= len(turns):
            raise UsageError(f"Say how many prompts to take back, from 1 to {len(turns)}: `%claude rewind 2`.")
        count = len(turns) - int(rest[0])
        await talk.memory.go_on()
        await talk.memory.go_back(count)
        now_last = f" The last one now is {code(one_line(turns[count - 1].prompt, 60))}." if count else ""
        return f"{count_of(int(rest[0]), 'prompt')} taken back.{now_last} What was said is kept: `%claude sessions`."
    before = talk.journal.find_cell(desk.cell)
    if before is None:
        raise UsageError(
            "This cell was not run in this conversation, so there is nothing to go back to before it. Write "
            "`%claude rewind` as the first line of a cell that was, or say how many prompts: `%claude rewind 2`."
        )
    await talk.memory.go_on()
    return await talk.memory.go_back(before)


async def last(talk: Conversation, _rest: list[str], desk: Desk) -> str:
    await talk.show_last(desk.paper, plain=desk.plain)
    return ""


async def export(talk: Conversation, rest: list[str], desk: Desk) -> str:
    """Both forms, side by side; nothing is overwritten."""
    journal = talk.journal
    if not journal.turns:
        raise UsageError("There is nothing to export: nothing was said in this notebook yet.")
    name = talk.memory.notebook.stem if talk.memory.notebook is not None else "conversation"
    stem = talk.folder / (rest[0] if rest else f"{name}-conversation")
    stem = stem.with_suffix("") if stem.suffix in (".md", ".json") else stem
    written = []
    stem = _free(stem)
    for suffix, text in ((".md", as_markdown(journal)), (".json", as_json(journal))):
        path = stem.with_name(stem.name + suffix)
        try:
            with path.open("x", encoding="utf-8", errors="replace") as file:
                file.write(text)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror or error}. Say another name.") from error
        written.append(path)
    if talk.memory.habits.keep != "all":
        desk.notice(render_notice("The setting `keep` leaves out what was said, so only figures were exported."))
    shown = [path.relative_to(talk.folder) if path.is_relative_to(talk.folder) else path for path in written]
    return "Written: " + ", ".join(f"`{path}`" for path in shown) + f" ({count_of(len(journal.turns), 'prompt')})."


def _free(stem: Path) -> Path:
    """The name as it is, or with a number where a file has it already."""
    number, free = 2, stem
    while any(os.path.lexists(f"{free}{suffix}") for suffix in (".md", ".json")):
        free = stem.with_name(f"{stem.name}-{number}")
        number += 1
    return free
