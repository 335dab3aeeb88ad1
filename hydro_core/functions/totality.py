"""Totality: an expression has a value, and one that is not null, for every item.

An expression fails where a value is null, where a container has no such element, and where two
values have no order. So the analysis uses its types, and the values that enclosing tests prove to
be not null. It is conservative: it claims a value only where it is certain. The entry of an
operation has its condition; `where_true` and `where_false` have what a test implies about None.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from hydro_core.functions.kinds import NULL, ExprType, number
from hydro_core.functions.library.registry import operation
from hydro_core.functions.tree import (
    Bind,
    Const,
    Expr,
    Fold,
    IfElse,
    Make,
    Op,
    Param,
    Part,
    SameTree,
    children,
    field_in,
)
from hydro_core.types.item import Decimal
from hydro_core.types.values import ValueProblem, to_item


class Certainty(NamedTuple):
    """Certain facts about an expression."""

    has_value: bool
    """It does not fail."""
    not_null: bool


NotNull = tuple[Expr, ...]
"""Expressions that are known to be not null."""
_NOTHING = Certainty(has_value=False, not_null=False)


@lru_cache(maxsize=4096)
def certainty(of: SameTree, known: NotNull = ()) -> Certainty:
    """The certain facts about a bound tree, given expressions that are not null."""
    return _TOTALITY.of(of.tree, known)


class _Totality(Fold[NotNull, Certainty]):
    """The certain facts about an expression, given expressions that are not null at its
    position.
    """

    def of(self, node: Expr, around: NotNull) -> Certainty:
        """The certain facts about a node; a node among the known ones is not null."""
        found = super().of(node, around)
        return found._replace(not_null=True) if node in around else found

    def _const(self, node: Const, around: NotNull) -> Certainty:
        return Certainty(_is_item(node.value), node.value is not None)

    def _param(self, node: Param, around: NotNull) -> Certainty:
        return Certainty(has_value=True, not_null=False)

    def _part(self, node: Part, around: NotNull) -> Certainty:
        is_field = field_in(node.base.type, node) is not None
        return Certainty(is_field and all(self.of(node.base, around)), not_null=False)

    def _if_else(self, node: IfElse, around: NotNull) -> Certainty:
        then = self.of(node.then, (*around, *where_true(node.test)))
        otherwise = self.of(node.otherwise, (*around, *where_false(node.test)))
        have_value = then.has_value and otherwise.has_value
        alike = have_value and _are_alike(node, (node.then, node.otherwise))
        has_value = alike and self.of(node.test, around).has_value
        return Certainty(has_value, then.not_null and otherwise.not_null)

    def _make(self, node: Make, around: NotNull) -> Certainty:
        known = node.kind == "tuple" and node.fields is not None
        has_value = known and all(self.of(part, around).has_value for part in children(node))
        return Certainty(has_value, not_null=True)

    def _op(self, node: Op, around: NotNull) -> Certainty:
        if node.family in ("and", "or"):
            return self._in_turn(node, around)
        entry = None if node.family == "method" else operation(node.name)
        if entry is None or entry.has_value is None:
            return _NOTHING
        operands = [self.of(operand, around) for operand in node.operands]
        sure = all(operand.has_value for operand in operands)
        # An operation with such a condition gives a truth value, which is not null.
        nulls = [not operand.not_null for operand in operands]
        return Certainty(sure and entry.has_value(node, nulls), not_null=True)

    def _in_turn(self, node: Op, around: NotNull) -> Certainty:
        """Each operand is evaluated where all before it are true (`and`), or where all are false
        (`or`).
        """
        has_value, last = _are_alike(node, node.args), _NOTHING
        for value in node.args:
            last = self.of(value, around)
            has_value = has_value and last.has_value
            after = where_true(value) if node.name == "and" else where_false(value)
            around = (*around, *after)
        return Certainty(has_value, node.name == "or" and last.not_null)

    def _bind(self, node: Bind, around: NotNull) -> Certainty:
        return _NOTHING


_TOTALITY = _Totality()


def _are_alike(whole: Expr, parts: tuple[Expr, ...]) -> bool:
    """True if each of its possible values has the type of the whole: a decimal may not fit the
    common type of two decimals.
    """
    return all(_fits(part.type, whole.type) for part in parts)


def _fits(part: ExprType, whole: ExprType) -> bool:
    if part in (whole, NULL):
        return True
    numbers = number(part), number(whole)
    return None not in numbers and not any(isinstance(n, Decimal) for n in numbers)


def _is_item(value: Any) -> bool:
    """True if a constant may be a result: an integer beyond 64 bits may not."""
    try:
        to_item(value)
    except ValueProblem:
        return False
    return True


def where_true(test: Expr) -> NotNull:
    """The expressions that are not null where the test is true."""
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
    """The expressions that are not null where the test is false."""
    match test:
        case Op("is", (first, Const(None))):
            return (first,)
        case Op("or", values):
            return tuple(part for value in values for part in where_false(value))
        case Op("not", (operand,)):
            return where_true(operand)
        case _:
            return ()
