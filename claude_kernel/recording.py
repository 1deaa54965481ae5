"""One turn as it happened, with its times: to show it again, keep it, hand it on. It knows no file and no screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
_GROWING = frozenset((ev.TextStreamed, ev.ThinkingStreamed))
_SHOWN = frozenset((*_KEPT, ev.MessageFinished, ev.QuestionAsked))
_BY_NAME = {kind.__name__: kind for kind in _KEPT}
_RECORD = "Record"

Clean = Callable[[str], str]
"""Makes a text fit to be kept: what is secret is taken out of it."""

_LONGEST_TEXT = 8_000
_IMAGE_TIMES = 25
"""An image may be so many times as long as a text."""
_SPARE = 4_000
"""A text is cleaned this far beyond where it is cut: half a secret is one still."""
_MOST_BYTES = 1_000_000
_LONGEST_SECONDS = 1e9
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
        if kind in _GROWING:
            growing = self._growing
            if growing is None or type(growing) is not kind or growing.parent != event.parent:  # type: ignore[attr-defined]
                self._close()
                self._growing = event  # type: ignore[assignment]  # one of those that grow
            self._pieces.append(event.text)  # type: ignore[attr-defined]
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


def pack(entries: Sequence[Entry], clean: Clean = str) -> list[dict[str, Any]]:
    """As JSON: long results are cut, large images left out."""
    kept = [(when, what) for when, what in _whole(entries) if isinstance(what, (Bundle, *_KEPT))]
    packed = [_pack(when, what, _LONGEST_TEXT, clean) for when, what in kept]
    if len(msgspec.json.encode(packed)) > _MOST_BYTES:
        packed = [_pack(when, what, _SHORTEST_TEXT, clean) for when, what in kept]
    return packed


def _whole(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Text that broke off is as whole as it will ever be."""
    growing: dict[str | None, Entry] = {}
    for when, what in entries:
        if isinstance(what, ev.TextStreamed):
            _, before = growing.get(what.parent, (when, None))
            said = before.text + what.text if isinstance(before, ev.TextFinished) else what.text
            growing[what.parent] = (when, ev.TextFinished(text=said, parent=what.parent))
            continue
        if isinstance(what, ev.TextFinished):
            growing.pop(what.parent, None)
        elif isinstance(what, ev.TurnEnded):
            yield from growing.values()
            growing.clear()
        yield when, what
    yield from growing.values()


def unpack(packed: object) -> Iterator[Entry]:
    """What cannot be understood, of another version or damaged, is passed over."""
    for row in packed if isinstance(packed, list) else ():
        if not isinstance(row, dict):
            continue
        fields = {key: value for key, value in row.items() if key not in ("t", "e")}
        when, name = row.get("t"), row.get("e")
        when = float(when) if isinstance(when, int | float) and abs(when) < _LONGEST_SECONDS else 0.0
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


def _pack(when: float, what: ev.Event | Bundle, longest: int, clean: Clean) -> dict[str, Any]:
    row: dict[str, Any] = {"t": round(when, 2)}
    if isinstance(what, Bundle):
        return row | {"e": _RECORD, "html": clean(what.html), "text": clean(what.text)}
    # What Claude said is what a conversation is: it is never cut.
    said = isinstance(what, ev.TextFinished)
    fields: dict[str, Any] = {}
    for field in msgspec.structs.fields(type(what)):
        value = msgspec.to_builtins(getattr(what, field.name))
        if field.required or (value is not False and value not in (None, "", [], (), {})):
            fields[field.name] = clean(value) if said and isinstance(value, str) else _cut(value, longest, clean)
    return row | {"e": type(what).__name__} | fields


def _cut(value: Any, longest: int, clean: Clean) -> Any:
    if isinstance(value, str):
        if len(value) <= longest:
            return clean(value)
        half = longest // 2
        head, tail = clean(value[: half + _SPARE])[:half], clean(value[-half - _SPARE :])[-half:]
        return f"{head}\n… {len(value) - 2 * half:,} characters are not kept …\n{tail}"
    if isinstance(value, dict):
        if "media_type" in value and isinstance(value.get("data"), str):
            return value if len(value["data"]) <= _IMAGE_TIMES * longest else {**value, "data": ""}
        return {key: _cut(each, longest, clean) for key, each in value.items() if not _is_cut_file(key, each, longest)}
    return [_cut(each, longest, clean) for each in value] if isinstance(value, list | tuple) else value


def _is_cut_file(key: object, value: object, longest: int) -> bool:
    """A file that was edited, with a piece missing: nothing can be compared with that."""
    return key == "originalFile" and isinstance(value, str) and len(value) > longest


def _inner(html: str) -> str:
    """Without the frame that `publish` puts around it again."""
    start, end = html.find(">") + 1, html.rfind("</div>")
    return html[start:end] if html.startswith("<div") and end >= start else html
