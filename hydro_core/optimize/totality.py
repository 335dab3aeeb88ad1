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
from hydro_core.functions.bind import BoundFunction, bind
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
    return bound.tree is not None and _Judge(bound).is_total(
        bound.tree, (Param(fn.params[0]),) if there else ()
    )


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


@dataclass(frozen=True, slots=True)
class _Judge:
    bound: BoundFunction

    def is_total(self, tree: Expr, known: NotNull) -> bool:
        """Whether the expression has a value, given what is known not to be null."""
        match tree:
            case Const() | Param():
                return isinstance(tree, Param) or _is_item(tree.value)
            case Part(base):
                there = self.is_total(base, known) and self._is_there(base, known)
                return there and field_in(self.bound.kind(base), tree) is not None
            case IfElse(test, then, otherwise):
                return (
                    self._are_alike(tree, (then, otherwise))
                    and self.is_total(test, known)
                    and self.is_total(then, (*known, *where_true(test)))
                    and self.is_total(otherwise, (*known, *where_false(test)))
                )
            case Make("tuple") if tree.fields is not None:
                return all(self.is_total(v, known) for v in tree.fields.values())
            case Op("not", (operand,)):
                return self.is_total(operand, known)
            case Op("and" | "or", values):
                return self._are_alike(tree, values) and self._in_turn(tree, known)
            case Op(family="comparison"):
                return self._compares(tree, known)
        return False

    def _in_turn(self, tree: Op, known: NotNull) -> bool:
        """Whether each has a value where it is asked: all before it are true, or all are false."""
        for value in tree.args:
            if not self.is_total(value, known):
                return False
            after = where_true(value) if tree.name == "and" else where_false(value)
            known = (*known, *after)
        return True

    def _compares(self, tree: Op, known: NotNull) -> bool:
        if not all(self.is_total(operand, known) for operand in tree.args):
            return False
        return all(
            self._compares_two(op, left, right, known)
            for op, (left, right) in zip(tree.name.split(","), pairwise(tree.args), strict=True)
        )

    def _compares_two(self, op: str, left: Expr, right: Expr, known: NotNull) -> bool:
        if op in EQUALITIES:
            return True
        if op in {"in", "not in"}:
            listed = isinstance(right, Const) and isinstance(right.value, (tuple, list))
            return listed or (isinstance(right, Make) and right.kind == "tuple")
        there = all(self._is_there(e, known) and _has_order(e) for e in (left, right))
        return there and _have_order(self.bound.kind(left), self.bound.kind(right))

    def _is_there(self, tree: Expr, known: NotNull) -> bool:
        """Whether the expression is not null."""
        if tree in known:
            return True
        match tree:
            case Const(value):
                return value is not None
            case Op("or", values):
                return self._is_there(values[-1], known)
            case Make("tuple") | Op("not") | Op(family="comparison"):
                return True
            case _:
                return False

    def _are_alike(self, whole: Expr, parts: tuple[Expr, ...]) -> bool:
        """Whether each of the values that it may have is one of its type: a decimal number may not
        fit into the type that two decimals have in common.
        """
        kind = self.bound.kind(whole)
        return all(_fits(self.bound.kind(part), kind) for part in parts)


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
