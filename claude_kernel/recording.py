"""One turn as it happened, with its times: to show it again, keep it, hand it on. It knows no file and no screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from claude_kernel.protocol import events as ev
from claude_kernel.render import Bundle
from claude_kernel.render.bundle import Part, publish

Entry: TypeAlias = tuple[float, "ev.Event | Bundle"]
"""Seconds since the turn began, and what happened: an event, or a line of ours that stood there."""

_KEPT: tuple[type[ev.Event], ...] = (
    ev.SessionStarted,
    ev.TextFinished,
    ev.ThinkingFinished,
    ev.ToolStarted,
    ev.ToolFinished,
    ev.TaskStarted,
    ev.TaskFinished,
    ev.LocalCommandPrinted,
    ev.ConversationCompacted,
    ev.ConversationLost,
    ev.RateLimited,
    ev.TurnEnded,
)
"""What is kept on disk. Text and thoughts are kept whole; their pieces are not."""
_SHOWN = (*_KEPT, ev.TextStreamed, ev.ThinkingStreamed, ev.MessageFinished, ev.QuestionAsked)
_BY_NAME = {kind.__name__: kind for kind in _KEPT}
_RECORD = "Record"

_LONGEST_TEXT = 8_000
_LONGEST_IMAGE = 200_000
_MOST_BYTES = 1_000_000
_SHORTEST_TEXT = 400
"""Where a turn with very many long results is cut to, so that it can be kept at all."""


class Recording:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._began = now()
        self._entries: list[Entry] = []
        self._pieces: list[str] = []
        self._growing: ev.TextStreamed | ev.ThinkingStreamed | None = None
        """The kind and parent of the pieces."""

    @property
    def seconds(self) -> float:
        return self._now() - self._began

    def note(self, event: ev.Event) -> None:
        kind = type(event)
        if isinstance(event, ev.TextStreamed | ev.ThinkingStreamed):
            growing = self._growing
            if growing is None or type(growing) is not kind or growing.parent != event.parent:
                self._close()
                self._growing = event
            self._pieces.append(event.text)
        elif kind in _SHOWN:
            self._close()
            self._entries.append((self.seconds, event))

    def record(self, bundle: Bundle) -> None:
        self._close()
        self._entries.append((self.seconds, bundle))

    def entries(self) -> list[Entry]:
        self._close()
        return list(self._entries)

    def _close(self) -> None:
        growing, self._growing = self._growing, None
        if growing is not None:
            whole = msgspec.structs.replace(growing, text="".join(self._pieces))
            self._entries.append((self.seconds, whole))
            self._pieces.clear()


# --- on disk --------------------------------------------------------------------------------------------------------


def pack(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """As JSON: long results are cut, large images left out."""
    kept = [(when, what) for when, what in entries if isinstance(what, (Bundle, *_KEPT))]
    packed = [_pack(when, what, _LONGEST_TEXT) for when, what in kept]
    if len(msgspec.json.encode(packed)) > _MOST_BYTES:
        packed = [_pack(when, what, _SHORTEST_TEXT) for when, what in kept]
    return packed


def unpack(packed: Iterable[Any]) -> Iterator[Entry]:
    """What cannot be understood, of another version or damaged, is passed over."""
    for row in packed:
        if not isinstance(row, dict):
            continue
        fields = {key: value for key, value in row.items() if key not in ("t", "e")}
        when, name = row.get("t"), row.get("e")
        when = float(when) if isinstance(when, int | float) else 0.0
        if name == _RECORD:
            # Through the sanitizer once more: a file may have been changed by anybody who can write it.
            yield when, publish(Part(_inner(str(fields.get("html") or "")), str(fields.get("text") or "")))
            continue
        kind = _BY_NAME.get(str(name))
        try:
            event = msgspec.convert(fields, kind) if kind is not None else None
        except msgspec.ValidationError:
            continue
        if isinstance(event, ev.TextFinished):
            yield when, ev.TextStreamed(text=event.text, parent=event.parent)
        if event is not None:
            yield when, event


def _pack(when: float, what: ev.Event | Bundle, longest: int) -> dict[str, Any]:
    row: dict[str, Any] = {"t": round(when, 2)}
    if isinstance(what, Bundle):
        return row | {"e": _RECORD, "html": what.html, "text": what.text}
    # What Claude said is what a conversation is: it is never cut.
    said = isinstance(what, ev.TextFinished)
    fields = {
        name: value if said else _cut(value, longest)
        for name in what.__struct_fields__
        if (value := msgspec.to_builtins(getattr(what, name))) not in (None, "", [], {}, False)
    }
    return row | {"e": type(what).__name__} | fields


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, str) and len(value) > longest:
        half = longest // 2
        return f"{value[:half]}\n… {len(value) - 2 * half:,} characters are not kept …\n{value[-half:]}"
    if isinstance(value, dict):
        if "media_type" in value and len(str(value.get("data"))) > 200:
            return value if len(str(value["data"])) <= _LONGEST_IMAGE else {**value, "data": ""}
        return {key: _cut(each, longest) for key, each in value.items()}
    return [_cut(each, longest) for each in value] if isinstance(value, list) else value


def _inner(html: str) -> str:
    """Without the frame that `publish` puts around it again."""
    start, end = html.find(">") + 1, html.rfind("</div>")
    return html[start:end] if html.startswith("<div") and end >= start else html
