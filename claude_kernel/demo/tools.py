"""The demo's tools. They are real: they read, write and run. A row of the table each; permission is asked before."""

from __future__ import annotations

import asyncio
import difflib
import os
import re
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]
_SKIPPED = frozenset({"node_modules", "__pycache__", ".venv", "venv", ".ipynb_checkpoints"})
_MOST_FILES = 2000
_MOST_CHARS = 30_000
MOST_BYTES = 2_000_000
_MOST_LINES = 200
_SECONDS = 120.0


class Done(NamedTuple):
    text: str
    structured: Any = None
    failed: bool = False


class ToolFailed(Exception):
    """What the tool says of why it could not."""


async def read(folder: Path, given: Json) -> Done:
    path = folder / str(given["file_path"])
    lines = _text_of(path).splitlines()
    shown = lines[:_MOST_LINES]
    file = {
        "filePath": str(path),
        "content": "\n".join(shown),
        "numLines": len(shown),
        "startLine": 1,
        "totalLines": len(lines),
    }
    numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(shown, 1))
    return Done(numbered[:_MOST_CHARS], {"type": "text", "file": file})


async def glob(folder: Path, given: Json) -> Done:
    found = [str(path.relative_to(folder)) for path in walk(folder) if path.match(str(given["pattern"]))]
    return Done("\n".join(found) or "No files found", {"filenames": found, "numFiles": len(found)})


async def grep(folder: Path, given: Json) -> Done:
    pattern = re.compile(re.escape(str(given["pattern"])), re.IGNORECASE)
    hits = []
    for path in walk(folder):
        try:
            lines = _text_of(path).splitlines()
        except ToolFailed:
            continue
        name = path.relative_to(folder)
        hits += [f"{name}:{number}:{line[:200]}" for number, line in enumerate(lines, 1) if pattern.search(line)]
        if len(hits) >= _MOST_LINES:
            hits = hits[:_MOST_LINES]
            break
    files = sorted({hit.partition(":")[0] for hit in hits})
    content = "\n".join(hits)
    return Done(
        content or "No matches found",
        {"mode": "content", "content": content, "numLines": len(hits), "filenames": files, "numFiles": len(files)},
    )


async def write(folder: Path, given: Json) -> Done:
    path, content = folder / str(given["file_path"]), str(given["content"])
    before = _text_of(path) if path.exists() else None
    _save(path, content)
    structured = {
        "type": "create" if before is None else "update",
        "filePath": str(path),
        "content": content,
        "originalFile": before,
        "structuredPatch": [] if before is None else _patch(before, content),
    }
    return Done(f"{'Wrote' if before is None else 'Updated'} {path.name}.", structured)


async def edit(folder: Path, given: Json) -> Done:
    path, old, new = folder / str(given["file_path"]), str(given["old_string"]), str(given["new_string"])
    before = _text_of(path)
    if old not in before:
        raise ToolFailed(f"{path.name} does not hold “{old}”.")
    everywhere = bool(given.get("replace_all"))
    after = before.replace(old, new) if everywhere else before.replace(old, new, 1)
    _save(path, after)
    structured = {
        "filePath": str(path),
        "oldString": old,
        "newString": new,
        "originalFile": before,
        "structuredPatch": _patch(before, after),
        "replaceAll": everywhere,
    }
    return Done(f"Updated {path.name}.", structured)


async def bash(folder: Path, given: Json) -> Done:
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_shell(
            str(given["command"]),
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:  # a start that is cancelled half-way may never come to its end (CPython 3.11)
        _end((await starting).pid)
        raise
    try:
        async with asyncio.timeout(_SECONDS):
            out, err = (part.decode(errors="replace")[-_MOST_CHARS:] for part in await process.communicate())
    except TimeoutError:
        raise ToolFailed(f"Still running after {_SECONDS:.0f} s; stopped.") from None
    finally:
        _end(process.pid)
    out, err = out.rstrip("\n"), err.rstrip("\n")
    structured = {"stdout": out, "stderr": err, "interrupted": False}
    said = "\n".join(part for part in (out, err) if part)
    if process.returncode:
        return Done(f"Exit code {process.returncode}\n{said}", structured, failed=True)
    return Done(said or "(No output)", structured)


async def write_todos(_folder: Path, given: Json) -> Done:
    return Done("Noted.", {"oldTodos": [], "newTodos": given["todos"]})


TOOLS: dict[str, Callable[[Path, Json], Awaitable[Done]]] = {
    "Read": read,
    "Glob": glob,
    "Grep": grep,
    "Write": write,
    "Edit": edit,
    "Bash": bash,
    "TodoWrite": write_todos,
}


async def run_tool(name: str, folder: Path, given: Json) -> Done:
    """What goes wrong in a tool is its result, as with the real CLI."""
    try:
        return await TOOLS[name](folder, given)
    except (ToolFailed, OSError) as error:
        return Done(str(error), f"Error: {error}", failed=True)


def walk(folder: Path) -> Iterator[Path]:
    """The files below a folder, without hidden ones and what nobody wrote, in order and not without end."""
    left = _MOST_FILES
    for base, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield Path(base, name)
                left -= 1
        if left <= 0:
            return


def _text_of(path: Path) -> str:
    if not path.is_file():
        raise ToolFailed(f"There is no file {path.name}.")
    if path.stat().st_size > MOST_BYTES:
        raise ToolFailed(f"{path.name} is larger than this demo reads.")
    try:
        return path.read_bytes().decode()  # as text, its line ends would not survive an edit
    except UnicodeDecodeError:
        raise ToolFailed(f"{path.name} is not text.") from None


def _save(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode())


def _patch(before: str, after: str) -> list[Json]:
    old, new = before.splitlines(), after.splitlines()
    hunks = []
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(3):
        lines: list[str] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[i1:i2]]
            else:
                lines += [f"-{line}" for line in old[i1:i2]] + [f"+{line}" for line in new[j1:j2]]
        first, last = group[0], group[-1]
        hunks.append(
            {
                "oldStart": first[1] + 1,
                "oldLines": last[2] - first[1],
                "newStart": first[3] + 1,
                "newLines": last[4] - first[3],
                "lines": lines,
            }
        )
    return hunks


def _end(pid: int) -> None:
    """The command and whatever it started: a stopped turn leaves nothing running."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
