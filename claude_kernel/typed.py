"""`--schema` of the magic: a JSON schema of what is wanted, and the answer as just that. It knows no cell."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from claude_kernel.errors import UsageError

_MOST_SHOWN = 500
_SCHEMA_WORDS = frozenset({"type", "properties", "$ref", "anyOf", "oneOf", "allOf", "enum", "const"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions"})
"""Their keys are names of the user's, not words of the schema language."""
_VALUES = frozenset({"default", "const", "enum", "examples"})
_DROPPED = frozenset({"$schema", "discriminator"})
_DEFINITIONS = ("$defs", "definitions")


class Wanted:
    """`wanted` is a type, or a JSON schema as a dict. Raises `UsageError` where it is neither."""

    def __init__(self, wanted: object) -> None:
        self.name = _name(wanted)
        found, self._decode = _schema_and_decoder(wanted, self.name)
        top = _inlined(_compilable(found), self.name)
        self._wrapped = top.get("type", "object" if "properties" in top else None) != "object"
        self.schema: dict[str, Any] = _wrapped(top) if self._wrapped else {"type": "object", **top}

    def convert(self, data: Any) -> Any:
        """What Claude answered, as what was wanted. Raises `UsageError`, which shows the answer: it was paid for."""
        if self._wrapped:
            if not isinstance(data, dict) or "value" not in data:
                raise self._misfit("Expected an object with `value`", data)
            data = data["value"]
        if self._decode is None:
            return data
        try:
            return self._decode(json.dumps(data))
        except ValueError as error:  # msgspec's and pydantic's are both that
            raise self._misfit(str(error), data) from error

    def _misfit(self, reason: str, data: Any) -> UsageError:
        lines = (line for line in reason.splitlines() if "For further information visit" not in line)
        answer = json.dumps(data, ensure_ascii=False)
        return UsageError(
            f"Claude's answer does not fit {self.name}: {_cut(chr(10).join(lines))}. The answer was: {_cut(answer)}"
        )


def _schema_and_decoder(wanted: Any, name: str) -> tuple[dict[str, Any], Callable[[str], Any] | None]:
    """Decoders read JSON, not objects: only so do a strict model's dates and a dict's numeric keys come through."""
    if isinstance(wanted, dict):
        return _checked(wanted, name), None
    if wanted is None or isinstance(wanted, str):  # msgspec takes None for a type, pydantic a str for a forward name
        raise _no_schema(name)
    try:
        if isinstance(wanted, type) and hasattr(wanted, "model_json_schema") and hasattr(wanted, "model_validate_json"):
            return wanted.model_json_schema(), wanted.model_validate_json
        try:
            return msgspec.json.schema(wanted), msgspec.json.Decoder(wanted).decode
        except TypeError:
            if "pydantic" not in sys.modules:
                raise
            adapter = sys.modules["pydantic"].TypeAdapter(wanted)  # list[Model], a dataclass that holds a Model
            return adapter.json_schema(), adapter.validate_json
    except Exception as error:  # annotations are the user's code: resolving them can raise anything
        raise _no_schema(name, f"{type(error).__name__}: {error}") from error


def _checked(schema: dict[Any, Any], name: str) -> dict[str, Any]:
    try:
        json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise _no_schema(name, str(error)) from error
    if schema and not _SCHEMA_WORDS & schema.keys():
        raise _no_schema(name, "it has none of " + ", ".join(sorted(_SCHEMA_WORDS)))
    return schema


def _compilable(node: Any) -> Any:
    """Without what the CLI (2.1.326) refuses: it compiles by draft 7, strictly, so that an unknown word is an error.

    Of a tuple, what draft 7 has no word for (the order) becomes a description; the decoder holds the answer to it.
    """
    if isinstance(node, list):
        return [_compilable(item) for item in node]
    if not isinstance(node, dict):
        return node
    plain: dict[str, Any] = {}
    for key, value in node.items():
        if key in _NAMED and isinstance(value, dict):
            plain[key] = {name: _compilable(schema) for name, schema in value.items()}
        elif key not in _DROPPED:
            plain[key] = value if key in _VALUES else _compilable(value)
    places = plain.pop("prefixItems", None)
    if places:
        rest = plain.get("items")
        plain["items"] = {"anyOf": [*places, rest] if isinstance(rest, dict) else places}
        plain.setdefault("description", f"Items in this order: {json.dumps(places)}")
    return plain


def _inlined(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """The CLI wants to see an object at the top, not a reference to one."""
    top, seen = schema, set()
    while "$ref" in top:
        reference = top["$ref"]
        target = None if reference in seen else _find_target(schema, reference)
        if target is None:
            raise _no_schema(name, f"its $ref {reference} leads nowhere")
        seen.add(reference)
        beside = {key: value for key, value in top.items() if key not in ("$ref", *_DEFINITIONS)}
        top = {**target, **beside}
    return {**top, **{key: schema[key] for key in _DEFINITIONS if key in schema}}


def _find_target(schema: dict[str, Any], reference: object) -> dict[str, Any] | None:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    target: Any = schema
    for step in reference[2:].split("/"):
        target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
    return target if isinstance(target, dict) else None


def _wrapped(top: dict[str, Any]) -> dict[str, Any]:
    """Definitions stay at the top, where the references look for them."""
    value = {key: part for key, part in top.items() if key not in _DEFINITIONS}
    return {
        "type": "object",
        "properties": {"value": value},
        "required": ["value"],
        "additionalProperties": False,
        **{key: top[key] for key in _DEFINITIONS if key in top},
    }


def _no_schema(name: str, reason: str = "") -> UsageError:
    because = f" ({_cut(reason)})" if reason else ""
    return UsageError(
        f"{name} is no schema{because}. Possible are a JSON schema (a dict), a dataclass, a TypedDict, a NamedTuple, "
        "a msgspec Struct, a pydantic model, or a type of these, such as list[int]."
    )


def _name(wanted: object) -> str:
    if isinstance(wanted, type):
        return wanted.__name__
    return "the schema" if isinstance(wanted, dict) and _SCHEMA_WORDS & wanted.keys() else _cut(repr(wanted), 80)


def _cut(text: str, most: int = _MOST_SHOWN) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
