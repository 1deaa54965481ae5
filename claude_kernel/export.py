"""The conversation of a notebook as Markdown and as JSON: prompts, answers, tools, decisions, costs, versions. Pure."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import msgspec
from markdown_it import MarkdownIt

from claude_kernel import __version__
from claude_kernel.journal import Journal, Turn
from claude_kernel.protocol import events as ev
from claude_kernel.recording import unpack
from claude_kernel.render import Bundle
from claude_kernel.render.figures import dollars_text, seconds_text
from claude_kernel.render.visible import one_line

_LONGEST_RESULT = 2_000
_MARKDOWN = MarkdownIt()
_AFTER = "what-comes-after"


def as_markdown(journal: Journal) -> str:
    title = one_line(journal.book.notebook.rpartition("/")[2], 200) or "Conversation"
    total = f", {dollars_text(journal.cost_usd)} in all" if journal.cost_known else ""
    parts = [f"# {title}", f"{len(journal.turns)} prompts{total}. Exported by claude-kernel {__version__}."]
    for number, turn in enumerate(journal.with_events(journal.turns), 1):
        parts += [f"## {number}", _quoted(turn.prompt), *_steps(turn), _footer(turn)]
    return "\n\n".join(part for part in parts if part) + "\n"


def as_json(journal: Journal) -> str:
    turns = [_turn(turn) for turn in journal.with_events(journal.turns)]
    whole = {
        "format": "claude-kernel conversation",
        "version": 1,
        "exported_by": f"claude-kernel {__version__}",
        "notebook": journal.book.notebook.rpartition("/")[2],
        "cost_usd": journal.cost_usd if journal.cost_known else None,
        "cost_by_model": journal.by_model,
        "turns": turns,
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _turn(turn: Turn) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(turn))
    return {"when": _when(turn)} | {name: fact for name, fact in facts.items() if name not in ("kind", "at", "after")}


def _steps(turn: Turn) -> Iterator[str]:
    results: dict[str, ev.ToolFinished] = {}
    entries = [what for _, what in unpack(msgspec.json.decode(turn.events))]
    for what in entries:
        if isinstance(what, ev.ToolFinished):
            results[what.tool_use_id] = what
    for what in entries:
        if (isinstance(what, ev.TextFinished) and what.parent is None) or isinstance(what, ev.LocalCommandPrinted):
            yield _held(what.text)
        elif isinstance(what, ev.ToolStarted):
            yield _call(what, results.get(what.tool_use_id))
        elif isinstance(what, Bundle):
            yield _quoted(what.text.strip())


def _call(started: ev.ToolStarted, finished: ev.ToolFinished | None) -> str:
    nested = " (by an agent)" if started.parent is not None else ""
    parts = [f"**{started.name}**{nested}", _fenced(json.dumps(started.input, indent=2, ensure_ascii=False), "json")]
    if finished is not None and finished.text.strip():
        failed = "It failed:" if finished.is_error else "Result:"
        text = finished.text
        cut = len(text) > _LONGEST_RESULT
        parts += [failed, _fenced(text[:_LONGEST_RESULT] + ("\n…" if cut else ""))]
    return "\n\n".join(parts)


def _footer(turn: Turn) -> str:
    facts = [
        _when(turn),
        turn.outcome if turn.outcome != ev.Outcome.FINISHED.value else "",
        turn.model,
        f"Claude Code {turn.version}" if turn.version else "",
        seconds_text(turn.seconds) if turn.seconds else "",
        dollars_text(turn.cost_usd) if turn.cost_usd is not None else "",
        f"session {turn.session_id}" if turn.session_id else "",
    ]
    return f"<sub>{' · '.join(fact for fact in facts if fact)}</sub>"


def _when(turn: Turn) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(turn.at))


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def _held(text: str) -> str:
    """As it is, if what follows would still stand outside of it: else an open fence or comment would swallow that."""
    parsed = _MARKDOWN.parse(f"{text}\n\n{_AFTER}")
    end = parsed[-2] if len(parsed) > 1 else None
    return text if end is not None and end.level == 1 and end.content == _AFTER else _fenced(text)


def _fenced(text: str, language: str = "") -> str:
    """In a fence longer than any within."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
