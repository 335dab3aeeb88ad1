"""Trees of functions, and their checked syntax, as data that JSON can hold."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import MappingProxyType
from typing import Any, get_args

from hydro_core.artifact.older import node_of
from hydro_core.artifact.values import read_value, write_value
from hydro_core.functions.tree import Const, Expr, Spread

NODES: Mapping[str, type] = MappingProxyType({t.__name__: t for t in (*get_args(Expr), Spread)})
"""The nodes of functions' trees, by their names."""

_SYNTAX: Mapping[str, type[ast.AST]] = MappingProxyType(
    {
        name: kind
        for name, kind in vars(ast).items()
        if isinstance(kind, type)
        and issubclass(
            kind,
            (
                *(ast.expr, ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop),
                *(ast.comprehension, ast.arguments, ast.arg, ast.keyword),
            ),
        )
    }
)
"""The syntax of an expression, by its names."""


def write_tree(tables: Any, node: Expr | Spread) -> list[Any]:
    """A tree: the name of each node, its place, its parts. Types are found again by `bind`."""
    parts = [getattr(node, f.name) for f in fields(node) if f.name not in ("place", "type")]
    write = write_value if isinstance(node, Const) else _write_part
    place = list(getattr(node, "place", (0, 0)))
    return [type(node).__name__, place, *(write(tables, part) for part in parts)]


def _write_part(tables: Any, part: Any) -> Any:
    match part:
        case None | bool() | int() | str():
            return part
        case tuple():
            return {"all": [_write_part(tables, p) for p in part]}
        case _:
            return write_tree(tables, part)


def read_tree(tables: Any, record: Sequence[Any]) -> Any:
    """The tree that was written, in this format or an older one."""
    name, place, *parts = record
    if name == "Const":
        return Const(read_value(tables, parts[0]), tuple(place))
    given = [_read_part(tables, part) for part in parts]
    if name == "Spread":
        return Spread(*given)
    made = NODES.get(name) or node_of(name)
    return made(*given, place=tuple(place))


def _read_part(tables: Any, record: Any) -> Any:
    match record:
        case None | bool() | int() | str():
            return record
        case {"all": parts}:
            return tuple(_read_part(tables, part) for part in parts)
        case _:
            return read_tree(tables, record)


def write_syntax(tables: Any, node: Any) -> Any:
    """Syntax: the name of each node, and its parts by their names."""
    match node:
        case ast.AST():
            parts = {name: write_syntax(tables, value) for name, value in ast.iter_fields(node)}
            return {"is": type(node).__name__, "has": parts}
        case list():
            return [write_syntax(tables, part) for part in node]
        case _:
            return write_value(tables, node)


def read_syntax(tables: Any, record: Any) -> Any:
    """The syntax that was written; no other than an expression's."""
    match record:
        case {"is": name, "has": parts}:
            return _SYNTAX[name](**{n: read_syntax(tables, part) for n, part in parts.items()})
        case list():
            return [read_syntax(tables, part) for part in record]
        case _:
            return read_value(tables, record)
