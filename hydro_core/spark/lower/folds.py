"""Folds, reductions and scans with functions of the program, over the values of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column

from hydro_core.functions.known_folds import (
    Extreme,
    FoldParts,
    KnownFold,
    StartKept,
    Total,
    known_fold,
    known_reduce,
    value_of,
)
from hydro_core.functions.result_type import result_type
from hydro_core.functions.tree import Expr, Fn
from hydro_core.plan.tick_plan import is_in_order
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, Relation, exploded
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.apply import folded_in_python, scanned_in_python
from hydro_core.spark.functions.columns import NotCompilable, predicate_column, to_column
from hydro_core.spark.functions.guards import asked, runs_in_python
from hydro_core.spark.lower.aggregates import Merge, MergedResult, Partial, count_part, exact_sum
from hydro_core.spark.lower.items import ACC, at, convert, keyed_item, literal, make_row, make_tuple
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import DOUBLE, LONG, ItemType, Row, Tuple, is_integer
from hydro_core.types.values import LONG_MAX, LONG_MIN

# Folds and scans with functions of the program, of the values of a group in an array.
#
# The values are collected in order if the function depends on it. The fold is a column if the
# function compiles, else Python computes it for an array at a time; a scan always runs in Python.


def folded(
    step: Step, value: Column, item: ItemType, acc: ItemType, start: Column | None
) -> Column:
    """The fold of a group's values from a start; without a start, of the others from the first."""
    fn, wanted, pairwise = step.arg("f"), spark_type(acc), start is None
    values = _gathered(step, wrapped(value))
    if start is None:
        start, values = first_and_rest(values, item, acc)
    try:
        return F.aggregate(
            values,
            start,
            lambda a, x: to_column(fn, ((a, acc), (x, item)), result=acc).cast(wanted),
        )
    except NotCompilable:
        return folded_in_python(fn, acc, item, values, start, pairwise=pairwise, tick=step.tick)


def first_and_rest(values: Column, item: ItemType, acc: ItemType) -> tuple[Column, Column]:
    """The first value as the accumulator of a reduction, and the array of the others."""
    first = convert(F.get(values, F.lit(0)), item, acc).cast(spark_type(acc))
    return first, F.slice(values, F.lit(2), F.greatest(F.size(values) - 1, F.lit(0)))


def wrapped(value: Column) -> Column:
    """The value in a struct of its own, which is null only if there is no value."""
    return F.struct(value.alias("x"))


def _gathered(step: Step, each: Column) -> Column:
    """A group's values as an array, nulls among them; in order if the function depends on it."""
    if not is_in_order(step.node, step.input.ordered):
        return F.transform(F.collect_list(each), lambda pair: pair.getField("x"))
    placed = F.struct(F.col(ORD).alias("o"), each.alias("w"))
    pairs = F.sort_array(F.collect_list(F.when(each.isNotNull(), placed)))
    return F.transform(pairs, lambda pair: pair.getField("w").getField("x"))


def scanned(
    step: Step, keys: Sequence[Column], value: tuple[Column, ItemType], acc: ItemType
) -> Relation:
    """The result of a scan over the rows of each key that are valid at the same ticks.

    Args:
        step: the operator; its input is ordered.
        keys: the key, as columns k0, k1 …; empty if all items are one group.
        value: the argument of the function for an item, and its type.
        acc: the type of the accumulator.
    """
    times, names = step.input.times, [f"k{i}" for i in range(len(keys))]
    pairs = F.collect_list(F.struct(F.col(ORD).alias("o"), value[0].alias("x")))
    grouped = step.input.frame.groupBy(*times, *keys).agg(F.sort_array(pairs).alias("pairs"))
    values = F.transform("pairs", lambda pair: pair.getField("x"))
    start = literal(step.arg("init"), acc)
    accs = scanned_in_python(step.arg("f"), acc, value[1], values, start, tick=F.col(TICK))
    # Equal items have one position: their results are in the order of the positions.
    orders = F.transform("pairs", lambda pair, i: F.struct(pair.getField("o"), i.alias("i")))
    both = grouped.withColumn("accs", accs).withColumn("orders", orders)
    zipped = F.explode(F.arrays_zip("accs", "orders")).alias("z")
    rows = exploded(both, [*times, *names, zipped], reads=("accs", "orders")).select(
        *times, *names, F.col("z.accs").alias(ACC), F.col("z.orders").alias(ORD)
    )
    made = keyed_item(step, acc) if keys else F.col(ACC)
    frame = rows.select(made.alias(ITEM), *times, ORD)
    return step.relation(step.input.kind, frame, ordered=True)


