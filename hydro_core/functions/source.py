"""The syntax of a live Python function: believed only if it compiles to the function's own code."""

from __future__ import annotations

import ast
import inspect
import linecache
import warnings
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from hydro_core.functions.check import place_of
from hydro_core.functions.names import Definition, finder, python_builtin

Function = ast.Lambda | ast.FunctionDef
_FLAGS = 0x1FF0000
"""The `from __future__` features in a code's flags."""


def define(name: str, function: FunctionType) -> Definition | None:
    """The definition of a function, None where its source cannot be read."""
    node = _syntax(function)
    if node is None:
        return None
    values = {**function.__globals__, **_closed(function)}
    return Definition(
        name, node, finder(values, define, python_builtin), place_of, function.__code__
    )


def _closed(function: FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = {}
    for name, cell in cells:
        try:
            found[name] = cell.cell_contents
        except ValueError:  # bound only later: not constant yet
            continue
    return found


def _syntax(function: FunctionType) -> Function | None:
    code = function.__code__
    if inspect.iscoroutinefunction(function) or function.__defaults__ or function.__kwdefaults__:
        return None
    try:
        lines = tuple(inspect.findsource(code)[0])
    except (OSError, TypeError, IndexError, SyntaxError):
        return None
    fitting = [node for node in _functions(lines) if _may_be(node, code)]
    same = [node for node in fitting if _is_same(_code_of(node, code), code)]
    inside = [node for node in same if _is_at(node, code)] or same
    texts = {ast.unparse(node) for node in inside}
    return inside[0] if len(texts) == 1 else None


@lru_cache(maxsize=64)
def _functions(lines: tuple[str, ...]) -> tuple[Function, ...]:
    try:
        module = ast.parse("".join(lines))
    except SyntaxError:
        return ()
    return tuple(n for n in ast.walk(module) if isinstance(n, ast.Lambda | ast.FunctionDef))


def _may_be(node: Function, code: CodeType) -> bool:
    first = node.lineno
    if isinstance(node, ast.FunctionDef) and node.decorator_list:
        first = min(first, *(d.lineno for d in node.decorator_list))
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    return first == code.co_firstlineno and name == code.co_name


def _code_of(node: Function, code: CodeType) -> CodeType | None:
    """The code of the node, compiled where the same names are free."""
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [ast.Expr(node)]
    else:
        body = [_bare(node)]
    free = [ast.arg(name) for name in code.co_freevars]
    arguments = ast.arguments([], free, None, [], [], None, [])
    around = ast.FunctionDef("around", arguments, body, [], None)
    module = ast.Module([ast.copy_location(around, node)], [])
    flags = code.co_flags & _FLAGS
    tree = ast.fix_missing_locations(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python has said it when it compiled the source
        try:
            compiled = compile(tree, "<source>", "exec", flags, dont_inherit=True)
        except (SyntaxError, ValueError):
            return None
    outer = next(_codes(compiled))
    return next((c for c in _codes(outer) if c.co_name == code.co_name), None)


def _bare(node: ast.FunctionDef) -> ast.FunctionDef:
    bare = ast.FunctionDef(node.name, node.args, node.body, [], None)
    return ast.copy_location(bare, node)


def _codes(code: CodeType) -> Iterator[CodeType]:
    return (const for const in code.co_consts if isinstance(const, CodeType))


def _is_same(a: CodeType | None, b: CodeType) -> bool:
    if a is None or a.co_code != b.co_code or a.co_names != b.co_names:
        return False
    if a.co_varnames != b.co_varnames or a.co_freevars != b.co_freevars:
        return False
    if len(a.co_consts) != len(b.co_consts):
        return False
    for x, y in zip(a.co_consts, b.co_consts, strict=True):
        if isinstance(x, CodeType) and isinstance(y, CodeType):
            if not _is_same(x, y):
                return False
        elif type(x) is not type(y) or repr(x) != repr(y):
            return False
    return True


def _is_at(node: Function, code: CodeType) -> bool:
    """Whether the code's instructions stand within the node: of two equal lambdas, which?"""
    spots = [
        (line, column)
        for line, _, column, end_column in code.co_positions()
        if line is not None and column is not None and end_column
    ]
    start = (node.lineno, node.col_offset)
    end = (node.end_lineno or node.lineno, node.end_col_offset or 0)
    return all(start <= spot <= end for spot in spots)


def forget_sources() -> None:
    """Reads files again: after an edit in a notebook or a reload."""
    linecache.checkcache()
    _functions.cache_clear()
