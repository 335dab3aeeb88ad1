"""What a name means that is no parameter: a constant, a builtin, or another function.

A text program sees what its caller binds and the pure builtins. A Python function sees what it
closes over; that is constant by the language, so it is looked up once, when the function is read.
The syntax of a live function is believed only if it compiles to the very code of it.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from hydro_core.functions.allowed import BUILTINS
from hydro_core.functions.library.registry import NAMES
from hydro_core.functions.reading.check import Locate, place_of
from hydro_core.types.values import ValueProblem, to_item

FunctionNode = ast.Lambda | ast.FunctionDef


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
    node: FunctionNode
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


def binding_of(name: str, value: Any) -> Binding:
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


def finder(values: Mapping[str, Any], rest: Find) -> Find:
    """Looks names up in `values`, then in `rest`; each is looked up once."""
    found: dict[str, Binding | None] = {}

    def find(name: str) -> Binding | None:
        if name not in found:
            found[name] = binding_of(name, values[name]) if name in values else rest(name)
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


def member(module: Foreign, name: str) -> Binding | None:
    """`module.name`, where it is a module and has it."""
    if not isinstance(module.value, ModuleType) or not hasattr(module.value, name):
        return None
    return binding_of(f"{module.name}.{name}", getattr(module.value, name))


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


def define(name: str, function: FunctionType) -> Definition | None:
    """The definition of a function, None where its source cannot be read."""
    node = _syntax(function)
    if node is None:
        return None
    values = {**function.__globals__, **_closed(function)}
    return Definition(name, node, finder(values, python_builtin), place_of)


def _closed(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = {}
    for name, cell in cells:
        try:
            found[name] = cell.cell_contents
        except ValueError:  # bound only later: not constant yet
            continue
    return found


def _syntax(function: FunctionType) -> FunctionNode | None:
    code = function.__code__
    if inspect.iscoroutinefunction(function) or function.__defaults__ or function.__kwdefaults__:
        return None
    try:
        lines = tuple(inspect.findsource(code)[0])
    except (OSError, TypeError, IndexError, SyntaxError):
        return None
    functions, codes = _source(lines)
    if not any(_is_same(c, code) for c in codes):
        return None
    nodes = [n for n in functions if _name(n) == code.co_name and _holds(n, code)]
    return min(nodes, key=_length, default=None)


@lru_cache(maxsize=64)
def _source(lines: tuple[str, ...]) -> tuple[tuple[FunctionNode, ...], tuple[CodeType, ...]]:
    """The functions in a module's text, and the codes that it compiles to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python has warned when it compiled the source
        try:
            module = ast.parse("".join(lines))
            code = compile(module, "<source>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            return (), ()
    functions = (n for n in ast.walk(module) if isinstance(n, ast.Lambda | ast.FunctionDef))
    return tuple(functions), tuple(_codes(code))


def _codes(code: CodeType) -> Iterator[CodeType]:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield const
            yield from _codes(const)


def _is_same(a: CodeType, b: CodeType) -> bool:
    """Whether two codes do the same and stand at the same place."""
    if a.co_firstlineno != b.co_firstlineno or a.co_code != b.co_code:
        return False
    if list(a.co_positions()) != list(b.co_positions()) or len(a.co_consts) != len(b.co_consts):
        return False
    names = ("co_name", "co_names", "co_varnames", "co_freevars", "co_cellvars")
    if any(getattr(a, name) != getattr(b, name) for name in names):
        return False
    return all(_is_same_constant(x, y) for x, y in zip(a.co_consts, b.co_consts, strict=True))


def _is_same_constant(a: Any, b: Any) -> bool:
    if isinstance(a, CodeType) and isinstance(b, CodeType):
        return _is_same(a, b)
    return type(a) is type(b) and repr(a) == repr(b)


def _name(node: FunctionNode) -> str:
    return "<lambda>" if isinstance(node, ast.Lambda) else node.name


def _body(node: FunctionNode) -> tuple[tuple[int, int], tuple[int, int]]:
    first = node.body if isinstance(node, ast.Lambda) else node.body[0]
    last = node.body if isinstance(node, ast.Lambda) else node.body[-1]
    end = (last.end_lineno or last.lineno, last.end_col_offset or 0)
    return (first.lineno, first.col_offset), end


def _holds(node: FunctionNode, code: CodeType) -> bool:
    """Whether all instructions of the code stand within the body of the node."""
    start, end = _body(node)
    spots = [
        (line, column)
        for line, _, column, end_column in code.co_positions()
        if line is not None and column is not None and end_column
    ]
    return bool(spots) and all(start <= spot <= end for spot in spots)


def _length(node: FunctionNode) -> tuple[int, int]:
    (line, column), (end_line, end_column) = _body(node)
    return end_line - line, end_column - column
