"""What a test says of None: expressions that cannot be it where the test is true, or where it is
false.
"""

from __future__ import annotations

from hydro_core.functions.tree import Const, Expr, Op

NotNull = tuple[Expr, ...]
"""Expressions that are not null."""


def where_true(test: Expr) -> NotNull:
    """What cannot be null where the expression is true."""
    match test:
        case Op("is not", (first, Const(None))):
            return (first,)
        case Op("==", (first, Const(value))) if value is not None:
            return (first,)
        case Op(family="comparison"):
            return ()
        case Op("and", values):
            return tuple(part for value in values for part in where_true(value))
        case Op("not", (operand,)):
            return where_false(operand)
        case _:
            return (test,)


def where_false(test: Expr) -> NotNull:
    """What cannot be null where the expression is false."""
    match test:
        case Op("is", (first, Const(None))):
            return (first,)
        case Op("or", values):
            return tuple(part for value in values for part in where_false(value))
        case Op("not", (operand,)):
            return where_true(operand)
        case _:
            return ()
