"""Whether a function has a value for every item: whether it may be asked about items that the
program never shows it.
"""

from __future__ import annotations

from typing import Any

from hydro_core.functions.tree import (
    Attribute,
    BoolOp,
    Compare,
    Const,
    Expr,
    IfElse,
    Index,
    MakeTuple,
    Param,
    Spread,
    Unary,
)


def is_total(tree: Expr, known: tuple[Expr, ...] = ()) -> bool:
    """Whether the expression has a value for every item; `known` are expressions that are not null.

    Its types fit each other, since the program has been typed: what is left to fail is null.
    """
    match tree:
        case Const() | Param():
            return True
        case IfElse():
            return _is_field(tree) or _all_total((tree.test, tree.then, tree.otherwise), known)
        case MakeTuple(parts):
            values = tuple(p for p in parts if not isinstance(p, Spread))
            return len(values) == len(parts) and _all_total(values, known)
        case Unary("not", operand):
            return is_total(operand, known)
        case BoolOp("or", values):
            return _all_total(values, known)
        case BoolOp("and", values):
            return _in_turn(values, known)
        case Compare(first, rest):
            return is_total(first, known) and _compares(first, rest, known)
    return False


def _is_field(tree: IfElse) -> bool:
    """Whether it is a field of the item, null of a null item: what `field_of` makes."""
    match tree:
        case IfElse(Compare(item, (("is", Const(None)),)), Const(None), there):
            known = isinstance(item, Param) or (isinstance(item, IfElse) and _is_field(item))
            return known and isinstance(there, (Index, Attribute)) and there.base == item
    return False


def _all_total(trees: tuple[Expr, ...], known: tuple[Expr, ...]) -> bool:
    return all(is_total(tree, known) for tree in trees)


def _in_turn(values: tuple[Expr, ...], known: tuple[Expr, ...]) -> bool:
    """Whether each has a value where all before it are true."""
    for value in values:
        if not is_total(value, known):
            return False
        known = (*known, *_not_null(value))
    return True


def _compares(first: Expr, rest: tuple[Any, ...], known: tuple[Expr, ...]) -> bool:
    left = first
    for op, right in rest:
        if not is_total(right, known):
            return False
        if op in {"in", "not in"}:
            listed = isinstance(right, MakeTuple) or (
                isinstance(right, Const) and isinstance(right.value, (tuple, list))
            )
            if not listed:
                return False
        elif op not in {"==", "!=", "is", "is not"} and not (
            _is_there(left, known) and _is_there(right, known)
        ):
            return False
        left = right
    return True


def _is_there(tree: Expr, known: tuple[Expr, ...]) -> bool:
    """Whether the expression is not null."""
    if tree in known:
        return True
    match tree:
        case Const(value):
            return value is not None
        case BoolOp("or", values):
            return _is_there(values[-1], known)
        case _:
            return False


def _not_null(tree: Expr) -> tuple[Expr, ...]:
    """What cannot be null where the expression is true."""
    match tree:
        case Compare(first, (("is not", Const(None)),)):
            return (first,)
        case Compare(first, (("==", Const(value)),)) if value is not None:
            return (first,)
        case _:
            return ()
