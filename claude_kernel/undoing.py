"""`%claude undo`: what a cell changed, shown first, then put back by Claude Code's own checkpoints, byte for byte.

What the files hold at that moment is kept beside them in our own folder, so that an undo loses nothing either.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from claude_kernel.conversation import Conversation, Stopped
from claude_kernel.desk import Desk
from claude_kernel.errors import CliRefused, UsageError
from claude_kernel.journal import Turn
from claude_kernel.prompts.offers import Offer
from claude_kernel.protocol import Allow, events
from claude_kernel.recording import unpack
from claude_kernel.render import Bundle, render_notice, render_record
from claude_kernel.render.bundle import Part, publish
from claude_kernel.render.changes import render_changes
from claude_kernel.render.cut import count_of
from claude_kernel.render.visible import exact_html, exact_text, one_line
from claude_kernel.reply import changed_file
from claude_kernel.trust import own_folder

_LARGEST_COMPARED = 1_000_000
_LARGEST_KEPT = 64 * 2**20
_MOST_COMMANDS = 8
_SUBJECTS = {"Bash": "command", "mcp__notebook__run_python": "code"}
"""What may have changed anything at all, and is not covered."""

_OFFERS = (
    Offer(key="y", label="Put them back", decision=Allow(), verdict="", scope="What they hold now is kept aside"),
    Offer(key="n", label="Leave them", decision=Allow(), verdict="", scope="Nothing is changed"),
)


async def undo(talk: Conversation, rest: list[str], desk: Desk) -> str:
    sure, rest = "--yes" in rest, [word for word in rest if word != "--yes"]
    at = _chosen(talk, rest, desk.cell)
    await talk.memory.go_on()
    turn, since = talk.journal.turns[at], talk.journal.with_events(talk.journal.turns[at:])
    files = await _find_changes(talk, turn)
    commands = [command for each in since for command in _commands(each)]
    if not files:
        return "\n\n".join(["There is nothing to put back: no file differs from before this cell.", *_told(commands)])
    befores = _find_befores(since, {path: _read(Path(path)) for path in files})
    desk.notice(
        render_changes(
            [(path, path in befores, befores.get(path), _read(Path(path))) for path in files], project=str(talk.folder)
        )
    )
    if commands:
        desk.notice(render_notice(" ".join(_told(commands)).replace("`", "")))
    if not sure:
        asked = _question(turn, len(files), len(since) - 1, own=bool(desk.cell) and turn.cell == desk.cell)
        try:
            chosen = await talk.choose(asked, _OFFERS, desk, lambda offer: _record(offer, len(files)))
        except Stopped as stopped:
            raise UsageError("The cell was stopped, so nothing was put back.") from stopped
        if chosen is None:
            raise UsageError("Nobody could be asked, so nothing was put back. `%claude undo --yes` does it unasked.")
        if chosen is not _OFFERS[0]:
            return ""
    aside = _keep_aside(files, talk.folder)
    try:
        await talk.session.request("rewind_files", user_message_id=turn.prompt_id)
    except CliRefused as refused:
        raise UsageError(f"Nothing was put back: {refused}") from refused
    return _report(files, talk.folder, aside)


def _question(turn: Turn, files: int, later: int, *, own: bool) -> Bundle:
    """`later`: how many prompts came after it. `own`: it is asked in the very cell that it is about."""
    prompt = one_line(turn.prompt, 60)
    cell = "this cell" if own else f"“{prompt}”" if prompt else "that cell"
    sentence = f"Put {count_of(files, 'file')} back to what {'it was' if files == 1 else 'they were'} before {cell}?"
    also = f"With it goes what {count_of(later, 'later prompt')} and you changed there since." if later else ""
    html = f"<p><b>{exact_html(sentence)}</b></p>" + (f'<p class="d">{also}</p>' if also else "")
    return publish(Part(html, "\n".join(filter(None, [exact_text(sentence), also]))))


def _chosen(talk: Conversation, rest: list[str], cell: str) -> int:
    """Which turn to undo: that of this very cell, else the last that changed a file; or the Nth from the end."""
    turns = talk.journal.turns
    if not turns:
        raise UsageError("There is nothing to undo: nothing was said in this conversation yet.")
    if rest:
        if not rest[0].isdecimal() or not 1 <= int(rest[0]) <= len(turns):
            raise UsageError(f"Say how many prompts to undo, from 1 to {len(turns)}: `%claude undo 2`.")
        return len(turns) - int(rest[0])
    own = [at for at, turn in enumerate(turns) if cell and turn.cell == cell]
    changed = [at for at, turn in enumerate(turns) if turn.files]
    return (own or changed or [len(turns) - 1])[-1]


async def _find_changes(talk: Conversation, turn: Turn) -> list[str]:
    """The dry run. A Claude Code without checkpoints refuses it, or says no in its answer."""
    try:
        answer = await talk.session.request("rewind_files", user_message_id=turn.prompt_id, dry_run=True)
    except CliRefused as refused:
        raise UsageError(f"Nothing can be put back: {refused}") from refused
    if answer.get("canRewind") is False:
        raise UsageError(
            f"Nothing can be put back: {answer.get('error') or 'there is no checkpoint.'} "
            "Claude Code keeps one for each prompt of this conversation that reached it."
        )
    return [str(path) for path in answer.get("filesChanged") or []]


# --- what happened --------------------------------------------------------------------------------------------------


def _entries(turn: Turn) -> Iterator[events.Event | Bundle]:
    return (what for _, what in unpack(msgspec.json.decode(turn.events)))


def _find_befores(turns: list[Turn], nows: dict[str, str | None]) -> dict[str, str | None]:
    """Each file's text before its first change, as the tools told it; `None` where it did not exist."""
    edits: dict[str, list[dict[str, Any]]] = {}
    for turn in turns:
        started: dict[str, events.ToolStarted] = {}
        for what in _entries(turn):
            if isinstance(what, events.ToolStarted):
                started[what.tool_use_id] = what
            elif isinstance(what, events.ToolFinished) and isinstance(what.result, dict):
                call = started.get(what.tool_use_id)
                path = changed_file(call) if call is not None and call.parent is None else None
                if path is not None:
                    edits.setdefault(path, []).append(what.result)
    befores = {path: _before(results, nows.get(path)) for path, results in edits.items()}
    return {path: before for path, before in befores.items() if before is not _UNKNOWN}  # type: ignore[misc]


