"""What a test says of None: expressions that cannot be it where the test is true, or where it is
false.
"""

from __future__ import annotations

from hydro_core.functions.tree import BoolOp, Compare, Const, Expr, Unary

NotNull = tuple[Expr, ...]
"""Expressions that are not null."""


def where_true(test: Expr) -> NotNull:
    """What cannot be null where the expression is true."""
    match test:
        case Compare(first, (("is not", Const(None)),)):
            return (first,)
        case Compare(first, (("==", Const(value)),)) if value is not None:
            return (first,)
        case Compare():
            return ()
        case BoolOp("and", values):
            return tuple(part for value in values for part in where_true(value))
        case Unary("not", operand):
            return where_false(operand)
        case _:
            return (test,)


def where_false(test: Expr) -> NotNull:
    """What cannot be null where the expression is false."""
    match test:
        case Compare(first, (("is", Const(None)),)):
            return (first,)
        case BoolOp("or", values):
            return tuple(part for value in values for part in where_false(value))
        case Unary("not", operand):
            return where_true(operand)
        case _:
            return ()