# Folds with aggregates of Spark: sums, counts, minima and maxima, and tuples or rows of them.
#
# `functions.known_folds` recognizes such a fold; here its parts become partial results that are
# merged, so that a fold runs along a history and continues from stored results. Integers are summed
# with room to spare: only a final sum beyond 64 bits fails the tick, since a fold of a bag has no
# order that would define a partial sum. Where a value is None, or the sum is beyond 64 bits, Python
# computes the result (`hydro_core.spark.functions.guards`).


_WIDE = "decimal(20,0)"
_ORDERED = ("byte", "short", "integer", "long", "string", "date", "timestamp", "timestamp_ntz")
"""Types whose values Python and Spark order alike."""


@dataclass(frozen=True, slots=True)
class _PartialFold:
    """A fold, or a part of one: its partial results, and the final result for a start."""

    partials: tuple[Partial, ...]
    final: Callable[[Column, Sequence[Column]], Column]


def native_fold(
    step: Step, start: Column, acc: ItemType, wrapped: Column, item: ItemType
) -> MergedResult | None:
    """The fold of the values `wrapped.x` of a group from `start`, if Spark has aggregates for
    it.
    """
    fn = step.arg("f")
    known = known_fold(fn)
    if known is None or runs_in_python(fn):
        return None
    values = _Values(fn, wrapped, item)
    try:
        made = _of_fold(values, known, acc)
    except NotCompilable:
        return None

    def final(found: Sequence[Column]) -> Column:
        count, *rest = found
        whole = made.final(start, rest)
        if isinstance(acc, Tuple | Row):
            whole = F.when(start.isNull(), asked(fn)).otherwise(whole)
        return F.when(count == 0, start).otherwise(whole)

    return MergedResult((count_part(wrapped), *made.partials), final)


def native_reduction(
    step: Step, acc: ItemType, wrapped: Column, item: ItemType
) -> MergedResult | None:
    """The reduction of the values `wrapped.x` of a group, if Spark has aggregates for it; null of
    none.
    """
    fn = step.arg("f")
    known = known_reduce(fn)
    if known is None or runs_in_python(fn):
        return None
    values = _Values(fn, wrapped, item)
    try:
        made = _of_reduction(values, known, acc, convert(values.item_column, item, acc))
    except NotCompilable:
        return None

    def final(found: Sequence[Column]) -> Column:
        one, count, *rest = found
        first = convert(one.getField("x"), item, acc)
        nulls, totals = rest[1::2], rest[::2]
        met = F.greatest(*nulls, F.lit(0)) > 0
        whole = F.when(met, asked(fn)).otherwise(made.final(first, totals))
        return F.when(count < 2, first).otherwise(whole)

    some = Partial(_first(wrapped), _first)
    return MergedResult((some, count_part(wrapped), *made.partials), final)


def _first(column: Column) -> Column:
    return F.first(column, ignorenulls=True)


class _Values:
    """The values of a group, each the field `x` of a struct that is null if there is no value."""

    def __init__(self, fn: Fn, wrapped: Column, item: ItemType) -> None:
        self.fn, self.wrapped, self.item = fn, wrapped, item
        self.item_column = wrapped.getField("x")

    def type_of(self, expression: Expr) -> ItemType:
        return result_type(value_of(self.fn, expression), (self.item,))

    def taken(self, expression: Expr, to: ItemType, where: Expr | None = None) -> Column:
        """The value of an expression for each value, not None; null where there is no value or
        `where` is false.
        """
        given = ((self.item_column, self.item),)
        column = to_column(value_of(self.fn, expression), given, result=to)
        column = F.coalesce(column, asked(self.fn))
        if where is not None:
            holds = predicate_column(value_of(self.fn, where), given)
            column = F.when(holds, column)
        return F.when(self.wrapped.isNotNull(), column)


def _of_fold(values: _Values, known: KnownFold, acc: ItemType) -> _PartialFold:
    match known:
        case StartKept():
            return _PartialFold((), lambda start, _: start)
        case Total(value, where):
            taken = values.type_of(value)
            if not (is_integer(taken) or (acc == DOUBLE and taken == DOUBLE)):
                raise NotCompilable(f"a sum of {taken} as {acc}")
            return _added(values, acc, _sum(values.taken(value, _summed(acc), where), acc))
        case Extreme(kind, value):
            taken = values.type_of(value)
            if taken != acc and not (is_integer(taken) and is_integer(acc)):
                raise NotCompilable(f"an extreme of {taken} as {acc}")
            return _extreme(values, kind, _extreme_of(kind, values.taken(value, _ordered(acc))))
        case FoldParts():
            parts = [
                (name, at_, _of_fold(values, part, of))
                for name, at_, part, of in _parts(known, acc)
            ]
            return _joined(parts, acc)


