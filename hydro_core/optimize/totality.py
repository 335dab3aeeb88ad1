"""Whether a function has a value for every item of a type: whether it may be asked about items that
the program never shows it.

An expression fails where a value is null, where a container has no such element, and where two
values have no order. So it is looked at with its types, and with what the tests around it say is
not null. Only what is known to have a value counts; of the rest nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal as DecimalValue
from itertools import pairwise
from typing import Any

from hydro_core.errors import TypeProblem
from hydro_core.functions.bind import bind
from hydro_core.functions.fields import field_in
from hydro_core.functions.fn import Fn
from hydro_core.functions.kinds import NULL, ExprType, number
from hydro_core.functions.not_null import NotNull, where_false, where_true
from hydro_core.functions.tree import Const, Expr, IfElse, Make, Op, Param, Part
from hydro_core.types.item import (
    BINARY,
    DATE,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    ItemType,
)
from hydro_core.types.values import ValueProblem, to_item

COMPARABLE = (STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ)
"""Types of which any two values that are not null have an order; so have numbers."""
EQUALITIES = frozenset({"==", "!=", "is", "is not"})


def is_total(fn: Fn, item: ItemType, *, there: bool = False) -> bool:
    """Whether the function has a value for every item of the type, null among them.

    Not for null, if items are `there`.

    >>> import ast
    >>> from hydro_core.functions.read import read_function
    >>> from hydro_core.types.ddl import parse_ddl
    >>> f = read_function(ast.parse("lambda x: x is not None and x > 1", mode="eval").body, {})
    >>> is_total(f, parse_ddl("long")), is_total(f, parse_ddl("decimal(9, 2)"))
    (True, True)
    >>> f = read_function(ast.parse("lambda x: x > 1", mode="eval").body, {})
    >>> is_total(f, parse_ddl("long"))
    False
    """
    if fn.tree is None or len(fn.params) != 1:
        return False
    try:
        bound = bind(fn, (item,))
    except TypeProblem:
        return False
    known = (Param(fn.params[0]),) if there else ()
    return bound.tree is not None and _has_value(bound.tree, known)


@dataclass(slots=True)
class Uses:
    """The types of items that functions are applied to, in the program and by rules."""

    types: dict[Fn, set[tuple[ItemType, bool]]] = field(default_factory=dict)

    def add(self, fn: Fn, item: ItemType, *, there: bool) -> None:
        """The function may be asked about items of the type, of which none is null if `there`."""
        self.types.setdefault(fn, set()).add((item, there))

    def are_total(self, fns: Iterable[Fn]) -> bool:
        """Whether all of them have a value for every item that they may be asked about."""
        known = self.types.get
        return all(
            known(fn) and all(is_total(fn, item, there=there) for item, there in self.types[fn])
            for fn in fns
        )


def _has_value(tree: Expr, known: NotNull) -> bool:
    """Whether the expression has a value, given what is known not to be null."""
    match tree:
        case Const() | Param():
            return isinstance(tree, Param) or _is_item(tree.value)
        case Part(base):
            there = _has_value(base, known) and _is_there(base, known)
            return there and field_in(base.type, tree) is not None
        case IfElse(test, then, otherwise):
            return (
                _are_alike(tree, (then, otherwise))
                and _has_value(test, known)
                and _has_value(then, (*known, *where_true(test)))
                and _has_value(otherwise, (*known, *where_false(test)))
            )
        case Make("tuple") if tree.fields is not None:
            return all(_has_value(v, known) for v in tree.fields.values())
        case Op("not", (operand,)):
            return _has_value(operand, known)
        case Op("and" | "or", values):
            return _are_alike(tree, values) and _in_turn(tree, known)
        case Op(family="comparison"):
            return _compares(tree, known)
    return False


def _in_turn(tree: Op, known: NotNull) -> bool:
    """Whether each has a value where it is asked: all before it are true, or all are false."""
    for value in tree.args:
        if not _has_value(value, known):
            return False
        after = where_true(value) if tree.name == "and" else where_false(value)
        known = (*known, *after)
    return True


def _compares(tree: Op, known: NotNull) -> bool:
    if not all(_has_value(operand, known) for operand in tree.args):
        return False
    return all(
        _compares_two(op, left, right, known)
        for op, (left, right) in zip(tree.name.split(","), pairwise(tree.args), strict=True)
    )


def _compares_two(op: str, left: Expr, right: Expr, known: NotNull) -> bool:
    if op in EQUALITIES:
        return True
    if op in {"in", "not in"}:
        listed = isinstance(right, Const) and isinstance(right.value, (tuple, list))
        return listed or (isinstance(right, Make) and right.kind == "tuple")
    there = all(_is_there(e, known) and _has_order(e) for e in (left, right))
    return there and _have_order(left.type, right.type)


def _is_there(tree: Expr, known: NotNull) -> bool:
    """Whether the expression is not null."""
    if tree in known:
        return True
    match tree:
        case Const(value):
            return value is not None
        case Op("or", values):
            return _is_there(values[-1], known)
        case Make("tuple") | Op("not") | Op(family="comparison"):
            return True
        case _:
            return False


def _are_alike(whole: Expr, parts: tuple[Expr, ...]) -> bool:
    """Whether each of the values that it may have is one of its type: a decimal number may not
    fit into the type that two decimals have in common.
    """
    return all(_fits(part.type, whole.type) for part in parts)


def _is_item(value: Any) -> bool:
    """Whether a constant may be a result: an integer beyond 64 bits may not."""
    try:
        to_item(value)
    except ValueProblem:
        return False
    return True


def _fits(part: ExprType, whole: ExprType) -> bool:
    if part in (whole, NULL):
        return True
    numbers = number(part), number(whole)
    return None not in numbers and not any(isinstance(n, Decimal) for n in numbers)


def _has_order(tree: Expr) -> bool:
    """Whether it is no constant that nothing can be compared with."""
    value = tree.value if isinstance(tree, Const) else None
    return not isinstance(value, DecimalValue) or not value.is_nan()


def _have_order(left: ExprType, right: ExprType) -> bool:
    """Whether any two values of the types can be compared, if neither is null."""
    a, b = number(left), number(right)
    if a is not None and b is not None:
        # a double may be NaN, with which a decimal has no order
        return DOUBLE not in (a, b) or not any(isinstance(n, Decimal) for n in (a, b))
    return left == right and left in COMPARABLE
