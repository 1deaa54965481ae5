"""The question itself: a plain sentence, why it is asked, and exactly what would happen. Pure, and safe to show."""

from __future__ import annotations

import json
from collections.abc import Callable
from html import escape
from typing import Any, NamedTuple

import msgspec

from claude_kernel.prompts.scene import Scene
from claude_kernel.protocol import events
from claude_kernel.render import Bundle
from claude_kernel.render.bundle import Part, join_parts, publish
from claude_kernel.render.code import language_of
from claude_kernel.render.cut import Room, count_of, cut_text
from claude_kernel.render.diff import Diff, compare_texts, compose_diff
from claude_kernel.render.rows import (
    EMPTY,
    View,
    compose_code,
    compose_prose,
    indented,
    list_in,
    pretty_json,
    text_in,
)
from claude_kernel.render.visible import exact_html, exact_text, loose_html, loose_text, one_line

_SEEN = Room(lines=40, chars=4_000)
_WHOLE = Room(lines=20_000, chars=400_000)
"""Behind "All of it". Past this even that is cut, and says so."""
_LONGEST_DIFF_LINE = 400

_WANTS: dict[str, str] = {
    "Bash": "to run a command",
    "mcp__notebook__run_python": "to run Python in this notebook",
    "Edit": "to edit {file}",
    "MultiEdit": "to edit {file}",
    "Write": "to write {file}",
    "NotebookEdit": "to change a cell of {file}",
    "Read": "to read {file}",
    "NotebookRead": "to read {file}",
    "WebFetch": "to fetch a page",
    "WebSearch": "to search the web",
    "Task": "to start an agent",
    "Agent": "to start an agent",
    "Skill": "to use a skill",
    "EnterPlanMode": "to plan before it acts",
}


class Thing(msgspec.Struct, frozen=True):
    """What is asked, in the three parts of a card."""

    sentence: str
    why: Part
    body: Part

    def render(self) -> Bundle:
        """The card's text: heading, reason, the exact thing."""
        why = f'<p class="d" dir="auto">{self.why.html}</p>' if self.why.html else ""
        html = f"<p><b>{exact_html(self.sentence)}</b></p>{why}{self.body.html}"
        lines = [exact_text(self.sentence), self.why.text, indented(self.body.text) if self.body.text else ""]
        return publish(Part(html, "\n".join(line for line in lines if line)))


def compose_thing(question: events.Question, scene: Scene, before: str | None = None) -> Thing:
    if question.dialog is not None:
        return Thing(f"{question.dialog.server or 'An MCP server'} asks", _dialog_why(question.dialog), EMPTY)
    return Thing(sentence_of(question, scene), _why(question, scene), _body(question, scene, before))


def _body(question: events.Question, scene: Scene, before: str | None) -> Part:
    """A tool of the table is shown its own way; what its way does not show follows as JSON, so nothing is hidden."""
    if question.form:
        return EMPTY
    row = _BODIES.get(question.tool_name)
    if row is None or any(not isinstance(question.input.get(key, ""), str) for key in row.texts):
        return _any_input(question, scene, before)
    seen = row.compose(question, scene, before)
    rest = {key: value for key, value in question.input.items() if key not in row.shows and value not in (None, False)}
    return join_parts([seen, _json(rest)]) if rest else seen


# --- in words -------------------------------------------------------------------------------------------------------


def sentence_of(question: events.Question, scene: Scene) -> str:
    agent = scene.find_agent(question)
    who = f"An agent ({one_line(agent, 60)})" if agent else "Claude"
    if question.tool_name == "ExitPlanMode":
        return f"{who} has a plan"
    if question.tool_name == "AskUserQuestion":
        return f"{who} asks"
    wants = _WANTS.get(question.tool_name) or f"to use {_tool_title(question)}"
    path = text_in(question.input, "file_path", "notebook_path", "path")
    return f"{who} wants {wants.replace('{file}', one_line(path.rsplit('/', 1)[-1], 80) or 'a file')}"


def _tool_title(question: events.Question) -> str:
    server, _, name = question.tool_name.removeprefix("mcp__").partition("__")
    if question.tool_name.startswith("mcp__") and name:
        shown = question.display_name if question.display_name != question.tool_name else name
        return one_line(f"{shown} of {server}", 80)
    return one_line(question.display_name or question.tool_name, 80)


