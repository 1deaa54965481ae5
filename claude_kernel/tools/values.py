"""A value in one line, at a cost that does not grow with it. None of the value's own code is run.

Shown are the types listed here, exactly: a subclass may answer for itself, so it is named and its attributes are read
as they stand in memory.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from typing import Any
from zoneinfo import ZoneInfo

from claude_kernel.tools import frames, statics

PRIVATE = "private"
_WINDOW = 20_000
"""A text is cleaned this far before it is cut: half a secret is one still."""
_MOST_BITS = 400
_MOST_DECIMAL_BYTES = 400


@dataclass(frozen=True)
class Sketch:
    """How far to look, and what to leave out."""

    hides: Callable[[str], bool]
    clean: Callable[[str], str]
    private_ids: Container[int] = ()
    depth: int = 2
    items: int = 5
    text: int = 60

    def line(self, value: object) -> str:
        return self._line(value, ())

    def _line(self, value: object, within: tuple[int, ...]) -> str:
        if id(value) in self.private_ids:
            return PRIVATE
        plain = statics.find_row(_PLAIN, type(value))
        if plain is not None:
            return plain(value)
        known = statics.find_row(_KNOWN, type(value))
        if known is not None:
            return known(self, value, within)
        library = frames.find_known(value)
        if library is not None:
            said = library.short(value, self.narrow().line)
            return said if library.scalar else f"<{statics.type_name(type(value))}, {said}>"
        if statics.is_class(value):
            return f"<class {statics.type_name(value)}>"  # type: ignore[arg-type]  # just asked
        if statics.is_module(value):
            return f"<module {self._text(statics.plain(statics.module_namespace(value).get('__name__')))}>"
        if statics.is_function(value):
            return f"<function {statics.function_name(value)}>"
        return self._object(value, within)

    def reaching(self, *, text: int, depth: int | None = None, items: int | None = None) -> Sketch:
        return replace(self, text=text, depth=depth or self.depth, items=items or self.items)

    def narrow(self) -> Sketch:
        """For a cell of a table, a default of a parameter."""
        return self.reaching(depth=1, items=3, text=40)

    def _breadth(self, within: tuple[int, ...]) -> int:
        """Less inside than outside: it multiplies."""
        return max(3, self.items // 4) if within else self.items

    def _text(self, text: str) -> str:
        """Cleaned, then cut."""
        cleaned = self.clean(text[:_WINDOW])
        more = len(cleaned) - self.text + max(0, len(text) - _WINDOW)
        return repr(cleaned) if more <= 0 else f"{cleaned[: self.text]!r}… {more:,} more characters"

    def _object(self, value: object, within: tuple[int, ...]) -> str:
        name = statics.type_name(type(value))
        if id(value) in within or len(within) >= self.depth:
            return f"<{name}>"
        held = statics.find_attributes(value)
        shown = [f"{key}={self._under(key, each, (*within, id(value)))}" for key, each in held[: self._breadth(within)]]
        return f"<{name}{' ' if shown else ''}{', '.join(shown)}{_more(len(held) - len(shown))}>"

    def _under(self, key: object, value: object, within: tuple[int, ...]) -> str:
        return PRIVATE if type(key) is str and self.hides(key) else self._line(value, within)

    def _items(self, value: Any, count: int, brackets: str, within: tuple[int, ...]) -> str:
        opening, closing = brackets.split(" ")
        if id(value) in within or (count and len(within) >= self.depth):
            return f"{opening}…{closing}"
        inside = (*within, id(value))
        shown = [self._line(each, inside) for each in _first(value, self._breadth(within))]
        comma = "," if type(value) is tuple and count == 1 else ""
        return f"{opening}{', '.join(shown)}{comma}{_more(count - len(shown))}{closing}"

    def _mapping(self, value: Any, within: tuple[int, ...]) -> str:
        count = dict.__len__(value)
        if id(value) in within or (count and len(within) >= self.depth):
            return "{…}"
        inside = (*within, id(value))
        shown = [
            f"{self._line(key, inside)}: {self._under(key, each, inside)}"
            for key, each in _first(dict.items(value), self._breadth(within))
        ]
        return f"{{{', '.join(shown)}{_more(count - len(shown))}}}"


def _first(values: Iterable[Any], count: int) -> list[Any]:
    return list(itertools.islice(values, count))


def _more(count: int) -> str:
    return f", … {count:,} more" if count > 0 else ""


def _integer(value: int) -> str:
    bits = value.bit_length()
    # Python itself refuses to write one of more than 4,300 digits.
    return repr(value) if bits <= _MOST_BITS else f"<int of about {int(bits * 0.30103) + 1:,} digits>"


def _bytes(sketch: Sketch, value: Any) -> str:
    more = len(value) - sketch.text
    text = sketch.clean(repr(bytes(value[:_WINDOW])))
    return text if more <= 0 else f"{text[: sketch.text]}…' … {more:,} more bytes"


def _decimal(value: Decimal) -> str:
    return str(value) if sys.getsizeof(value) <= _MOST_DECIMAL_BYTES else f"<Decimal of {sys.getsizeof(value):,} bytes>"


def _moment(value: Any) -> str:
    """A time zone of somebody's own class would be asked for its offset."""
    zone = type(value.tzinfo)
    if value.tzinfo is None or zone is timezone or zone is ZoneInfo:
        return str(value.isoformat())
    return f"{value.replace(tzinfo=None).isoformat()} in <{statics.type_name(zone)}>"


