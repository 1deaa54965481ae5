"""A value that fits a JSON schema: a script has no data, but can show of what shape it would be."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
_DEPTH = 8
_BY_TYPE: Json = {"string": "offline demo", "integer": 0, "number": 0, "boolean": False, "null": None}


def example_of(schema: Json, root: Json | None = None, depth: int = 0) -> Any:
    root = schema if root is None else root
    if "$ref" in schema:
        return example_of(_follow(str(schema["$ref"]), root), root, depth + 1) if depth < _DEPTH else None
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            # The last way is often `null`, which ends a schema that names itself.
            return example_of(schema[key][-1 if depth > 2 and key != "allOf" else 0], root, depth + 1)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object" or (kind is None and "properties" in schema):
        wanted = schema.get("required", list(schema.get("properties", {})))
        parts = schema.get("properties", {})
        return {name: example_of(parts.get(name, {}), root, depth + 1) for name in wanted}
    if kind == "array":
        fixed = schema.get("prefixItems")
        if fixed:
            return [example_of(part, root, depth + 1) for part in fixed]
        fewest = max(int(schema.get("minItems", 0)), 0 if depth > 2 else 1)
        return [example_of(schema.get("items") or {}, root, depth + 1) for _ in range(fewest)]
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    return _BY_TYPE.get(str(kind), "offline demo")


def _follow(reference: str, root: Json) -> Json:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, dict) else {}