def _why(question: events.Question, scene: Scene) -> Part:
    parts = []
    given = [value.strip() for key, value in question.input.items() if key != "description" and isinstance(value, str)]
    described = question.description.strip()
    path = text_in(question.input, "file_path", "notebook_path")
    # the CLI describes a call without a description by its own input; that is shown below anyway
    begins_one = any(value.startswith(described.removesuffix("…")) for value in given)
    if described and not begins_one and not path.endswith(described):
        parts.append(_sentence(described))
    short = scene.short_path(path)
    if "{file}" in _WANTS.get(question.tool_name, "") and "/" in short:
        parts.append(_place("", short))
    blocked = question.blocked_path or (path if path and scene.is_outside(path) else "")
    if question.reason.strip() and not (blocked and "outside" in question.reason):
        parts.append(_sentence(question.reason.strip()))
    if blocked and scene.is_outside(blocked):
        parts.append(_place("Outside the project: ", blocked) if blocked != path else Part("Outside the project.", ""))
    return Part(" ".join(p.html for p in parts), " ".join(p.text or p.html for p in parts))


def _sentence(text: str) -> Part:
    text = one_line(text, 600)
    ended = text if text.endswith((".", "!", "?", "…", ":")) else text + "."
    return Part(loose_html(ended), loose_text(ended))


def _place(words: str, path: str) -> Part:
    return Part(f"{words}<code>{exact_html(path)}</code>", f"{words}{exact_text(path)}")


def _dialog_why(dialog: events.Dialog) -> Part:
    message = cut_text(dialog.message, Room(lines=20, chars=2_000)).joined()
    if not dialog.url:
        return Part(loose_html(message), loose_text(message))
    return Part(
        f'{loose_html(message)} <a href="{escape(dialog.url)}" target="_blank">{exact_html(dialog.url)}</a>',
        f"{loose_text(message)} {exact_text(dialog.url)}",
    )


# --- exactly what -----------------------------------------------------------------------------------------------------

Composer = Callable[[events.Question, Scene, "str | None"], Part]


def _remark(words: str) -> Part:
    return Part(f'<p class="d">{escape(words)}</p>', words)


def _unfolding(seen: Part, whole: Part, what: str) -> Part:
    folded = f"<details><summary><b>{escape(what)}</b></summary>{whole.html}</details>"
    return Part(seen.html + folded, seen.text)


def _code(source: str, language: str, *, exact: bool = False) -> Part:
    if not source.strip("\n"):
        return _remark("It is empty.")
    seen = compose_code(source, language, _SEEN, exact=exact)
    if not cut_text(source.strip("\n"), _SEEN).left_out:
        return seen
    whole = compose_code(source, language, _WHOLE, exact=exact)
    lines = count_of(source.count("\n") + 1, "line")
    return _unfolding(seen, whole, f"All of it: {lines}, {len(source):,} characters")


def _command(question: events.Question, _scene: Scene, _before: str | None) -> Part:
    return _code(text_in(question.input, "command"), "bash", exact=True)


def _python(question: events.Question, _scene: Scene, _before: str | None) -> Part:
    return _code(text_in(question.input, "code"), "python", exact=True)


def _change(question: events.Question, scene: Scene, before: str | None) -> Part:
    given = question.input
    language = language_of(text_in(given, "file_path"))
    pairs = [(text_in(e, "old_string"), text_in(e, "new_string"), _all(e)) for e in list_in(given, "edits")]
    if "old_string" in given or "new_string" in given:
        pairs.append((text_in(given, "old_string"), text_in(given, "new_string"), _all(given)))
    after = _applied(before, pairs)
    if before is not None and after is not None:
        diff = compare_texts(before, after, numbered=True)
    else:  # the file is not as the edit expects it: the two texts themselves
        diffs = [compare_texts(old, new) for old, new, _ in pairs[:50]]
        added, removed = sum(diff.added for diff in diffs), sum(diff.removed for diff in diffs)
        diff = Diff(tuple(hunk for diff in diffs for hunk in diff.hunks), added, removed, numbered=False)
    if not pairs or (len(pairs) > 50 and after is None):
        return _any_input(question, scene, before)
    return _diff(diff, language, "\n".join(new for _, new, _ in pairs))


def _all(edit: Any) -> bool:
    return isinstance(edit, dict) and edit.get("replace_all") is True


def _applied(before: str | None, pairs: list[tuple[str, str, bool]]) -> str | None:
    """The file as it would be; None where an edit would not find its place."""
    after = before
    for old, new, everywhere in pairs:
        if after is None or not old or old not in after:
            return None
        after = after.replace(old, new) if everywhere else after.replace(old, new, 1)
    return after


