"""`-f` of the magic: `{expression}` in a prompt becomes its value, as in an f-string. It knows no namespace."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from claude_kernel.errors import UsageError

MOST_OF_ONE = 20_000
MOST_OF_ALL = 100_000

_BRACE = re.compile(r"[{}]")
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_CONVERSIONS: dict[str, Callable[[object], str]] = {"r": repr, "s": str, "a": ascii}


class _Field(NamedTuple):
    expression: str
    conversion: str
    spec: _Parts


_Parts: TypeAlias = "list[str | _Field]"
_Evaluate: TypeAlias = Callable[[str], object]


def fill(prompt: str, evaluate: _Evaluate, show: Callable[[object], str] = repr) -> str:
    """Nothing is evaluated where any field does not parse. Values are cut to what a prompt can bear, and say so.

    `show` makes text of what is none, where the field does not say how.
    """
    filled: list[str] = []
    left = MOST_OF_ALL
    for part in _parse(prompt):
        if isinstance(part, str):
            filled.append(part)
            continue
        try:
            text = _text(part, evaluate, show)
        except Exception as error:  # the user's code: it can raise anything
            raise _unfillable(part.expression, f"{type(error).__name__}: {error}") from error
        shown = min(len(text), MOST_OF_ONE, left)
        left -= shown
        filled.append(text[:shown])
        if shown < len(text):
            filled.append(f"\n… (cut: {shown:,} of {len(text):,} characters shown)")
    return "".join(filled)


def _text(field: _Field, evaluate: _Evaluate, show: Callable[[object], str]) -> str:
    value = evaluate(field.expression)
    if field.conversion:
        value = _CONVERSIONS[field.conversion](value)
    if field.spec:
        return format(value, "".join(_spec_text(part, evaluate) for part in field.spec))
    return value if isinstance(value, str) else show(value)


def _spec_text(part: str | _Field, evaluate: _Evaluate) -> str:
    return part if isinstance(part, str) else _text(part, evaluate, str)


def _parse(prompt: str) -> _Parts:
    parts: _Parts = []
    at = 0
    while at < len(prompt):
        brace = _next_brace(prompt, at)
        parts.append(prompt[at:brace])
        if brace == len(prompt):
            break
        if prompt[brace] == prompt[brace + 1 : brace + 2]:
            parts.append(prompt[brace])
            at = brace + 2
        elif prompt[brace] == "{":
            field, at = _parse_field(prompt, brace, nested=False)
            parts.append(field)
        else:
            near = prompt[max(0, brace - 20) : brace + 1]
            raise UsageError(f"The prompt has a `}}` that closes nothing, after `{near}`; `}}}}` writes a brace.")
    return parts


def _next_brace(text: str, start: int) -> int:
    found = _BRACE.search(text, start)
    return found.start() if found else len(text)


def _parse_field(prompt: str, opening: int, *, nested: bool) -> tuple[_Field, int]:
    """The field at `{`, and where what follows it begins."""
    at = _expression_end(prompt, opening + 1)
    expression = _checked(prompt[opening + 1 : at])
    conversion = ""
    spec: _Parts = []
    if prompt[at] == "!":
        conversion = prompt[at + 1 : at + 2]
        at += 2
        if conversion not in _CONVERSIONS or prompt[at : at + 1] not in (":", "}"):
            raise _unfillable(expression, "after `!` comes r, s or a")
    if prompt[at] == ":":
        spec, at = _parse_spec(prompt, at + 1, expression, nested=nested)
    return _Field(expression, conversion, spec), at + 1


def _parse_spec(prompt: str, at: int, expression: str, *, nested: bool) -> tuple[_Parts, int]:
    """What is between `:` and the closing brace; it may hold fields, but theirs may not: so is Python's rule."""
    parts: _Parts = []
    while True:
        brace = _next_brace(prompt, at)
        if brace == len(prompt):
            raise _unfillable(expression, "the brace is never closed")
        if nested and prompt[brace] == "{":
            raise _unfillable(expression, "its format is nested too deep")
        if brace > at:
            parts.append(prompt[at:brace])
        if prompt[brace] == "}":
            return parts, brace
        field, at = _parse_field(prompt, brace, nested=True)
        parts.append(field)


def _expression_end(prompt: str, start: int) -> int:
    """Where `}`, `!` or `:` ends it, outside of brackets and strings."""
    open_brackets: list[str] = []
    at = start
    while at < len(prompt):
        character = prompt[at]
        if character in "\"'":
            at = _string_end(prompt, at, start)
            continue
        if character in _CLOSES:
            open_brackets.append(_CLOSES[character])
        elif open_brackets and character == open_brackets[-1]:
            open_brackets.pop()
        elif character == "}" or (
            not open_brackets and (character == ":" or (character == "!" and prompt[at + 1 : at + 2] != "="))
        ):  # also one that closes no bracket of its kind: the error is then named near its place
            return at
        at += 1
    raise _unfillable(prompt[start : start + 81], "the brace is never closed")


def _string_end(prompt: str, opening: int, start: int) -> int:
    """Just behind the closing quotes. A backslash guards the next character in a raw string, too."""
    quote = prompt[opening]
    triple = prompt.startswith(quote * 3, opening)
    closing = quote * 3 if triple else quote
    at = opening + len(closing)
    while at < len(prompt) and (triple or prompt[at] != "\n"):
        if prompt.startswith(closing, at):
            return at + len(closing)
        at += 2 if prompt[at] == "\\" else 1
    raise _unfillable(prompt[start : min(at, start + 81)], "the quote is never closed")


def _checked(text: str) -> str:
    expression = text.strip()
    if not expression:
        raise _unfillable(text, "the braces are empty")
    if "\n" in expression:
        expression = f"({expression})"
    try:
        ast.parse(expression, mode="eval")
    except SyntaxError as error:
        raise _unfillable(expression, error.msg) from error
    except (ValueError, MemoryError, RecursionError) as error:  # a NUL; brackets beyond number
        raise _unfillable(expression, f"{error}" or type(error).__name__) from error
    return expression


def _unfillable(expression: str, reason: str) -> UsageError:
    shown = expression if len(expression) <= 80 else f"{expression[:80]}…"
    return UsageError(f"`{{{shown}}}` cannot be filled in: {reason[:500]}. `{{{{` writes a brace.")
