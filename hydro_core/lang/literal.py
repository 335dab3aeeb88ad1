"""Values and functions as a program's text writes them."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from hydro_core.functions.fn import Fn
from hydro_core.functions.python_text import python_text
from hydro_core.types.ddl import to_ddl
from hydro_core.types.item import ItemType


def quoted(text: str) -> str:
    """A text in double quotes."""
    return json.dumps(text, ensure_ascii=False)


def schema_text(item: ItemType) -> str:
    """A schema in quotes."""
    return quoted(to_ddl(item))


def literal(value: Any) -> str:  # noqa: PLR0911 - a closed set of cases
    """A Python expression for an item.

    >>> literal((1, None, {"a": [float("inf")]}))
    '(1, None, {"a": [float("inf")]})'
    """
    match value:
        case str():
            return quoted(value)
        case float() if not math.isfinite(value):
            return f'float("{value}")'
        case tuple():
            inside = ", ".join(map(literal, value))
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        case list():
            return f"[{', '.join(map(literal, value))}]"
        case Mapping():
            return f"{{{', '.join(f'{quoted(k)}: {literal(v)}' for k, v in value.items())}}}"
        case Decimal():
            return f'Decimal("{value}")'
        case datetime():
            parts = [value.year, value.month, value.day, value.hour, value.minute, value.second]
            parts += [value.microsecond] if value.microsecond else []
            zone = ", tzinfo=timezone.utc" if value.tzinfo else ""
            return f"datetime({', '.join(map(str, parts))}{zone})"
        case date():
            return f"date({value.year}, {value.month}, {value.day})"
        case _:
            return repr(value)


def function_text(fn: Fn) -> str:
    """A lambda, constants that it closes over written into it, or the name of what is none.

    A `def` of a single `return` is a lambda; any other function stands under its name, for the
    reader to bind.
    """
    tree = _as_lambda(fn.source)
    if tree is None:
        return _name(fn)
    values = {name: _constant(text) for name, text in fn.closed}
    constants = {name: value for name, value in values.items() if value is not None}
    return python_text(ast.fix_missing_locations(_Inline(constants).visit(tree)))


def left_names(fn: Fn) -> tuple[str, ...]:
    """What the function's text names without saying what it is."""
    tree = _as_lambda(fn.source)
    if tree is None:
        return (_name(fn),)
    named = {part.id for part in ast.walk(tree) if isinstance(part, ast.Name)}
    return tuple(name for name, text in fn.closed if name in named and _constant(text) is None)


def _name(fn: Fn) -> str:
    """The name of a function that is no expression; an unreadable lambda has none of its own."""
    return fn.name if fn.name.isidentifier() else f"function_{fn.source.rpartition('#')[2]}"


def _as_lambda(text: str) -> ast.Lambda | None:
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    match body:
        case [ast.Expr(value=ast.Lambda() as tree)]:
            return tree
        case [ast.FunctionDef(args=args, body=[ast.Return(value=ast.expr() as result)])]:
            plain = [ast.arg(arg=a.arg) for a in args.args]
            return ast.Lambda(args=ast.arguments([], plain, None, [], [], None, []), body=result)
        case _:
            return None


def _constant(text: str) -> ast.expr | None:
    """What a function closes over, where it can be written as a constant."""
    try:
        return ast.parse(literal(ast.literal_eval(text)), mode="eval").body
    except (SyntaxError, ValueError):
        return None


class _Inline(ast.NodeTransformer):
    """Constants in the place of the names that stand for them."""

    def __init__(self, constants: Mapping[str, ast.expr]) -> None:
        self.constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.constants.get(node.id, node)