def _write(question: events.Question, _scene: Scene, before: str | None) -> Part:
    content, language = text_in(question.input, "content"), language_of(text_in(question.input, "file_path"))
    if not content:
        return _remark("The file would be empty.")
    if before is None:
        return _code(content, language)
    return _diff(compare_texts(before, content, numbered=True), language, content)


def _diff(diff: Diff, language: str, new_text: str) -> Part:
    if not diff.hunks:
        same = _remark("Nothing would change.")
        return join_parts([same, _code(new_text, language)]) if new_text else same
    seen = compose_diff(diff, language, Room(lines=60, chars=8_000))
    rows = [line for hunk in diff.hunks for line in hunk]
    size = sum(len(line.text) + 1 for line in rows)
    long_lines = any(len(line.text) > _LONGEST_DIFF_LINE for line in rows)
    shown_all = diff.added + diff.removed == sum(line.sign != " " for line in rows)
    if len(rows) <= 60 and size <= 8_000 and not long_lines and shown_all:
        return seen
    whole = compose_diff(diff, language, _WHOLE)
    if long_lines or not shown_all:  # a difference cuts long lines: the new text itself does not
        whole = join_parts([whole, compose_code(new_text, language, _WHOLE)])
    return _unfolding(seen, whole, f"All of it: +{diff.added:,} −{diff.removed:,} lines")


def _cell(question: events.Question, _scene: Scene, _before: str | None) -> Part:
    language = "markdown" if text_in(question.input, "cell_type") == "markdown" else "python"
    source = text_in(question.input, "new_source")
    if text_in(question.input, "edit_mode") == "delete":
        return _remark("The cell would be deleted.")
    return _code(source, language) if source else _remark("The cell would be empty.")


def _plan(question: events.Question, scene: Scene, _before: str | None) -> Part:
    plan = scene.find_plan(question)
    if not plan.strip():
        return _remark("Claude Code did not send the plan with the question; it is in the conversation above.")
    view = View(project=scene.project, room=Room(lines=200, chars=20_000))
    seen = compose_prose(plan, view)
    if not cut_text(plan.strip(), view.room).left_out:
        return seen
    return _unfolding(seen, compose_code(plan, "markdown", _WHOLE), f"All of it: {len(plan):,} characters")


def _page(question: events.Question, _scene: Scene, _before: str | None) -> Part:
    shown = compose_code(text_in(question.input, "url", "query"), "", _WHOLE, exact=True)
    asked = text_in(question.input, "prompt")
    return join_parts([shown, _code(asked, "")]) if asked else shown


def _nothing_more(_question: events.Question, _scene: Scene, _before: str | None) -> Part:
    """The path stands in the reason already."""
    return EMPTY


def _any_input(question: events.Question, _scene: Scene, _before: str | None) -> Part:
    return _json(question.input) if question.input else _remark("No input.")


def _json(value: dict[str, Any]) -> Part:
    """`pretty_json` trims long strings and deep trees, and says where; the whole is behind it."""
    shown, whole = pretty_json(value), json.dumps(value, indent=2, ensure_ascii=False)
    seen = compose_code(shown, "json", _SEEN, exact=True)
    if shown == whole and not cut_text(shown, _SEEN).left_out:
        return seen
    return _unfolding(seen, compose_code(whole, "json", _WHOLE, exact=True), f"All of it: {len(whole):,} characters")


class Body(NamedTuple):
    compose: Composer
    shows: frozenset[str]
    """The keys of the input that a person then sees, here or in the reason."""
    texts: tuple[str, ...] = ()
    """Those that must be text; a tool that lies about them is shown as JSON."""


def _row(compose: Composer, shows: str, texts: str = "") -> Body:
    return Body(compose, frozenset(shows.split()), tuple(texts.split()))


_EDIT = _row(_change, "file_path old_string new_string edits", "file_path old_string new_string")
_READ = _row(_nothing_more, "file_path notebook_path", "file_path notebook_path")

_BODIES: dict[str, Body] = {
    "Bash": _row(_command, "command description", "command"),
    "mcp__notebook__run_python": _row(_python, "code", "code"),
    "Edit": _EDIT,
    "MultiEdit": _EDIT,
    "Write": _row(_write, "file_path content", "file_path content"),
    "NotebookEdit": _row(_cell, "new_source notebook_path", "new_source notebook_path"),
    "Read": _READ,
    "NotebookRead": _READ,
    "WebFetch": _row(_page, "url prompt", "url prompt"),
    "WebSearch": _row(_page, "query", "query"),
    "ExitPlanMode": _row(_plan, "plan planFilePath", "plan"),
}