def _of_reduction(values: _Values, known: KnownFold, acc: ItemType, value: Column) -> _PartialFold:
    """Each part has two partial results: the total, and the number of its null values."""
    nulls = count_part(F.when(values.wrapped.isNotNull() & value.isNull(), F.lit(True)))
    match known:
        case StartKept():
            none = count_part(F.lit(None))
            return _PartialFold((none, none), lambda first, _: first)
        case Total():
            total = _sum(value.cast(spark_type(_summed(acc))), acc)
            return _PartialFold((total, nulls), lambda _, found: _exact(values, found[0], acc))
        case Extreme(kind, _):
            _ordered(acc)
            return _PartialFold((_extreme_of(kind, value), nulls), lambda _, found: found[0])
        case FoldParts():
            parts = _parts(known, acc)
            made = [_of_reduction(values, p, of, at(value, acc, i)) for _, i, p, of in parts]
            named = [(n, i, m) for (n, i, _, _), m in zip(parts, made, strict=True)]
            return _joined(named, acc, each=2)


def _summed(acc: ItemType) -> ItemType:
    if acc not in (LONG, DOUBLE):
        raise NotCompilable(f"a sum as {acc}")
    return acc


def _ordered(acc: ItemType) -> ItemType:
    if str(acc) not in _ORDERED:
        raise NotCompilable(f"an extreme of {acc}")
    return acc


def _sum(value: Column, acc: ItemType) -> Partial:
    return exact_sum(value.cast(_WIDE)) if acc == LONG else Partial(F.sum(value), F.sum)


def _exact(values: _Values, total: Column, acc: ItemType) -> Column:
    """The total, if it fits 64 bits."""
    if acc != LONG:
        return total
    fits = total.between(F.lit(LONG_MIN).cast(_WIDE), F.lit(LONG_MAX).cast(_WIDE))
    return F.when(fits, total.cast("long")).when(total.isNotNull(), asked(values.fn))


def _added(values: _Values, acc: ItemType, total: Partial) -> _PartialFold:
    def final(start: Column, found: Sequence[Column]) -> Column:
        wide = start.cast(_WIDE) if acc == LONG else start
        return _met(values, start, found[0], _exact(values, wide + found[0], acc))

    return _PartialFold((total,), final)


def _extreme(values: _Values, kind: str, partial: Partial) -> _PartialFold:
    choose = F.least if kind == "least" else F.greatest

    def final(start: Column, found: Sequence[Column]) -> Column:
        return _met(values, start, found[0], choose(start, found[0]))

    return _PartialFold((partial,), final)


def _extreme_of(kind: str, value: Column) -> Partial:
    merge: Merge = F.min if kind == "least" else F.max
    return Partial(merge(value), merge)


def _met(values: _Values, start: Column, total: Column, both: Column) -> Column:
    """The start and a total combined; a start of None fails as soon as there is a total."""
    return F.when(total.isNull(), start).when(start.isNull(), asked(values.fn)).otherwise(both)


def _parts(known: FoldParts, acc: ItemType) -> list[tuple[str, int, KnownFold, ItemType]]:
    """For each field of the accumulator: its name, its position, its fold, and its type."""
    match acc:
        case Tuple(types) if known.names is None and len(types) == len(known.parts):
            places = range(len(types))
            return [(f"_{i + 1}", i, known.parts[i], types[i]) for i in places]
        case Row(fields) if known.names is not None and set(acc.names) == set(known.names):
            by_name = dict(zip(known.names, known.parts, strict=True))
            return [(f.name, i, by_name[f.name], f.type) for i, f in enumerate(fields)]
        case _:
            raise NotCompilable(f"parts of {acc}")


def _joined(
    parts: list[tuple[str, int, _PartialFold]], acc: ItemType, *, each: int = 1
) -> _PartialFold:
    """A tuple or row of folds; of the partial results of a part, every `each`-th is a total."""

    def final(start: Column, found: Sequence[Column]) -> Column:
        columns, position = [], 0
        for name, place, made in parts:
            count = len(made.partials) // each
            own = found[position : position + count]
            columns.append((name, made.final(at(start, acc, place), own)))
            position += count
        if isinstance(acc, Tuple):
            return make_tuple(*(column for _, column in columns))
        return make_row(columns)

    return _PartialFold(tuple(p for _, _, made in parts for p in made.partials), final)
