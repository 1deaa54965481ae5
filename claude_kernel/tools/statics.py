"""Classes, functions and objects as they stand in memory. Nothing is called: no attribute lookup a class could answer.

`obj.attribute`, `isinstance`, `type(obj).__name__` and even `type(obj) in a_set` can run a class's or a metaclass's
own code; the descriptors that C gave to `type`, and `is`, cannot.
"""

from __future__ import annotations

import re
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping
from types import BuiltinFunctionType, FunctionType, GetSetDescriptorType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, TypeVar, cast

_module_of = type.__dict__["__module__"].__get__
_qualname_of = type.__dict__["__qualname__"].__get__
_mro_of = type.__dict__["__mro__"].__get__
_namespace_of_class = type.__dict__["__dict__"].__get__
_namespace_of_module = vars(ModuleType)["__dict__"].__get__
_LONGEST_NAME = 80
_VARARGS, _VARKEYWORDS = 0x04, 0x08
_OWNER = re.compile(r"\(\$\w+(?:, /)?(?:, )?")
_UNFILLED = object()

Line = Callable[[object], str]
Row = TypeVar("Row")


def find_row(table: Mapping[type, Row], cls: type) -> Row | None:
    """A table's row for a class; a metaclass of somebody's own could have its own hash."""
    return table.get(cls) if type(cls) is type or type(cls) is ABCMeta else None


def plain(text: object) -> str:
    """An exact `str`: a subclass's own methods are left behind."""
    return str.__str__(text) if issubclass(type(text), str) else "?"


def package_of(cls: type) -> str:
    return plain(_module_of(cls)).partition(".")[0]


def type_name(cls: type) -> str:
    """`DataFrame` of whatever module within pandas is `pandas.DataFrame`."""
    package, name = package_of(cls), plain(_qualname_of(cls)).rpartition("<locals>.")[2][:_LONGEST_NAME]
    return name if package in {"builtins", "__main__", "?"} else f"{package[:_LONGEST_NAME]}.{name}"


def module_namespace(module: object) -> Mapping[str, object]:
    found: Mapping[str, object] = _namespace_of_module(module)
    return found


def find_loaded(package: str, name: str) -> object:
    """A library's own object, where the library is loaded; it is never imported for this."""
    module = sys.modules.get(package)
    return module_namespace(module).get(name) if issubclass(type(module), ModuleType) else None


def is_class(value: object) -> bool:
    return issubclass(type(value), type)


def is_module(value: object) -> bool:
    return issubclass(type(value), ModuleType)


def is_function(value: object) -> bool:
    cls = type(value)
    return cls is FunctionType or cls is BuiltinFunctionType or cls is MethodType


def function_name(value: object) -> str:
    if type(value) is MethodType:
        return function_name(value.__func__)  # which may be anything that can be called
    return plain(value.__name__) if type(value) is FunctionType or type(value) is BuiltinFunctionType else "?"


def find_attributes(value: object) -> list[tuple[str, object]]:
    """What the object itself holds, in its dictionary and its slots; no property, nothing that is computed."""
    found: dict[str, object] = {}
    held: object = None
    for cls in _mro_of(type(value)):
        entries = _namespace_of_class(cls)
        if held is None and type(entries.get("__dict__")) is GetSetDescriptorType:
            held = _read(entries["__dict__"], value)
        for name, entry in tuple(entries.items()):
            if type(entry) is MemberDescriptorType and not plain(name).startswith("__"):
                each = _read(entry, value)
                if each is not _UNFILLED:
                    found.setdefault(plain(name), each)
    if held is not None and issubclass(type(held), dict):
        entries = dict.items(cast("dict[str, object]", held))
        found |= {plain(name): each for name, each in tuple(entries)}
    return list(found.items())


def _read(descriptor: Any, value: object) -> object:
    try:
        return descriptor.__get__(value)
    except (AttributeError, TypeError):  # a slot that was never filled; one taken from another class
        return _UNFILLED


def find_methods(cls: type) -> list[str]:
    entries = tuple(_namespace_of_class(cls).items())
    return [plain(name) for name, each in entries if type(each) is FunctionType and not plain(name).startswith("_")]


