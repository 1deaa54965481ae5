"""A form that an MCP server asks for, read from its JSON schema: flat fields of text, numbers, yes or no, choices."""

from __future__ import annotations

from typing import Any

import msgspec

from claude_kernel.errors import UsageError
from claude_kernel.render.visible import exact_text, one_line

_MOST_FIELDS = 40


class Field(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str
    description: str = ""
    kind: str = "string"
    required: bool = False
    values: tuple[Any, ...] = ()
    """The choices, where it is one of several."""
    labels: tuple[str, ...] = ()
    default: Any = None

    def decode(self, text: str) -> Any:
        """Raises `UsageError` where the text is not of this kind."""
        text = text.strip()
        if self.kind == "boolean":
            if text.lower() in ("y", "yes", "true", "1", "on"):
                return True
            if text.lower() in ("n", "no", "false", "0", "off"):
                return False
            raise UsageError(f"{self.title} wants yes or no.")
        try:
            if self.kind == "integer":
                return int(text)
            if self.kind == "number":
                return float(text)
        except ValueError:
            raise UsageError(f"{self.title} wants a {'whole ' * (self.kind == 'integer')}number.") from None
        return text


def find_fields(schema: dict[str, Any]) -> tuple[Field, ...]:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return ()
    wanted = required if isinstance(required, list) else []
    rows = list(properties.items())[:_MOST_FIELDS]
    return tuple(_field(str(name), spec, name in wanted) for name, spec in rows if isinstance(spec, dict))


def _field(name: str, spec: dict[str, Any], required: bool) -> Field:
    choices = spec.get("enum")
    values = tuple(choice for choice in choices if isinstance(choice, str | int)) if isinstance(choices, list) else ()
    names = spec.get("enumNames")
    labels = names if isinstance(names, list) and len(names) == len(values) else values
    kind = spec.get("type")
    return Field(
        name=name,
        title=one_line(exact_text(str(spec.get("title") or name)), 120),
        description=one_line(exact_text(str(spec.get("description") or "")), 300),
        kind=kind if kind in ("string", "number", "integer", "boolean") else "string",
        required=required,
        values=values,
        labels=tuple(one_line(exact_text(str(label)), 120) for label in labels),
        default=spec.get("default"),
    )
