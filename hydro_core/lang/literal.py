"""Schemas and functions as a program's text writes them."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from hydro_core.functions.fn import Fn
from hydro_core.functions.python_text import python_text
from hydro_core.types.ddl import to_ddl
from hydro_core.types.item import ItemType
from hydro_core.types.literal import literal, quoted


def schema_text(item: ItemType) -> str:
    """A schema in quotes."""
    return quoted(to_ddl(item))


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
