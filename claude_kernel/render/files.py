"""Bodies for the tools that read, write and search files."""

from __future__ import annotations

import re

from claude_kernel.render.bundle import Part
from claude_kernel.render.calls import CallState, ToolCall
from claude_kernel.render.code import language_of
from claude_kernel.render.cut import count_of
from claude_kernel.render.diff import Diff, compare_texts, compose_diff, find_patch_diff
from claude_kernel.render.rows import (
    EMPTY,
    Note,
    View,
    compose_code,
    compose_output,
    compose_quiet,
    dict_in,
    list_in,
    number_in,
    text_in,
)

_NUMBERED_LINE = re.compile(r"^ *\d+(?:→|\t)", re.MULTILINE)
_REMINDER = re.compile(r"\s*<system-reminder>.*\Z", re.DOTALL)  # said to the model, not to the reader


def path_of(call: ToolCall, view: View) -> str:
    return view.path(text_in(call.input, "file_path", "notebook_path", "path") or ".")


def _whole_path(call: ToolCall) -> str:
    return text_in(call.input, "file_path", "notebook_path", "path")


# --- reading --------------------------------------------------------------------------------------------------------


def read_note(call: ToolCall, view: View) -> tuple[Note, ...]:  # noqa: ARG001  # a column of the table
    if call.state is not CallState.DONE or call.images:
        return ()
    lines = number_in(dict_in(call.result, "file"), "numLines")
    if lines is None and not call.text:
        return ()
    source = _source(call)
    if not source:
        return (("empty", ""),)
    return ((count_of(lines if lines is not None else source.count("\n") + 1, "line"), ""),)


def read_body(call: ToolCall, view: View) -> Part:
    """A file that was read is still there: its head is enough."""
    if call.state is not CallState.DONE or call.images:
        return EMPTY
    source = _source(call)
    if not source.strip("\n"):
        return compose_quiet("Nothing in the lines asked for." if "offset" in call.input else "The file is empty.")
    return compose_code(source, language_of(_whole_path(call)), view.room.at_most(40, 4_000))


def _source(call: ToolCall) -> str:
    content = text_in(dict_in(call.result, "file"), "content")
    if content or len(call.text) >= 200_000:
        return content or call.text
    return _NUMBERED_LINE.sub("", _REMINDER.sub("", call.text))


# --- writing --------------------------------------------------------------------------------------------------------


def difference(call: ToolCall) -> Diff | None:
    """None where there is nothing to compare: a new file, a notebook cell."""
    found = find_patch_diff(call.result.get("structuredPatch")) if isinstance(call.result, dict) else None
    if found:
        return found
    if text_in(call.result, "old_source") and text_in(call.result, "new_source"):
        return compare_texts(text_in(call.result, "old_source"), text_in(call.result, "new_source"), numbered=True)
    pairs = [(text_in(e, "old_string"), text_in(e, "new_string")) for e in list_in(call.input, "edits")]
    if "old_string" in call.input or "new_string" in call.input:
        pairs.append((text_in(call.input, "old_string"), text_in(call.input, "new_string")))
    if not pairs:
        return None
    diffs = [compare_texts(old, new) for old, new in pairs[:50]]
    hunks = tuple(hunk for diff in diffs for hunk in diff.hunks)
    return Diff(hunks, sum(d.added for d in diffs), sum(d.removed for d in diffs), numbered=False)


def change_note(call: ToolCall, view: View) -> tuple[Note, ...]:  # noqa: ARG001  # a column of the table
    diff = difference(call)
    if diff is None:
        content = text_in(call.input, "content", "new_source")
        return ((f"+{content.rstrip().count(chr(10)) + 1:,}", "ok"),) if content else ()
    notes = [(f"+{diff.added:,}", "ok") if diff.added else None, (f"−{diff.removed:,}", "no") if diff.removed else None]
    return tuple(note for note in notes if note)


def change_body(call: ToolCall, view: View) -> Part:
    diff = difference(call)
    language = language_of(_whole_path(call))
    if "new_source" in call.input:
        language = "markdown" if text_in(call.input, "cell_type") == "markdown" else "python"
    if diff is None:
        content = text_in(call.input, "content", "new_source")
        if not content:
            return _nothing_written(call)
        return compose_code(content, language, view.room.at_most(80, 8_000))
    if not diff.hunks:
        return compose_quiet("No difference.")
    return compose_diff(diff, language, view.room.at_most(100, 9_000))


def _nothing_written(call: ToolCall) -> Part:
    what = "cell" if call.name == "NotebookEdit" else "file"
    if text_in(call.input, "edit_mode") == "delete":
        return compose_quiet("The cell is deleted." if call.state is CallState.DONE else "The cell is to be deleted.")
    return compose_quiet(f"The {what} is empty." if call.state is CallState.DONE else f"The {what} is to be empty.")


# --- searching ------------------------------------------------------------------------------------------------------


def search_subject(call: ToolCall, view: View) -> str:
    places = [view.path(text_in(call.input, "path")), text_in(call.input, "glob"), text_in(call.input, "type")]
    where = " ".join(place for place in places if place)
    return f'"{text_in(call.input, "pattern")}"' + (f" in {where}" if where else "")


def pattern_of(call: ToolCall, view: View) -> str:
    where = view.path(text_in(call.input, "path"))
    return text_in(call.input, "pattern") + (f" in {where}" if where else "")


def search_note(call: ToolCall, view: View) -> tuple[Note, ...]:  # noqa: ARG001  # a column of the table
    """How many, in the result's own unit; a content search counts lines, as grep does."""
    if call.state is not CallState.DONE:
        return ()
    for keys, noun in ((("numMatches", "numLines"), "hit"), (("numFiles",), "file")):
        found = number_in(call.result, *keys)
        if found:
            return ((count_of(found, noun), ""),)
    if isinstance(call.result, dict):
        return (("nothing found", ""),)
    lines = [line for line in call.text.split("\n") if line.strip()]
    return ((count_of(len(lines), "line"), ""),) if lines else ()


def search_body(call: ToolCall, view: View) -> Part:
    if call.state is not CallState.DONE:
        return EMPTY
    names = [view.path(name) for name in list_in(call.result, "filenames")[:5_000] if isinstance(name, str)]
    found = text_in(call.result, "content") or "\n".join(names) or call.text
    shown = compose_output(found, view.room.at_most(60, 6_000), call.kept_at)
    return shown if shown.html else compose_quiet("Nothing found.")