_UNKNOWN = object()


def _before(results: list[dict[str, Any]], now: str | None) -> object:
    first = results[0]
    if first.get("type") == "create":
        return None
    before = first.get("originalFile")
    if isinstance(before, str):
        return before
    # A long file is not kept whole. What each edit changed is, so they are taken back one by one.
    text: object = _UNKNOWN if now is None else now
    for result in reversed(results):
        hunks = result.get("structuredPatch")
        text = _take_back(text, hunks) if isinstance(text, str) and isinstance(hunks, list) else _UNKNOWN
    return text


def _take_back(text: str, hunks: list[Any]) -> object:
    """The text before an edit; unknown where it is not what the edit left."""
    lines = text.split("\n")
    try:
        for hunk in reversed(hunks):
            changes = [str(line) for line in hunk["lines"]]
            left = [line[1:] for line in changes if line[:1] in (" ", "+")]
            start = int(hunk["newStart"]) - 1
            if any(line[:1] == "\\" for line in changes) or lines[start : start + len(left)] != left:
                return _UNKNOWN
            lines[start : start + len(left)] = [line[1:] for line in changes if line[:1] in (" ", "-")]
    except (LookupError, TypeError, ValueError):
        return _UNKNOWN
    return "\n".join(lines)


def _commands(turn: Turn) -> list[str]:
    """Those that ran, and the edits of agents, for which Claude Code keeps no checkpoint (2.1.326)."""
    started: dict[str, str] = {}
    ran = [] if turn.events != msgspec.Raw(b"[]") else [name for name in turn.tools if name in _SUBJECTS]  # `keep`
    for what in _entries(turn):
        if isinstance(what, events.ToolStarted):
            subject = what.input.get(_SUBJECTS.get(what.name, ""))
            edited = changed_file(what) if what.parent is not None else None
            if subject or edited:
                started[what.tool_use_id] = str(subject or f"an agent's edit of {edited}")
        elif isinstance(what, events.ToolFinished) and what.refused is None and what.tool_use_id in started:
            ran.append(started[what.tool_use_id])
    return ran


def _told(commands: list[str]) -> list[str]:
    if not commands:
        return []
    named = ", ".join(f"`{one_line(command, 60).replace('`', chr(39))}`" for command in commands[:_MOST_COMMANDS])
    more = f" and {len(commands) - _MOST_COMMANDS} more" if len(commands) > _MOST_COMMANDS else ""
    return [f"Not undone, whatever it changed: {named}{more}."]


# --- the files ------------------------------------------------------------------------------------------------------


def _read(path: Path) -> str | None:
    """Its text; nothing where there is none, or none to compare."""
    try:
        return path.read_text("utf-8") if path.stat().st_size <= _LARGEST_COMPARED else None
    except (OSError, UnicodeDecodeError):
        return None


def _keep_aside(files: list[str], folder: Path) -> Path | None:
    """Raises `UsageError` where that cannot be: an undo that would lose something is not begun."""
    aside = own_folder() / "claude-kernel" / "undone" / time.strftime("%Y-%m-%d-%H%M%S")
    there = [path for path in map(Path, files) if path.is_file()]
    if not there:
        return None
    try:
        number, plain = 2, aside
        while aside.exists():
            aside, number = plain.with_name(f"{plain.name}-{number}"), number + 1
        aside.mkdir(parents=True, mode=0o700)
        if sum(path.stat().st_size for path in there) > _LARGEST_KEPT:
            raise UsageError(f"What the files hold now is too large to be kept aside ({_LARGEST_KEPT >> 20} MiB).")
        for path in there:
            inside = path.relative_to(folder) if path.is_relative_to(folder) else Path(*path.parts[1:])
            target = aside / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(0o600)
    except OSError as error:
        raise UsageError(f"Nothing was put back: what the files hold now could not be kept ({error}).") from error
    return aside


def _report(files: list[str], folder: Path, aside: Path | None) -> str:
    def short(path: Path) -> str:
        return f"`{path.relative_to(folder) if path.is_relative_to(folder) else path}`"

    paths = [Path(path) for path in files]
    back = [short(path) for path in paths if path.exists()]
    removed = [short(path) for path in paths if not path.exists()]
    told = [f"Put back: {', '.join(back)}." if back else "", f"Removed: {', '.join(removed)}." if removed else ""]
    told.append(
        f"What {'it' if len(files) == 1 else 'they'} held is kept in `{_from_home(aside)}`."
        if aside is not None
        else ""
    )
    return " ".join(word for word in told if word)


def _from_home(path: Path) -> str:
    """Notebooks are shared: the name of one's home is nobody's business."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _record(offer: Offer | None, count: int) -> Bundle:
    if offer is _OFFERS[0]:
        return render_record("Undo", count_of(count, "file"))
    return render_notice("Nothing was put back.")
