"""The live namespace in words, and none of its own code run for them."""

from __future__ import annotations

import collections
import datetime
import functools
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from types import MethodType
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tools import evil

from claude_kernel.errors import UsageError
from claude_kernel.tools.privacy import Privacy
from claude_kernel.tools.variables import MOST_CHARACTERS, MOST_VARIABLES, inspect_variable, list_variables


@pytest.fixture(autouse=True)
def _nothing_was_asked() -> Iterator[None]:
    evil.asked.clear()
    yield
    assert evil.asked == []


@dataclass(slots=True)
class Point:
    """A place.

    Not said: the rest.
    """

    x: int
    y: str = "here"

    def moved(self) -> None:
        """It has one method."""


def plain_function(
    a: int, /, b: str = "x", *rest: object, c: Any = Point, api_key: str = "hunter2", **more: object
) -> str:
    """Does nothing,
    in two lines.

    And a second paragraph.
    """
    return f"{a}{b}{rest}{c}{api_key}{more}"


@functools.wraps(plain_function)
def wrapping(*args: Any, **keywords: Any) -> str:
    return plain_function(*args, **keywords)


def listed(privacy: Privacy | None = None, /, **namespace: object) -> str:
    return list_variables(namespace, (), privacy or Privacy())


def inspected(value: object, privacy: Privacy | None = None, /, **others: object) -> str:
    return inspect_variable({"it": value, **others}, "it", privacy or Privacy())


LINES = [
    (1, "int, 1"),
    (-5, "int, -5"),
    (True, "bool, True"),
    (None, "NoneType, None"),
    (1.5, "float, 1.5"),
    (1j, "complex, 1j"),
    (..., "ellipsis, Ellipsis"),
    ("a'b\n", 'str, length 4, "a\'b\\n"'),
    (b"ab", "bytes, length 2, b'ab'"),
    (bytearray(b"ab"), "bytearray, length 2, bytearray(b'ab')"),
    ([1, [2, [3]]], "list, length 2, [1, [2, […]]]"),
    ([], "list, length 0, []"),
    ((1,), "tuple, length 1, (1,)"),
    ((), "tuple, length 0, ()"),
    ({1}, "set, length 1, {1}"),
    (set(), "set, length 0, set()"),
    (frozenset({1}), "frozenset, length 1, frozenset({1})"),
    ({"a": {"b": 1}}, "dict, length 1, {'a': {'b': 1}}"),
    ({"a": 1, "password": "x"}, "dict, length 2, {'a': 1, 'password': private}"),
    (collections.Counter("aa"), "collections.Counter, length 1, {'a': 2}"),
    (collections.deque([1, 2]), "collections.deque, length 2, deque([1, 2])"),
    (range(3), "range, range(0, 3)"),
    (range(0, 9, 2), "range, range(0, 9, 2)"),
    (list(range(1_000)), "list, length 1,000, [0, 1, 2, 3, 4, … 995 more]"),
    ("x" * 1_000, f"str, length 1,000, '{'x' * 60}'… 940 more characters"),
    (b"x" * 1_000, f"bytes, length 1,000, b'{'x' * 58}…' … 940 more bytes"),
    (datetime.date(2020, 1, 2), "datetime.date, 2020-01-02"),
    (datetime.time(3, 4), "datetime.time, 03:04:00"),
    (datetime.timedelta(1), "datetime.timedelta, 1 day, 0:00:00"),
    (datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC), "datetime.datetime, 2020-01-02T00:00:00+00:00"),
    (datetime.datetime(2020, 7, 2, tzinfo=ZoneInfo("UTC")), "datetime.datetime, 2020-07-02T00:00:00+00:00"),
    (datetime.UTC, "datetime.timezone, timezone(0:00:00)"),
    (Decimal("1.50"), "decimal.Decimal, 1.50"),
    (Fraction(1, 3), "fractions.Fraction, 1/3"),
    (PurePosixPath("/a/b"), "pathlib.PurePosixPath, PurePosixPath('/a/b')"),
    (os, "modules: it (os)"),
    (object(), "object, <object>"),
    ([int, os, len, Point.moved], "list, length 4, [<class int>, <module 'os'>, <function len>, <function moved>]"),
]


@pytest.mark.parametrize(("value", "line"), LINES, ids=[line[:25] for _, line in LINES])
def test_a_value_of_a_known_type_is_shown_in_one_line(value: object, line: str) -> None:
    text = listed(it=value)
    assert text.splitlines()[-1] == (line if line.startswith("modules") else f"it: {line}")


def test_a_path_is_known_by_the_class_this_system_gives_it() -> None:
    assert f"Path('{Path.cwd()}')" in listed(it=Path.cwd())


