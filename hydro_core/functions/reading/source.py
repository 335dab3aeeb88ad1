"""The syntax of a live Python function: believed only if it compiles to the very code of it."""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from hydro_core.functions.reading.check import place_of
from hydro_core.functions.reading.names import Definition, finder, python_builtin

FunctionNode = ast.Lambda | ast.FunctionDef


def define(name: str, function: FunctionType) -> Definition | None:
    """The definition of a function, None where its source cannot be read."""
    node = _syntax(function)
    if node is None:
        return None
    values = {**function.__globals__, **_closed(function)}
    return Definition(name, node, finder(values, define, python_builtin), place_of)


def _closed(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = {}
    for name, cell in cells:
        try:
            found[name] = cell.cell_contents
        except ValueError:  # bound only later: not constant yet
            continue
    return found


@dataclass(frozen=True, slots=True)
class _Source:
    functions: tuple[FunctionNode, ...]
    codes: tuple[CodeType, ...]


def _syntax(function: FunctionType) -> FunctionNode | None:
    code = function.__code__
    if inspect.iscoroutinefunction(function) or function.__defaults__ or function.__kwdefaults__:
        return None
    try:
        lines = tuple(inspect.findsource(code)[0])
    except (OSError, TypeError, IndexError, SyntaxError):
        return None
    source = _source(lines)
    if not any(_is_same(c, code) for c in source.codes):
        return None
    nodes = [n for n in source.functions if _name(n) == code.co_name and _holds(n, code)]
    return min(nodes, key=_length, default=None)


@lru_cache(maxsize=64)
def _source(lines: tuple[str, ...]) -> _Source:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python has warned when it compiled the source
        try:
            module = ast.parse("".join(lines))
            code = compile(module, "<source>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError):
            return _Source((), ())
    functions = (n for n in ast.walk(module) if isinstance(n, ast.Lambda | ast.FunctionDef))
    return _Source(tuple(functions), tuple(_codes(code)))


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