def _path(sketch: Sketch, value: Any) -> str:
    # From Python 3.12 on, the parts are joined when first asked for, whatever kind of text they are.
    if any(type(part) is not str for part in getattr(value, "_raw_paths", ())):
        return f"<{statics.type_name(type(value))}>"
    return f"{type(value).__name__}({sketch._text(statics.plain(value.__fspath__()))})"


def _range(value: range) -> str:
    step = "" if value.step == 1 else f", {_integer(value.step)}"
    return f"range({_integer(value.start)}, {_integer(value.stop)}{step})"


Writer = Callable[[Sketch, Any, tuple[int, ...]], str]
_PLAIN: dict[type, Callable[[Any], str]] = {
    int: _integer,
    range: _range,
    Decimal: _decimal,
    datetime: _moment,
    time: _moment,
    date: str,
    timedelta: str,
    timezone: lambda value: f"timezone({value.utcoffset(None)})",
}
_PLAIN |= dict.fromkeys((bool, float, complex, type(None), type(...), type(NotImplemented)), repr)
_KNOWN: dict[type, Writer] = {
    str: lambda sketch, value, _: sketch._text(value),
    bytes: lambda sketch, value, _: _bytes(sketch, value),
    bytearray: lambda sketch, value, _: f"bytearray({_bytes(sketch, value)})",
    list: lambda sketch, value, within: sketch._items(value, len(value), "[ ]", within),
    tuple: lambda sketch, value, within: sketch._items(value, len(value), "( )", within),
    set: lambda sketch, value, within: sketch._items(value, len(value), "{ }", within) if value else "set()",
    frozenset: lambda sketch, value, within: sketch._items(value, len(value), "frozenset({ })", within),
    deque: lambda sketch, value, within: sketch._items(value, len(value), "deque([ ])", within),
    Fraction: lambda sketch, value, within: "/".join(
        sketch._line(part, within) for part in (value._numerator, value._denominator)
    ),
}
_KNOWN |= dict.fromkeys((dict, OrderedDict, defaultdict, Counter), Sketch._mapping)
_KNOWN |= dict.fromkeys(
    (PosixPath, PurePosixPath, WindowsPath, PureWindowsPath), lambda sketch, value, _: _path(sketch, value)
)


def is_plain(value: object) -> bool:
    cls = type(value)
    return statics.find_row(_PLAIN, cls) is not None or statics.find_row(_KNOWN, cls) is not None


def find_length(value: object) -> int | None:
    """Of a container or text, also of a subclass: what C counts, not what the subclass says."""
    for kind in (str, bytes, bytearray, list, tuple, dict, set, frozenset, deque):
        if issubclass(type(value), kind):
            return int(kind.__len__(value))  # type: ignore[arg-type]  # just asked
    return None