def test_the_list_has_the_persons_own_names_and_leaves_modules_and_code_for_the_end() -> None:
    namespace = {
        "In": [],
        "_": 1,
        "__name__": "__main__",
        "x": 1,
        "js": json,
        "os": os,
        "Point": Point,
        "plain_function": plain_function,
        "api_token": "supersecretvalue",
        "diary": ["dear diary"],
        "y": 2,
        7: "not a name",
        "not a name": 1,
    }
    privacy = Privacy()
    privacy.mark("diary")
    assert list_variables(namespace, {"In": []}, privacy) == "\n".join(  # type: ignore[arg-type]  # anything may be a key
        [
            "x: int, 1",
            "api_token: private",
            "diary: private",
            "y: int, 2",
            "",
            "functions and classes:",
            "class Point(x: int, y: str = 'here')",
            (
                "def plain_function(a: int, /, b: str = 'x', *rest, c: Any = <class "
                f"{Point.__module__.partition('.')[0]}.Point>, api_key: str = private, **more) -> str"
            ),
            "",
            "modules: js (json), os",
        ]
    )
    assert list_variables({}, (), privacy) == "no variables"


def test_at_most_a_hundred_are_listed_and_the_rest_is_counted() -> None:
    lines = listed(**{f"x{number}": number for number in range(MOST_VARIABLES + 23)}).splitlines()
    assert len(lines) == MOST_VARIABLES + 1
    assert lines[-1] == "… 23 more variables"


def test_a_function_is_inspected_by_signature_and_first_paragraph() -> None:
    text = inspected(plain_function)
    assert text.startswith("it: function\nsignature (a: int, /, b: str = 'x', *rest")
    assert text.endswith("\nDoes nothing, in two lines.")
    assert "hunter2" not in text
    assert inspected(wrapping).splitlines()[1:] == text.splitlines()[1:]
    assert inspected(Point(1).moved).splitlines()[1:] == ["signature () -> None", "It has one method."]
    assert inspected(len).splitlines()[1] == "signature (obj, /)"


def test_a_class_an_object_and_a_module_are_inspected_as_they_stand() -> None:
    assert inspected(Point).splitlines()[1:] == [
        "signature (x: int, y: str = 'here')",
        "A place.",
        "methods: moved",
    ]
    assert inspected(Point(3)).splitlines()[1:] == [
        "A place.",
        "attributes, as they are held:",
        "  x: int, 3",
        "  y: str, length 4, 'here'",
    ]
    assert inspected(json).startswith("it: module\nJSON (JavaScript Object Notation)")


EVILS: list[tuple[str, object]] = [
    ("Evil", evil.Evil()),
    ("Worse", evil.Worse()),
    ("EvilDict", evil.EvilDict(a=1, b=2)),
    ("EvilText", evil.EvilText("x")),
    ("EvilInt", evil.EvilInt(5)),
    ("EvilZone", evil.EvilZone()),
]


@pytest.mark.parametrize(("name", "value"), EVILS, ids=[name for name, _ in EVILS])
def test_no_code_of_an_object_is_run(name: str, value: object) -> None:
    assert f"it: {evil.__name__.partition('.')[0]}.{name}" in listed(it=value)
    assert f"{evil.__name__.partition('.')[0]}.{name}" in inspected(value)
    for holding in ([value], (value,), Fraction(1), Point(value)):  # type: ignore[arg-type]  # on purpose
        inspected(holding)
        listed(it=holding)


def test_no_code_runs_for_classes_functions_and_moments_that_hold_such_objects() -> None:
    def function(a: Any = evil.Evil(), *, b: Any = evil.Worse()) -> None:  # noqa: B008 - the case at hand
        """Held."""

    part = Fraction(1, 2)
    part._numerator = evil.EvilInt(1)  # type: ignore[attr-defined]  # as arithmetic of a subclass may leave it
    holders = {
        "class_": evil.Worse,
        "function": function,
        "method": MethodType(evil.Evil(), 1),
        "moment": datetime.datetime(2020, 1, 1, tzinfo=evil.EvilZone()),
        "clock": datetime.time(1, tzinfo=evil.EvilZone()),
        "part": part,
        "path": PurePosixPath("a") if sys.version_info < (3, 12) else PurePosixPath(evil.EvilText("a")),
    }
    text = listed(**holders)
    assert "2020-01-01T00:00:00 in <" in text
    for name in holders:
        assert inspect_variable(holders, name, Privacy()).startswith(f"{name}: ")


def test_what_an_object_holds_is_read_without_asking_it() -> None:
    assert inspected(evil.Evil()).splitlines()[1:] == ["It bites.", "attributes, as they are held:", "  held: int, 7"]
    holder = evil.Plain()
    holder.__dict__ = evil.EvilDict(a=1, api_key="x")
    assert inspected(holder).splitlines()[3:] == ["  a: int, 1", "  api_key: private"]


def test_a_class_that_hides_its_dictionary_behind_a_property_is_not_asked_for_it() -> None:
    behind = type("Behind", (evil.Plain,), {"__dict__": property(evil._trap("__dict__"))})()
    assert "held: int, 7" in inspected(behind)


