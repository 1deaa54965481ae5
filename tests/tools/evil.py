"""Objects that run code wherever they are asked for anything. Each call is noted in `asked`, and raises."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, NoReturn

asked: list[str] = []


def _trap(name: str) -> Callable[..., NoReturn]:
    def spring(*_args: object, **_keywords: object) -> NoReturn:
        asked.append(name)
        raise RuntimeError(f"{name} was called")

    return spring


_DUNDERS = (
    *("__repr__", "__str__", "__len__", "__getattr__", "__getattribute__", "__iter__", "__getitem__", "__contains__"),
    *(
        "__eq__",
        "__ne__",
        "__hash__",
        "__bool__",
        "__format__",
        "__dir__",
        "__array__",
        "__deepcopy__",
        "__reduce_ex__",
    ),
    *("__float__", "__int__", "__index__", "__call__", "__sizeof__", "__fspath__", "__missing__", "keys", "items"),
)
TRAPS: dict[str, Any] = {name: _trap(name) for name in _DUNDERS}
TRAPS |= {name: property(_trap(name)) for name in ("__class__", "shape", "dtype", "__wrapped__", "__signature__")}
META_TRAPS = {
    name: _trap(f"meta {name}")
    for name in ("__repr__", "__getattribute__", "__hash__", "__eq__", "__instancecheck__", "__subclasscheck__")
}
META_TRAPS |= {name: property(_trap(f"meta {name}")) for name in ("__name__", "__module__", "__doc__", "__dict__")}  # type: ignore[misc]  # a class body of another kind


class Plain:
    """Only the object is evil."""

    def __init__(self) -> None:
        self.held = 7


Evil: Any = type("Evil", (Plain,), {**TRAPS, "__doc__": "It bites.\n\nMore."})
EvilMeta: Any = type("EvilMeta", (type,), META_TRAPS)
Worse: Any = type.__call__(EvilMeta, "Worse", (Plain,), dict(TRAPS))
EvilDict: Any = type("EvilDict", (dict,), dict(TRAPS))
EvilText: Any = type("EvilText", (str,), dict(TRAPS))
EvilInt: Any = type("EvilInt", (int,), dict(TRAPS))
EvilZone: Any = type(
    "EvilZone",
    (datetime.tzinfo,),
    {**TRAPS, **{name: _trap(name) for name in ("utcoffset", "tzname", "dst", "fromutc")}},
)


class HonestZone(datetime.tzinfo):
    """Honest until it is turned."""

    def utcoffset(self, _moment: datetime.datetime | None) -> datetime.timedelta:
        return datetime.timedelta(hours=1)

    def dst(self, _moment: datetime.datetime | None) -> datetime.timedelta:
        return datetime.timedelta()

    def tzname(self, _moment: datetime.datetime | None) -> str:
        return "honest"


_TURNED = {**TRAPS, "utcoffset": _trap("utcoffset"), "dst": _trap("dst"), "tzname": _trap("tzname")}
del _TURNED["__class__"]  # a class that lives cannot get one


def turn(cls: type) -> None:
    """From now on each question to an instance is noted, and fails."""
    for name, trap in _TURNED.items():
        setattr(cls, name, trap)


def turn_back(cls: type) -> None:
    for name in _TURNED:
        delattr(cls, name)
