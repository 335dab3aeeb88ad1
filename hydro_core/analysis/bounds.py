"""What the condition of a join says of two columns: that they are equal, or how far apart at most.

`l.at <= r.at and r.at <= l.at + timedelta(hours=1)` bounds `r.at - l.at` on both sides. Rows that
match then lie in the same stretch of time, or in neighbouring ones, so they are brought together by
these and not as all pairs. What is read off is what every matching pair meets; the condition itself
is still asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import ceil, floor
from typing import Any

from hydro_core.functions.constant import constant_value
from hydro_core.functions.fields import column_of
from hydro_core.functions.fn import Fn
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.tree import (
    Const,
    Expr,
    IfElse,
    Op,
    Param,
    Part,
)
from hydro_core.functions.views import ITEM, field_of
from hydro_core.types.common import common_type
from hydro_core.types.item import (
    DATE,
    LONG,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    ItemType,
    Row,
    Scalar,
    is_integer,
)

MOST_PARTS = 4
"""A row of the left is brought to so many stretches at most."""
MOST_STRETCHES = 1 << 60
"""So far from each other two columns may be, in stretches."""
_EPOCHS: Mapping[ItemType, tuple[Any, timedelta]] = {
    DATE: (date(1970, 1, 1), timedelta(days=2)),
    TIMESTAMP: (datetime(1970, 1, 1, tzinfo=UTC), timedelta(seconds=1)),
    TIMESTAMP_NTZ: (datetime(1970, 1, 1), timedelta(seconds=1)),
}
"""From where times are counted, and the shortest stretch."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a column of the right is from one of the left: `low <= r - l <= high`."""

    left: str
    right: str
    low: Any = None
    high: Any = None

    def __str__(self) -> str:
        ends = [f"{self.low} <= "] if self.low is not None else []
        ends.append(f"r.{self.right} - l.{self.left}")
        return "".join(ends) + (f" <= {self.high}" if self.high is not None else "")


@dataclass(frozen=True, slots=True)
class SharedParts:
    """Functions of either side's row by which rows that match have an equal part."""

    left: tuple[Fn, ...]
    right: tuple[Fn, ...]
    """Of those of a pair that matches, one of the left gives what one of the right does."""


def column(name: str) -> Fn:
    """The function that gives a column of a row."""
    return function_of(field_of(Param(ITEM), name), (ITEM,))


def equal_columns(condition: Fn, left: ItemType, right: ItemType) -> tuple[tuple[str, str], ...]:
    """The columns of both sides that are equal in each pair that matches."""
    found = [
        (of[0], of[1])
        for form, operator in _compared(condition)
        if operator == "==" and not form.constant and (of := form.apart()) is not None
    ]
    return tuple(dict.fromkeys(pair for pair in found if _are_scalars(left, right, *pair)))


def _are_scalars(left: ItemType, right: ItemType, mine: str, theirs: str) -> bool:
    one, other = (
        side.column(name) if isinstance(side, Row) else None
        for side, name in ((left, mine), (right, theirs))
    )
    both = None if one is None or other is None else common_type(one, other)
    return isinstance(both, Scalar | Decimal)


def bounds_of(condition: Fn, left: ItemType, right: ItemType) -> tuple[Bounds, ...]:
    """What each pair that matches says of a column of either side, those of one type."""
    found: dict[tuple[str, str], Bounds] = {}
    for form, operator in _compared(condition):
        names = form.apart()
        if names is None:
            continue
        of = _measured(left, names[0])
        if of is None or of != _measured(right, names[1]):
            continue
        for one in _of_difference(form, names, operator, of):
            found[names] = _both(found.get(names, one), one)
    return tuple(found.values())


def _of_difference(
    form: _Linear, names: tuple[str, str], operator: str, of: ItemType
) -> Iterator[Bounds]:
    """What `form <= 0`, or `form == 0`, says, where the form is of two columns."""
    apart = form.constant or (timedelta() if of in _EPOCHS else 0)
    if isinstance(apart, timedelta) != (of in _EPOCHS):
        return
    upwards = form.columns[0, names[0]] == 1
    if operator == "==":
        value = apart if upwards else -apart
        yield Bounds(*names, low=_whole(value, floor), high=_whole(value, ceil))
    elif upwards:  # l - r + c <= 0
        yield Bounds(*names, low=_whole(apart, floor))
    else:  # r - l + c <= 0
        yield Bounds(*names, high=_whole(-apart, ceil))


def _whole(value: Any, to: Any) -> Any:
    return to(value) if isinstance(value, float) else value


def _measured(item: ItemType, name: str) -> ItemType | None:
    """The type of a column, if distances in it are exact; integers are one type."""
    of = item.column(name) if isinstance(item, Row) else None
    if of is not None and is_integer(of):
        return LONG
    return of if of in _EPOCHS else None