def test_a_subclass_is_counted_and_not_shown_by_value() -> None:
    class Config(dict[str, int]):
        pass

    text = listed(it=Config(a=1, b=2))
    assert text.endswith("Config, length 2, <tests.Config>".replace("tests.", f"{__name__.partition('.')[0]}."))


def test_what_contains_itself_ends() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    circle: dict[str, Any] = {}
    circle["self"] = circle
    ring = evil.Plain()
    ring.held = ring  # type: ignore[assignment]  # on purpose
    assert listed(it=loop) == "it: list, length 2, [1, […]]"
    assert listed(it=circle) == "it: dict, length 1, {'self': {…}}"
    assert inspected(ring).endswith("  held: tools.Plain, <tools.Plain held=<tools.Plain>>")


def test_the_huge_costs_nothing() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    huge = {
        "number": 1 << 3_321_928,
        "limits": range(1 << 3_321_928),
        "text": "x" * 30_000_000,
        "items": [0] * 10_000_000,
        "decimal": Decimal((0, (1,) * 100_000, 0)),
        "deep": deep,
        "wide": {number: f"{number}" * 20_000 for number in range(200)},
    }
    text = listed(**huge)
    for name in huge:
        assert len(inspect_variable(huge, name, Privacy())) <= MOST_CHARACTERS + 40
    assert "number: int, <int of about 1,000,001 digits>" in text
    assert "decimal: decimal.Decimal, <Decimal of " in text
    while deep:  # else it is taken apart by a deep recursion
        deep = deep.pop()


def test_a_cut_says_how_much_is_missing() -> None:
    text = inspected({f"key{number}": "z" * 350 for number in range(20)})
    assert len(text) <= MOST_CHARACTERS + 40
    assert text[MOST_CHARACTERS:].startswith("… ")
    assert text.endswith(" more characters")
    assert inspected("z" * 10_000).endswith("'… 7,000 more characters")


def test_lone_surrogates_can_be_sent() -> None:
    def documented() -> None: ...

    documented.__doc__ = "half \ud800"
    for value in ["\ud800", {"\ud800": "\udfff"}, documented]:
        assert "\\ud" in (inspected(value) + listed(it=value)).encode().decode()


@pytest.mark.parametrize("name", ["a.b", "a[0]", "a()", "__import__('os')", "", " a", "a;b"])
def test_nothing_is_evaluated(name: str) -> None:
    with pytest.raises(UsageError, match="nothing is evaluated"):
        inspect_variable({"a": [1]}, name, Privacy())


def test_an_unknown_name_is_answered_with_close_ones() -> None:
    namespace = {"customers": 1, "customer_ids": 2, "_customer": 3}
    with pytest.raises(UsageError, match=r"no variable `custmers`\. Names close to it: customers"):
        inspect_variable(namespace, "custmers", Privacy())
    with pytest.raises(UsageError, match="List the variables"):
        inspect_variable(namespace, "zzz" * 100_000, Privacy())


def test_a_private_one_is_refused_and_the_person_is_told_how_to_show_it() -> None:
    privacy = Privacy()
    privacy.mark("diary")
    namespace = {"diary": {"a": 1}, "api_token": "supersecretvalue"}
    for name in namespace:
        with pytest.raises(UsageError, match=f"private.*`%claude private --show {name}`"):
            inspect_variable(namespace, name, privacy)
        privacy.unmark(name)
        assert inspect_variable(namespace, name, privacy).startswith(f"{name}: ")


def test_what_is_private_is_so_under_any_name_and_in_any_container() -> None:
    privacy = Privacy()
    privacy.mark("diary")
    diary = {"a": "dear"}
    namespace = {"diary": diary, "alias": diary, "box": [diary, 1], "api_key": (), "empty": (), "secret": 1, "one": 1}
    lines = list_variables(namespace, (), privacy).splitlines()
    assert lines[1:3] == ["alias: private", "box: list, length 2, [private, 1]"]
    assert {"empty: tuple, length 0, ()", "one: int, 1"} <= set(lines)
    with pytest.raises(UsageError, match="private"):
        inspect_variable(namespace, "alias", privacy)


def test_code_is_private_only_where_it_was_marked() -> None:
    def get_token() -> None: ...

    privacy = Privacy()
    assert list_variables({"get_token": get_token, "secrets": json}, (), privacy).splitlines()[-3:] == [
        "def get_token() -> None",
        "",
        "modules: secrets (json)",
    ]
    privacy.mark("get_token")
    assert list_variables({"get_token": get_token}, (), privacy) == "get_token: private"


def test_a_hidden_value_is_shown_nowhere_not_even_in_part() -> None:
    secret = "correct horse 'battery' staple\n" * 20
    namespace = {"password": secret, "url": f"http://x/{secret}", "lines": [secret], "raw": "k=sk-ant-" + "a" * 90}
    text = list_variables(namespace, (), Privacy())
    for name in ("url", "lines", "raw"):
        text += inspect_variable(namespace, name, Privacy())
    assert "horse" not in text
    assert "sk-ant" not in text
    assert text.count("[secret]") == 6
