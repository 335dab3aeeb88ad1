"""What a name means that is no parameter: a constant, a builtin, or another function.

A text program sees what its caller binds and the pure builtins. A Python function sees what it
closes over; that is constant by the language, so it is looked up once, when the function is read.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

from hydro_core.functions.allowed import BUILTINS
from hydro_core.functions.library.registry import NAMES
from hydro_core.functions.reading.check import Locate
from hydro_core.types.values import ValueProblem, to_item


@dataclass(frozen=True, slots=True)
class Constant:
    """An item."""

    value: Any


@dataclass(frozen=True, slots=True)
class Builtin:
    """One of the visible builtins, or a function of `math`."""

    name: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A function whose syntax is known, and what its free names mean."""

    name: str
    node: ast.Lambda | ast.FunctionDef
    find: Find
    locate: Locate


@dataclass(frozen=True, slots=True)
class Foreign:
    """Anything else: a function that cannot be read, a module, an object."""

    name: str
    value: Any = None


Binding = Constant | Builtin | Definition | Foreign
Find = Callable[[str], Binding | None]
"""The meaning of a name; None where nothing has it."""
Define = Callable[[str, FunctionType], Definition | None]


def binding_of(name: str, value: Any, define: Define) -> Binding:
    """What a value that a function closes over is to the function."""
    if id(value) in NAMES:
        return Builtin(NAMES[id(value)])
    if isinstance(value, FunctionType):
        return define(name, value) or Foreign(name, value)
    if callable(value):
        return Foreign(name, value)
    try:
        return Constant(plain(to_item(value)))
    except ValueProblem:
        return Foreign(name, value)


def finder(values: Mapping[str, Any], define: Define, rest: Find) -> Find:
    """Looks names up in `values`, then in `rest`; each is looked up once."""
    found: dict[str, Binding | None] = {}

    def find(name: str) -> Binding | None:
        if name not in found:
            known = name in values
            found[name] = binding_of(name, values[name], define) if known else rest(name)
        return found[name]

    return find


def python_builtin(name: str) -> Binding | None:
    """What a Python function sees beyond what it closes over: what is not pure cannot be read."""
    if not hasattr(builtins, name):
        return Foreign(name)  # bound later, or never: calling the function will tell
    value = getattr(builtins, name)
    return Builtin(name) if BUILTINS.get(name) is value else Foreign(name, value)


def visible_builtin(name: str) -> Binding | None:
    """What a function of a text program sees beyond what its caller binds."""
    return Builtin(name) if name in BUILTINS else None


def member(module: Foreign, name: str, define: Define) -> Binding | None:
    """`module.name`, where it is a module and has it."""
    if not isinstance(module.value, ModuleType) or not hasattr(module.value, name):
        return None
    return binding_of(f"{module.name}.{name}", getattr(module.value, name), define)


def plain(item: Any) -> Any:
    """An item with Python's own tuples and dicts, as a constant of a tree holds it."""
    match item:
        case tuple():
            return tuple(map(plain, item))
        case dict():
            return {name: plain(value) for name, value in dict.items(item)}
        case list():
            return [plain(element) for element in item]
        case _:
            return item