def find_docstring(value: object) -> str | None:
    """Its first paragraph: a class's, a function's, a module's, or that of an object's class."""
    doc: object = None
    if type(value) is FunctionType or type(value) is BuiltinFunctionType:
        doc = value.__doc__
    elif type(value) is MethodType:
        return find_docstring(value.__func__)
    elif is_module(value):
        doc = module_namespace(value).get("__doc__")
    else:
        cls = value if is_class(value) else type(value)
        doc = _namespace_of_class(cls).get("__doc__")
    if type(doc) is not str:
        return None
    lines = doc[:4_000].strip().splitlines()
    end = next((number for number, line in enumerate(lines) if not line.strip()), len(lines))
    return " ".join(line.strip() for line in lines[:end]) or None


def find_signature(value: object, line: Line, hides: Callable[[str], bool]) -> str | None:
    """`(a, b=1)`; the defaults are written by `line`. None where it could only be had by asking."""
    if type(value) is FunctionType:
        return _signature(_unwrapped(value), line, hides, bound=False)
    if type(value) is MethodType:
        function = value.__func__
        return _signature(function, line, hides, bound=True) if type(function) is FunctionType else None
    if type(value) is BuiltinFunctionType:
        text: str | None = vars(BuiltinFunctionType)["__text_signature__"].__get__(value)
        return None if text is None else _OWNER.sub("(", text)
    if is_class(value):
        for cls in _mro_of(value):
            maker = _namespace_of_class(cls).get("__init__")
            if type(maker) is FunctionType:
                return _signature(_unwrapped(maker), line, hides, bound=True).removesuffix(" -> None")
            if maker is not None:
                return None
    return None


def _unwrapped(function: FunctionType) -> FunctionType:
    """The one that `functools.wraps` was told of."""
    for _ in range(10):
        inner = function.__dict__.get("__wrapped__")
        if type(inner) is not FunctionType:
            break
        function = inner
    return function


def _signature(function: FunctionType, line: Line, hides: Callable[[str], bool], *, bound: bool) -> str:
    code = function.__code__
    positional, keywords = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    # They can be replaced by instances of subclasses, which would answer for themselves.
    defaults = [*tuple.__iter__(function.__defaults__ or ())][-positional:] if positional else []
    values: dict[str, object] = dict(zip(names[positional - len(defaults) : positional], defaults, strict=True))
    values |= dict(dict.items(function.__kwdefaults__ or {}))
    written = _annotated(function)

    def parameter(name: str) -> str:
        text = name + (f": {written[name]}" if name in written else "")
        if name not in values:
            return text
        default = "private" if hides(name) else line(values[name])
        return f"{text} = {default}" if name in written else f"{text}={default}"

    parts = [parameter(name) for name in names[:positional]]
    if code.co_posonlyargcount:
        parts.insert(code.co_posonlyargcount, "/")
    if bound:
        del parts[:1]
        if parts[:1] == ["/"]:
            del parts[:1]
    rest = list(names[positional + keywords :])
    if code.co_flags & _VARARGS:
        parts.append(f"*{rest.pop(0)}")
    elif keywords:
        parts.append("*")
    parts += [parameter(name) for name in names[positional : positional + keywords]]
    if code.co_flags & _VARKEYWORDS:
        parts.append(f"**{rest.pop(0)}")
    return f"({', '.join(parts)})" + (f" -> {written['return']}" if "return" in written else "")


def _annotated(function: FunctionType) -> dict[str, str]:
    """Those that are plain classes or text. From Python 3.14 on, reading them may run code."""
    if sys.version_info >= (3, 14):
        return {}
    entries: Iterable[tuple[str, object]] = dict.items(function.__annotations__)
    found = {}
    for name, each in tuple(entries):
        if each is None:
            found[plain(name)] = "None"
        elif type(each) is str:
            found[plain(name)] = each[:_LONGEST_NAME]
        elif is_class(each):
            found[plain(name)] = type_name(each)  # type: ignore[arg-type]  # just asked
    return found
