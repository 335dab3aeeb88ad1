"""Folds that Spark has aggregates for.

A sum of integers is exact whatever its partial sums are: the upper and the lower 32 bits are summed
apart, which holds for 2**31 items, and put together at the end. Only a final sum beyond 64 bits
fails the tick, since a fold of a bag has no order in which a partial sum would be one. An item
whose value is None fails it, as Python's `+` and `max` do.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from hydro_core.functions.fn import Fn
from hydro_core.functions.known_folds import (
    Extreme,
    KnownFold,
    Parts,
    Total,
    known_fold,
    known_reduce,
    value_of,
)
from hydro_core.functions.result_type import result_type
from hydro_core.functions.tree import Const, Expr
from hydro_core.spark.columns import NotCompilable, predicate_column, to_column
from hydro_core.spark.columns.compiler import compile_expression
from hydro_core.spark.columns.scope import Site
from hydro_core.spark.types import spark_type
from hydro_core.types.item import DOUBLE, LONG, ItemType, Row, Tuple, is_integer

_HALF = 32
_ORDERED = ("byte", "short", "integer", "long", "string", "date", "timestamp", "timestamp_ntz")


def native_fold(
    fn: Fn, init: object, acc: ItemType, value: Column, item: ItemType, tick: Column | None = None
) -> Column | None:
    """The aggregate that `fold(init, fn)` of a group's values is; None where Spark has none.

    `init` is the value that the fold starts with, `acc` the type of its accumulator.
    """
    known = known_fold(fn, init)
    return None if known is None else _aggregate(_Fold(fn, value, item, tick), known, acc)


def native_reduce(
    fn: Fn, acc: ItemType, value: Column, item: ItemType, tick: Column | None = None
) -> Column | None:
    """The aggregate that `reduce(fn)` of a group's values is, for a group of at least one."""
    known = known_reduce(fn)
    return None if known is None else _aggregate(_Fold(fn, value, item, tick), known, acc)


class _Fold:
    """A fold of a group's values: it compiles what is taken of each."""

    def __init__(self, fn: Fn, value: Column, item: ItemType, tick: Column | None) -> None:
        self.fn, self.value, self.item = fn, value, item
        # A failure within an aggregate names the item; the tick is not a column of the group.
        self.tick = tick

    def type_of(self, expression: Expr) -> ItemType:
        """The type of what is taken of an item."""
        return result_type(value_of(self.fn, expression), (self.item,))

    def column(self, expression: Expr, to: ItemType) -> Column:
        """What is taken of an item, where None fails."""
        taken = value_of(self.fn, expression)
        column = to_column(taken, ((self.value, self.item),), result=to, tick=self.tick)
        return F.coalesce(column, self.fail("TypeError", "an operand is None"))

    def condition(self, expression: Expr) -> Column:
        """Whether an item counts."""
        taken = value_of(self.fn, expression)
        return predicate_column(taken, ((self.value, self.item),), tick=self.tick)

    def fail(self, kind: str, reason: str, *, shows_item: bool = True) -> Column:
        """A column that fails the job."""
        shown = (self.value,) if shows_item else ()
        return Site(self.fn, compile_expression, shown, self.tick if shows_item else None).fail(
            kind, reason
        )


def _aggregate(fold: _Fold, known: KnownFold, acc: ItemType) -> Column | None:
    try:
        return _column(fold, known, acc)
    except NotCompilable:
        return None


def _column(fold: _Fold, known: KnownFold, acc: ItemType) -> Column:
    match known:
        case Total():
            return _total(fold, known, acc)
        case Extreme():
            return _extreme(fold, known, acc)
        case Parts():
            return _parts(fold, known, acc)


def _total(fold: _Fold, known: Total, acc: ItemType) -> Column:
    taken = fold.type_of(known.value)
    if acc == LONG and is_integer(taken) and not isinstance(known.start, bool):
        return _integer_sum(fold, known)
    if acc == DOUBLE and (taken == DOUBLE or is_integer(taken)):
        if is_integer(taken) and not isinstance(known.start, float | None):
            raise NotCompilable("a float that starts as an integer")
        values = _where(fold, known, lambda: fold.column(known.value, DOUBLE))
        start = 0.0 if known.start is None else float(_number(known.start))
        total = F.coalesce(F.sum(values), F.lit(0.0))
        # A reduction of −0.0 alone stays what it is; both zeros are equal.
        return total if start == 0 else F.lit(start) + total
    raise NotCompilable(f"a sum of {taken} as {acc}")


def _integer_sum(fold: _Fold, known: Total) -> Column:
    values = _where(fold, known, lambda: fold.column(known.value, LONG))
    zero = F.lit(0).cast("long")
    high = F.coalesce(F.sum(F.shiftright(values, _HALF)), zero)
    low = F.coalesce(F.sum(values.bitwiseAND(F.lit(2**_HALF - 1))), zero)
    start = 0 if known.start is None else int(_number(known.start))
    high = high + (start >> _HALF)
    low = low + (start & (2**_HALF - 1))
    # The upper half is signed, and takes what the lower one carries.
    carried = high + F.shiftright(low, _HALF)
    upper = F.try_multiply(carried, F.lit(2**_HALF).cast("long"))
    beyond = fold.fail("OverflowError", "the sum is beyond 64 bits", shows_item=False)
    return F.coalesce(upper + low.bitwiseAND(F.lit(2**_HALF - 1)), beyond)


def _where(fold: _Fold, known: Total, values: Callable[[], Column]) -> Column:
    if known.where is None:
        return values()
    return F.when(fold.condition(known.where), values())


def _extreme(fold: _Fold, known: Extreme, acc: ItemType) -> Column:
    taken = fold.type_of(known.value)
    if str(acc) not in _ORDERED or not (taken == acc or (is_integer(taken) and is_integer(acc))):
        raise NotCompilable(f"an extreme of {taken} as {acc}")
    values = fold.column(known.value, acc)
    found = F.min(values) if known.kind == "min" else F.max(values)
    if known.start is None:
        return found
    start = to_column(_constant(fold.fn, known.start), ((fold.value, fold.item),), result=acc)
    # Both leave out null, which is the extreme of no items.
    return F.least(start, found) if known.kind == "min" else F.greatest(start, found)


def _parts(fold: _Fold, known: Parts, acc: ItemType) -> Column:
    match acc:
        case Tuple(types) if known.names is None and len(types) == len(known.parts):
            names = [f"_{i}" for i in range(1, len(types) + 1)]
            pairs = list(zip(names, types, known.parts, strict=True))
        case Row(fields) if known.names is not None and set(acc.names) == set(known.names):
            by_name = dict(zip(known.names, known.parts, strict=True))
            pairs = [(f.name, f.type, by_name[f.name]) for f in fields]
        case _:
            raise NotCompilable(f"parts of {acc}")
    columns = [_column(fold, part, to).cast(spark_type(to)).alias(n) for n, to, part in pairs]
    return F.struct(*columns)


def _constant(fn: Fn, value: object) -> Fn:
    return value_of(Fn(fn.name, fn.source, ("", "_"), fn.call, span=fn.span), Const(value))


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotCompilable("a sum that starts as no number")
    return value
