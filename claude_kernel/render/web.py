"""Bodies for the tools that go to the web, and for tools nobody has written a row for."""

from __future__ import annotations

import re
from html import escape

from claude_kernel.render.bundle import Part, join_parts
from claude_kernel.render.calls import CallState, ToolCall
from claude_kernel.render.cut import count_of
from claude_kernel.render.links import find_link
from claude_kernel.render.rows import (
    EMPTY,
    Note,
    View,
    compose_code,
    compose_list,
    compose_output,
    compose_prose,
    compose_quiet,
    list_in,
    number_in,
    pretty_json,
    text_in,
)
from claude_kernel.render.visible import exact_html, exact_text, loose_html, loose_text, one_line

_MOST_LINKS = 30
_IMAGE_SOURCE = re.compile(r"^\[Image: source: [^\n]*\]$", re.MULTILINE)


def compose_link(address: str, label: str = "") -> Part:
    """With its address in sight: a label alone could promise another place."""
    shown = one_line(label, 200)
    address = address[:2_000]
    target = find_link(address)
    name = loose_html(shown) if shown else exact_html(one_line(address))
    html = f'<a href="{escape(target)}" target="_blank" rel="noopener noreferrer">{name}</a>' if target else name
    aside = f' <span class="d">{exact_html(one_line(address, 100))}</span>' if shown else ""
    return Part(html + aside, f"{loose_text(shown)} {exact_text(address)}".strip())


def fetch_note(call: ToolCall, view: View) -> tuple[Note, ...]:  # noqa: ARG001  # a column of the table
    code, size = number_in(call.result, "code"), number_in(call.result, "bytes")
    status: Note = (str(code), "no") if code is not None and code >= 400 else ("", "")
    return (status, (f"{size / 1000:,.1f} kB", "") if size else ("", ""))


def fetch_body(call: ToolCall, view: View) -> Part:
    link = compose_link(text_in(call.input, "url"))
    answer = (text_in(call.result, "result") or call.text) if call.state is CallState.DONE else ""
    told = compose_prose(answer, view.with_room(view.room.at_most(60, 6_000))) if answer.strip() else EMPTY
    return join_parts([Part(f'<div class="sub">{link.html}</div>', link.text), told])


def _hits(call: ToolCall) -> list[tuple[str, str]]:
    found = []
    for entry in list_in(call.result, "results"):
        found += [(text_in(hit, "url"), text_in(hit, "title")) for hit in list_in(entry, "content")]
    return [hit for hit in found if hit[0]]


def web_search_note(call: ToolCall, view: View) -> tuple[Note, ...]:  # noqa: ARG001  # a column of the table
    return ((count_of(len(hits), "link"), ""),) if (hits := _hits(call)) else ()


def web_search_body(call: ToolCall, view: View) -> Part:
    hits = _hits(call)
    if hits:
        return compose_list(compose_link(url, title or url) for url, title in hits[:_MOST_LINKS])
    if call.state is not CallState.DONE:
        return EMPTY
    told = compose_output(call.text, view.room.at_most(60, 6_000))
    return told if told.html else compose_quiet("Nothing found.")


# --- anything else --------------------------------------------------------------------------------------------------


def generic_subject(call: ToolCall, view: View) -> str:
    """The first word or two of the input, whatever it is called."""
    for value in call.input.values():
        if isinstance(value, str) and value.strip():
            return view.path(value) if value.startswith("/") and "\n" not in value else value
        if isinstance(value, int | float):
            return str(value)
    return ""


def generic_body(call: ToolCall, view: View) -> Part:
    parts = []
    code = text_in(call.input, "code", "source", "script")
    if code and len(call.input) == 1:
        parts.append(compose_code(code, "python", view.room.shrunk(0.4), exact=True))
    elif call.input:
        parts.append(compose_code(pretty_json(call.input), "json", view.room.shrunk(0.4), exact=True))
    # where the CLI keeps an image that is shown right here
    answer = _IMAGE_SOURCE.sub("", call.text) if call.images else call.text
    if call.state is CallState.DONE and answer.strip():
        parts.append(compose_output(answer, view.room.shrunk(0.6), call.kept_at))
    elif call.state is CallState.DONE and not call.images:
        parts.append(compose_quiet("No output."))
    return join_parts(parts)


def structured_body(call: ToolCall, view: View) -> Part:
    return compose_code(pretty_json(call.input), "json", view.room)
