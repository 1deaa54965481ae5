"""The live namespace in words, for a language model. It evaluates nothing and runs none of the variables' own code."""

from __future__ import annotations

import difflib
from collections.abc import Container, Mapping

from claude_kernel.errors import UsageError
from claude_kernel.tools import frames, statics
from claude_kernel.tools.privacy import Privacy, identifier
from claude_kernel.tools.values import PRIVATE, Sketch, find_length, is_plain

MOST_VARIABLES = 100
MOST_CHARACTERS = 4_000
_LONGEST_SUMMARY = 200
_MOST_ATTRIBUTES = 30
_SHARED = (str, bytes, int, float, complex, bool, type(None), type(...))
"""Two variables can hold the same one of these and have nothing to do with each other."""
_EMPTY: object = ()
"""There is one in the whole process."""


def list_variables(namespace: Mapping[str, object], hidden_names: Container[str], privacy: Privacy) -> str:
    """A line for each; `hidden_names` are those that are not the person's own, such as IPython's."""
    theirs = _named(namespace)
    sketch = _sketch(theirs, privacy)
    values, code, modules = [], [], []
    for name, value in theirs.items():
        if name.startswith("_") or name in hidden_names:
            continue
        if _is_private(name, value, privacy) or id(value) in sketch.private_ids:
            values.append(f"{name}: {PRIVATE}")
        elif statics.is_module(value):
            real = statics.plain(statics.module_namespace(value).get("__name__"))
            modules.append(name if real == name else f"{name} ({real})")
        elif statics.is_class(value) or statics.is_function(value):
            code.append(_cut(f"{_kind(value)} {name}{_signature(value, sketch)}", _LONGEST_SUMMARY))
        else:
            values.append(f"{name}: {_summary(value, sketch)}")
    said = _first(values, "variables") or ["no variables"]
    if code:
        said += ["", "functions and classes:", *_first(code, "functions and classes")]
    if modules:
        said += ["", f"modules: {', '.join(_first(modules, 'modules'))}"]
    return _encodable(privacy.clean("\n".join(said), theirs))


def inspect_variable(namespace: Mapping[str, object], name: str, privacy: Privacy) -> str:
    """What one variable is and how it begins."""
    theirs = _named(namespace)
    name = identifier(name)
    if name not in theirs:
        raise UsageError(_unknown(name, theirs))
    value = theirs[name]
    sketch = _sketch(theirs, privacy, depth=3, items=20, text=400)
    if _is_private(name, value, privacy) or id(value) in sketch.private_ids:
        raise UsageError(
            f"`{name}` is private: the person does not show it. They may do so with `%claude private --show {name}`."
        )
    text = privacy.clean("\n".join([f"{name}: {_type(value)}", *_described(value, sketch)]), theirs)
    return _encodable(_cut(text, MOST_CHARACTERS))


def _named(namespace: Mapping[str, object]) -> dict[str, object]:
    # A namespace is a dictionary: whatever was put into it may be a key.
    return {name: value for name, value in tuple(namespace.items()) if type(name) is str and name.isidentifier()}


def _sketch(
    namespace: Mapping[str, object], privacy: Privacy, *, depth: int = 2, items: int = 5, text: int = 60
) -> Sketch:
    private = frozenset(
        id(value)
        for name, value in namespace.items()
        if _is_private(name, value, privacy)
        and not any(type(value) is kind for kind in _SHARED)
        and value is not _EMPTY
    )
    return Sketch(privacy.hides, privacy.cleaner(namespace), private, depth, items, text)


def _is_private(name: str, value: object, privacy: Privacy) -> bool:
    """A function that is called `get_token` holds none, nor does the module `secrets`: they are private if marked."""
    code = statics.is_module(value) or statics.is_class(value) or statics.is_function(value)
    return privacy.hides(name) and (not code or name in privacy.names)


def _type(value: object) -> str:
    return statics.type_name(type(value))


def _kind(value: object) -> str:
    return "class" if statics.is_class(value) else "def"


def _signature(value: object, sketch: Sketch) -> str:
    return statics.find_signature(value, sketch.narrow().line, sketch.hides) or "(…)"


def _summary(value: object, sketch: Sketch) -> str:
    known = frames.find_known(value)
    if known is not None:
        return f"{_type(value)}, {_cut(known.short(value, sketch.narrow().line), _LONGEST_SUMMARY)}"
    length = find_length(value)
    counted = "" if length is None else f", length {length:,}"
    return f"{_type(value)}{counted}, {_cut(sketch.line(value), _LONGEST_SUMMARY)}"


def _described(value: object, sketch: Sketch) -> list[str]:
    known = frames.find_known(value)
    if known is not None:
        return [known.full(value, sketch.narrow().line, sketch.hides)]
    if statics.is_module(value) or statics.is_class(value) or statics.is_function(value):
        return _code(value, sketch)
    length = find_length(value)
    said = [] if length is None else [f"length {length:,}"]
    if is_plain(value):
        if type(value) is str:
            sketch = sketch.reaching(text=3_000)
        return [*said, sketch.line(value)]
    doc = statics.find_docstring(value)
    held = statics.find_attributes(value)
    said += [] if doc is None else [doc]
    said += ["attributes, as they are held:"] if held else []
    inside = sketch.reaching(depth=2, items=5, text=100)
    for name, each in held[:_MOST_ATTRIBUTES]:
        said.append(f"  {name}: {PRIVATE if sketch.hides(name) else _summary_within(each, inside)}")
    if len(held) > _MOST_ATTRIBUTES:
        said.append(f"  … {len(held) - _MOST_ATTRIBUTES:,} more attributes")
    return said


def _summary_within(value: object, sketch: Sketch) -> str:
    return PRIVATE if id(value) in sketch.private_ids else _summary(value, sketch)


def _code(value: object, sketch: Sketch) -> list[str]:
    doc = statics.find_docstring(value)
    said = [] if doc is None else [doc]
    if not statics.is_module(value):
        said.insert(0, f"signature {_signature(value, sketch)}")
    if statics.is_class(value):
        methods = statics.find_methods(value)  # type: ignore[arg-type]  # just asked
        shown = ", ".join(methods[:_MOST_ATTRIBUTES])
        said += [f"methods: {shown}"] if methods else []
    return said


def _first(lines: list[str], kind: str) -> list[str]:
    more = len(lines) - MOST_VARIABLES
    return lines if more <= 0 else [*lines[:MOST_VARIABLES], f"… {more:,} more {kind}"]


def _unknown(name: str, namespace: Mapping[str, object]) -> str:
    names = [each for each in namespace if not each.startswith("_") and len(each) <= 100]
    close = difflib.get_close_matches(name[:100], names, n=3)
    hint = f"Names close to it: {', '.join(close)}." if close else "List the variables to see which there are."
    return f"There is no variable `{name[:100]}`. {hint}"


def _cut(text: str, limit: int) -> str:
    more = len(text) - limit
    return text if more <= 0 else f"{text[:limit]}… {more:,} more characters"


def _encodable(text: str) -> str:
    """A lone surrogate cannot be sent."""
    return text.encode("utf-8", "backslashreplace").decode()
