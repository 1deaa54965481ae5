"""What can be wanted of an answer, how it is asked for, and what comes of it."""

from __future__ import annotations

import datetime
import enum
import json
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest

from claude_kernel.errors import UsageError
from claude_kernel.typed import Wanted


@dataclass
class Person:
    name: str
    age: int
    children: list[Person] = field(default_factory=list)


class Place(TypedDict):
    town: str


class Point(NamedTuple):
    x: int
    label: str


class Circle(msgspec.Struct, tag=True):
    radius: float


class Square(msgspec.Struct, tag=True):
    side: float
    discriminator: str = ""


class Colour(enum.Enum):
    RED = "red"


class Model(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(ge=0)


class Node(pydantic.BaseModel):
    below: list[Node] = []


class Strict(pydantic.BaseModel, strict=True):
    day: datetime.date
    pair: tuple[int, str]


class Numbers(pydantic.RootModel[list[int]]):
    pass


@dataclass
class Household:
    head: Model


ANN = {"name": "Ann", "age": 40, "children": [{"name": "Bob", "age": 7, "children": []}]}

OBJECTS: list[tuple[Any, Any, Any]] = [
    (Person, ANN, Person("Ann", 40, [Person("Bob", 7)])),
    (Place, {"town": "Ulm"}, {"town": "Ulm"}),
    (Circle, {"type": "Circle", "radius": 2}, Circle(2.0)),
    (Square, {"type": "Square", "side": 1.5, "discriminator": "d"}, Square(1.5, "d")),
    (dict[int, str], {"3": "three"}, {3: "three"}),
    (Model, {"name": "Ann", "age": 40}, Model(name="Ann", age=40)),
    (Node, {"below": [{"below": []}]}, Node(below=[Node()])),
    (Strict, {"day": "2026-01-02", "pair": [1, "a"]}, Strict(day=datetime.date(2026, 1, 2), pair=(1, "a"))),
    (Household, {"head": {"name": "Ann", "age": 1}}, Household(Model(name="Ann", age=1))),
    ({"type": "object"}, {"any": [1]}, {"any": [1]}),
    ({"properties": {"a": {"type": "integer"}}}, {"a": "kept"}, {"a": "kept"}),
]

OTHERS: list[tuple[Any, Any, Any]] = [
    (int, 3, 3),
    (list[int], [1, 2], [1, 2]),
    (set[int], [1, 2], {1, 2}),
    (list[Person], [ANN], [Person("Ann", 40, [Person("Bob", 7)])]),
    (list[Model], [{"name": "Ann", "age": 40}], [Model(name="Ann", age=40)]),
    (Model | None, None, None),
    (Point, [1, "a"], Point(1, "a")),
    (tuple[int, ...], [1, 2], (1, 2)),
    (Circle | Square, {"type": "Square", "side": 1}, Square(1.0)),
    (Colour, "red", Colour.RED),
    (Literal["yes", "no"], "no", "no"),
    (datetime.date, "2026-01-02", datetime.date(2026, 1, 2)),
    (Numbers, [1], Numbers([1])),
    (Any, {"a": None}, {"a": None}),
    ({}, "anything", "anything"),
    ({"type": "array", "items": {"type": "integer"}}, ["kept"], ["kept"]),
    ({"enum": ["a", "b"]}, "a", "a"),
]


def ids(rows: list[tuple[Any, Any, Any]]) -> list[str]:
    return [str(wanted)[:40] for wanted, _, _ in rows]


def words(schema: Any) -> set[str]:
    """Every word of the schema language in it: names of properties and definitions are none."""
    if isinstance(schema, list):
        return set().union(*map(words, schema))
    if not isinstance(schema, dict):
        return set()
    found = set(schema)
    for key, value in schema.items():
        named = key in ("properties", "$defs") and isinstance(value, dict)
        found |= words(list(value.values()) if named else value)
    return found


def references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [found for item in schema for found in references(item)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
    return own + references(list(schema.values()))


@pytest.mark.parametrize(("wanted", "data", "expected"), OBJECTS, ids=ids(OBJECTS))
def test_an_object_is_asked_for_as_it_is_and_becomes_what_was_wanted(wanted: Any, data: Any, expected: Any) -> None:
    known = Wanted(wanted)
    assert known.schema["type"] == "object"
    assert "value" not in known.schema.get("properties", {})
    converted = known.convert(data)
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(("wanted", "data", "expected"), OTHERS, ids=ids(OTHERS))
def test_anything_else_travels_in_an_object(wanted: Any, data: Any, expected: Any) -> None:
    known = Wanted(wanted)
    assert {key: known.schema[key] for key in known.schema if key not in ("properties", "$defs")} == {
        "type": "object",
        "required": ["value"],
        "additionalProperties": False,
    }
    assert list(known.schema["properties"]) == ["value"]
    converted = known.convert({"value": data})
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize("wanted", [row[0] for row in OBJECTS + OTHERS], ids=ids(OBJECTS + OTHERS))
def test_every_schema_is_json_complete_in_itself_and_without_words_that_the_cli_refuses(wanted: Any) -> None:
    schema = json.loads(json.dumps(Wanted(wanted).schema))
    assert "$ref" not in schema
    for reference in references(schema):
        assert reference.startswith("#/$defs/")
        assert reference.removeprefix("#/$defs/") in schema["$defs"]
    assert not words(schema) & {"$schema", "discriminator", "prefixItems"}


def test_a_list_of_numbers_has_the_plainest_of_schemas() -> None:
    assert Wanted(list[int]).schema == {
        "type": "object",
        "properties": {"value": {"type": "array", "items": {"type": "integer"}}},
        "required": ["value"],
        "additionalProperties": False,
    }


def test_a_reference_at_the_top_is_put_in_and_the_definitions_stay() -> None:
    schema = Wanted(Person).schema
    assert list(schema["properties"]) == ["name", "age", "children"]
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Person"}
    assert schema["$defs"]["Person"]["properties"] == schema["properties"]


def test_a_reference_may_lead_to_a_reference_and_be_escaped() -> None:
    definitions = {"a": {"$ref": "#/definitions/b~1c"}, "b/c": {"type": "object", "title": "C"}}
    schema = Wanted({"$ref": "#/definitions/a", "description": "mine", "definitions": definitions}).schema
    assert schema == {"type": "object", "title": "C", "description": "mine", "definitions": definitions}


@pytest.mark.parametrize("reference", ["#/$defs/missing", "#/$defs/loop", "https://example.org/x.json", "#", 5])
def test_a_reference_that_leads_nowhere_is_no_schema(reference: object) -> None:
    with pytest.raises(UsageError, match=r"the schema is no schema \(its \$ref .* leads nowhere\)"):
        Wanted({"$ref": reference, "$defs": {"loop": {"$ref": "#/$defs/loop"}}})


def test_a_tuple_says_its_order_in_words() -> None:
    value = Wanted(tuple[int, str]).schema["properties"]["value"]
    assert value["items"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert (value["minItems"], value["maxItems"]) == (2, 2)
    assert value["description"] == 'Items in this order: [{"type": "integer"}, {"type": "string"}]'


def test_names_and_values_of_the_user_are_left_alone() -> None:
    given = {
        "type": "object",
        "properties": {"discriminator": {"const": {"prefixItems": [1]}}, "$schema": {"default": {"discriminator": 1}}},
    }
    assert Wanted(given).schema == given


def test_the_given_schema_is_not_changed() -> None:
    given = {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "array", "prefixItems": [{}]}
    before = json.dumps(given)
    Wanted(given)
    assert json.dumps(given) == before


@pytest.mark.parametrize(
    ("wanted", "named"),
    [
        (None, "None is no schema"),
        (5, "5 is no schema"),
        ("Person", "'Person' is no schema"),
        (Person("Ann", 40), "Person(name='Ann', age=40, children=[]) is no schema"),
        (Model(name="Ann", age=40), "Model(name='Ann', age=40) is no schema"),
        (len, "<built-in function len> is no schema"),
        ([int], "[<class 'int'>] is no schema"),
        ({"name": str}, "{'name': <class 'str'>} is no schema"),
        ({"name": "string"}, "it has none of $ref, allOf"),
        ({"enum": [float("nan")]}, "the schema is no schema (Out of range float"),
        ("x" * 1000, "x…"),
    ],
)
def test_what_is_no_schema_is_named_with_what_is_possible(wanted: object, named: str) -> None:
    with pytest.raises(UsageError) as caught:
        Wanted(wanted)
    assert named in str(caught.value)
    assert "Possible are a JSON schema (a dict), a dataclass" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_an_annotation_that_cannot_be_resolved_is_named() -> None:
    broken: type = dataclass(type("Broken", (), {"__annotations__": {"x": "Missing"}}))
    with pytest.raises(UsageError, match=r"Broken is no schema \(.*Missing"):
        Wanted(broken)


def test_an_answer_that_does_not_fit_is_shown_with_where() -> None:
    with pytest.raises(UsageError) as caught:
        Wanted(Person).convert({"name": "Ann", "age": "old"})
    assert str(caught.value) == (
        "Claude's answer does not fit Person: Expected `int`, got `str` - at `$.age`. "
        'The answer was: {"name": "Ann", "age": "old"}'
    )


@pytest.mark.parametrize(
    ("wanted", "data", "reason"),
    [
        (Model, {"name": "Ann", "age": -1}, "greater than or equal to 0"),
        (list[Model], {"value": [{"name": "Ann"}]}, "Field required"),
        (list[int], {"value": ["x"]}, "Expected `int`, got `str` - at `$[0]`"),
        (list[int], {"other": 1}, "Expected an object with `value`"),
        (list[int], [1], "Expected an object with `value`"),
        ({"type": "array"}, None, "Expected an object with `value`"),
    ],
)
def test_every_misfit_gives_a_reason(wanted: Any, data: Any, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        Wanted(wanted).convert(data)
    assert str(caught.value).startswith("Claude's answer does not fit ")
    assert reason in str(caught.value)
    assert "For further information" not in str(caught.value)


def test_a_long_answer_that_does_not_fit_is_cut() -> None:
    with pytest.raises(UsageError) as caught:
        Wanted(Person).convert({"name": "ä" * 100_000})
    assert len(str(caught.value)) < 1500
    assert str(caught.value).endswith("ää…")


def test_pydantic_is_not_loaded_for_it() -> None:
    code = (
        "import sys; from claude_kernel.typed import Wanted; from claude_kernel.errors import UsageError\n"
        "Wanted(list[int]).convert({'value': [1]})\n"
        "try: Wanted(complex)\n"
        "except UsageError: print('pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