def _both(one: Bounds, other: Bounds) -> Bounds:
    lows = [b.low for b in (one, other) if b.low is not None]
    highs = [b.high for b in (one, other) if b.high is not None]
    return Bounds(one.left, one.right, max(lows, default=None), min(highs, default=None))


def shared_parts(bounds: Bounds, left: ItemType) -> SharedParts | None:
    """The stretches by which rows meet that are within bounds; None where these have no end."""
    of = _measured(left, bounds.left)
    if bounds.low is None or bounds.high is None or of is None:
        return None
    least = 2 if of not in _EPOCHS else _EPOCHS[of][1]
    length = max(bounds.high - bounds.low, least)
    first, last = bounds.low // length, bounds.high // length + 1
    if last - first >= MOST_PARTS or max(abs(first), abs(last)) > MOST_STRETCHES:
        return None
    stretches = range(first, max(first, last) + 1)
    return SharedParts(
        tuple(_stretch(bounds.left, of, length, offset) for offset in stretches),
        (_stretch(bounds.right, of, length, 0),),
    )


def _stretch(name: str, of: ItemType, length: Any, offset: int) -> Fn:
    """The number of the stretch in which a column is, and so many further; null of null."""
    value = field_of(Param(ITEM), name)
    since = Op("-", (value, Const(_EPOCHS[of][0]))) if of in _EPOCHS else value
    number: Expr = Op("//", (since, Const(length)))
    if offset:
        number = Op("+", (number, Const(offset)))
    tree = IfElse(Op("is", (value, Const(None))), Const(None), number)
    return function_of(tree, (ITEM,))


@dataclass(frozen=True, slots=True)
class _Linear:
    """A sum of columns, each with a sign, and of a constant."""

    columns: Mapping[tuple[int, str], int]
    """The sign of a column, by its side and name."""
    constant: Any = 0

    def apart(self) -> tuple[str, str] | None:
        """The columns of left and right, if it is their difference and a constant."""
        ends = sorted(self.columns)
        if [side for side, _ in ends] != [0, 1] or sum(int(n) for n in self.columns.values()) != 0:
            return None
        return ends[0][1], ends[1][1]

    def __neg__(self) -> _Linear:
        return _Linear({c: -sign for c, sign in self.columns.items()}, -self.constant)

    def plus(self, other: _Linear) -> _Linear | None:
        """The sum; None where a column is in both."""
        if self.columns.keys() & other.columns.keys():
            return None
        constant = self.constant or other.constant
        if self.constant and other.constant:
            constant = self.constant + other.constant
        return _Linear({**self.columns, **other.columns}, constant)


def _compared(condition: Fn) -> Iterator[tuple[_Linear, str]]:
    """What is at most 0 (`<=`), or 0 (`==`), where the condition is true, as far as it is read."""
    if condition.tree is None or len(condition.params) != 2:
        return
    for compare in _conjuncts(condition.tree):
        operand, *others = compare.args
        for operator, following in zip(compare.name.split(","), others, strict=True):
            # a number beside a distance of times is none: the types say so
            with suppress(TypeError):
                yield from list(_difference(operand, operator, following, condition.params))
            operand = following


def _difference(
    one: Expr, operator: str, other: Expr, params: tuple[str, ...]
) -> Iterator[tuple[_Linear, str]]:
    if operator in (">", ">="):
        one, other, operator = other, one, {">": "<", ">=": "<="}[operator]
    less, more = (_linear(e, params) for e in (_inside(one), other))
    if less is None or more is None or operator not in ("<", "<=", "=="):
        return
    absolute = _inside(one) is not one
    if operator == "==" and absolute:
        return
    signs = (less, -less) if absolute else (less,)
    for form in signs:
        found = form.plus(-more)
        if found is not None:
            yield found, "==" if operator == "==" else "<="


def _inside(tree: Expr) -> Expr:
    """What an absolute value is of."""
    match tree:
        case Op("abs", (inner,), ()):
            return inner
        case _:
            return tree


def _conjuncts(tree: Expr) -> Iterator[Op]:
    match tree:
        case Op("and", values):
            for value in values:
                yield from _conjuncts(value)
        case Op(family="comparison"):
            yield tree
        case _:
            return


def _linear(tree: Expr, params: tuple[str, ...]) -> _Linear | None:
    match tree:
        case Part(Param(name)) if name in params and (column := column_of(tree)) is not None:
            return _Linear({(params.index(name), column): 1})
        case Op("-x", (operand,)):
            found = _linear(operand, params)
            return None if found is None else -found
        case Op("+" | "-" as operator, (left, right)):
            one, other = _linear(left, params), _linear(right, params)
            if one is None or other is None:
                return None
            return one.plus(-other if operator == "-" else other)
        case _:
            value = constant_value(tree)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return _Linear({}, value) if is_number or isinstance(value, timedelta) else None
