"""Named aggregates on Spark: exact, deterministic, and mergeable from partial results."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import islice
from operator import and_

from pyspark.sql import Column, WindowSpec

from hydro_core.catalog.aggregates import (
    AGGREGATES,
    EXTREMES,
    ITSELF,
    PartialState,
    aggregate_type,
    moving_split,
    running_split,
)
from hydro_core.catalog.spec import Aggregate, digits_beyond, sum_beyond
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Node
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import COUNT, ITEM, ORD, TICK
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.apply import apply
from hydro_core.spark.functions.columns.compiler import TypedColumn
from hydro_core.spark.lower.items import evaluated, fn_type, make_row, named, reversed_order
from hydro_core.spark.lower.registry import NUMBER, fail
from hydro_core.types.item import LONG, Decimal, Field, ItemType, Row, is_integer
from hydro_core.types.values import LONG_MAX, LONG_MIN

# Partial results of aggregates, and sums that fail the tick if their result does not fit.


@dataclass(frozen=True, slots=True)
class AggregateScope:
    """The rows of an aggregate, by the way in which an aggregate function of Spark becomes a
    column.
    """

    of: Callable[[Column], Column]
    tick: Callable[[], Column]
    """The tick of its rows."""
    counts_different: bool = True
    """True if Spark can compute the number of distinct values."""


GROUP = AggregateScope(lambda aggregate: aggregate, lambda: F.max(TICK))
"""The rows of a group; other scopes are windows around each row."""

Merge = Callable[[Column], Column]
"""The aggregate that merges several partial results into one."""


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial result of some rows: its aggregate, and its merge."""

    of_rows: Column
    merge: Merge
    of_changes: Callable[[Column], Column] | None = None
    """The aggregate of updates, given their count n (negative for retractions).

    These results are merged by the same merge, which adds. None: a retraction cannot be subtracted.
    """
    is_weighted: bool = True
    """True if n may be any number; else it is 1 or -1."""
    beyond: Column | None = None
    """Fails the tick where the merge of values is null because the result does not fit."""

    def merged(self, column: Column, window: WindowSpec) -> Column:
        """The partial results of a column, merged up to each row of a window."""
        found = self.merge(column).over(window)
        if self.beyond is None:
            return found
        lost = found.isNull() & (F.count(column).over(window) > 0)
        return F.when(lost, self.beyond).otherwise(found)


@dataclass(frozen=True, slots=True)
class MergedResult:
    """A result that is computed from merged partial results."""

    partials: tuple[Partial, ...]
    result: Callable[[Sequence[Column]], Column]

    def of_rows(self) -> Column:
        """The result for the rows of a group, without a merge."""
        return self.result([part.of_rows for part in self.partials])

    def of_next(self, columns: Iterator[Column]) -> Column:
        """The result for its partial results, which are the next columns."""
        return self.result(list(islice(columns, len(self.partials))))

    def of_changes(self) -> MergedResult | None:
        """The same result for updates with the count `n`; None if some partial result has no
        inverse.
        """
        found = []
        for part in self.partials:
            if part.of_changes is None:
                return None
            found.append(replace(part, of_rows=part.of_changes(F.col(COUNT))))
        return MergedResult(tuple(found), self.result)


def count_part(value: Column, scope: AggregateScope = GROUP) -> Partial:
    """The number of rows whose value is not null."""
    return Partial(
        scope.of(F.count(value)),
        F.sum,
        lambda n: F.coalesce(F.sum(F.when(value.isNotNull(), n)), F.lit(0)),
    )


def exact_sum(value: Column, scope: AggregateScope = GROUP) -> Partial:
    """The sum of decimals with at most 28 digits; no digit is lost, also with retractions."""
    # The product has room for all digits, so Spark does not round.
    total = scope.of(F.sum(value))
    return Partial(total, F.sum, lambda n: F.sum(value * n.cast("decimal(9,0)")))


ROOMY = 28
"""The digits of the longest decimals whose sums have ten more: room for any number of values."""


def checked_sum(total: Column, result: ItemType, node: Node, tick: Column) -> Column:
    """The exact sum as its type; a sum of integers must fit 64 bits."""
    if result != LONG:
        return total.cast(spark_type(result))
    wide = total.cast("decimal(38,0)")
    least, greatest = (F.lit(bound).cast("decimal(38,0)") for bound in (LONG_MIN, LONG_MAX))
    beyond = fail(node, sum_beyond(NUMBER), number=wide, tick=tick)
    fits = wide.between(least, greatest)
    return F.when(fits, wide.cast("long")).when(wide.isNotNull(), beyond.cast("long"))


def sum_of_decimals(
    column: Column, item: Decimal, node: Node, scope: AggregateScope = GROUP
) -> Partial:
    """The sum of decimals, which must fit 38 digits."""
    if item.precision <= ROOMY:
        return exact_sum(column, scope)
    beyond = _beyond("sum", Decimal(38, item.scale), node)
    return Partial(
        or_fails(F.try_sum, column, beyond, scope),
        F.try_sum,
        lambda n: or_fails(
            F.try_sum, F.when(n > 0, column).otherwise(_negated(column, item)), beyond
        ),
        is_weighted=False,
        beyond=beyond(F.col(TICK)),
    )


def _negated(column: Column, item: Decimal) -> Column:
    """The negated number, digit by digit: Spark's own minus rounds to 34 of them."""
    text = column.cast("string")
    without = F.substring(text, 2, item.precision + 2)
    other = F.when(text.startswith("-"), without).otherwise(F.concat(F.lit("-"), text))
    return other.cast(spark_type(item))


def mean_of_decimals(
    column: Column, item: Decimal, result: ItemType, node: Node, scope: AggregateScope = GROUP
) -> Column:
    """The mean of decimals; the mean and the sum must fit 38 digits."""
    if item.precision <= ROOMY:
        return scope.of(F.avg(column))
    total = sum_of_decimals(column, item, node, scope).of_rows
    mean = or_fails(F.try_avg, column, _beyond("mean", result, node), scope)
    return F.when(total.isNotNull(), mean)


def or_fails(
    aggregate: Callable[[Column], Column],
    column: Column,
    beyond: Callable[[Column], Column],
    scope: AggregateScope = GROUP,
) -> Column:
    """An aggregate that fails the tick where it is null although there are values: its result does
    not fit.
    """
    found = scope.of(aggregate(column))
    lost = found.isNull() & (scope.of(F.count(column)) > 0)
    return F.when(lost, beyond(scope.tick())).otherwise(found)


def _beyond(what: str, result: ItemType, node: Node) -> Callable[[Column], Column]:
    refusal = digits_beyond(what, result)
    return lambda tick: fail(node, refusal, tick=tick)


# The named aggregates as Spark's, exact and deterministic as the language requires.
#
# Aggregates that merge partial results compute a group's rows as one partial result, too.


_WIDE = "decimal(20,0)"
"""Sums of integers have room to spare: only the result must fit 64 bits."""


@dataclass(frozen=True, slots=True)
class Group:
    """The input of a lowered aggregate: its arguments over the rows of a group, and its result."""

    arguments: Sequence[TypedColumn]
    result: ItemType
    node: Node
    tick: Column
    """The tick of the result."""
    ordered: bool = False
    """By the column `ord`."""
    scope: AggregateScope = GROUP

    def of(self, aggregate: Callable[[Column], Column]) -> Column:
        """An aggregate of Spark's over the first argument."""
        return self.scope.of(aggregate(self.arguments[0][0]))


def aggregate_column(
    aggregate: Aggregate,
    item: ItemType,
    result: ItemType,
    node: Node,
    *,
    ordered: bool,
    scope: AggregateScope = GROUP,
) -> Column:
    """The aggregate over the rows `item` of a group, or of another scope; `ordered`: by the column
    `ord`.
    """
    function = aggregate.function
    if function in _MERGED or function in _OF_GROUP:
        arguments = [argument_of(a, item) for a in aggregate.arguments]
        group = Group(arguments, result, node, scope.tick(), ordered, scope)
        merged = _MERGED[function](group).of_rows() if function in _MERGED else None
        found = _OF_GROUP[function](group) if merged is None else merged
    else:
        parts = [
            (aggregate_column(part, item, of, node, ordered=ordered, scope=scope), of)
            for part, of in parts_of(aggregate, item)
        ]
        found = made_of(function, parts, result, node)
    return found.cast(spark_type(result))


def argument_of(argument: str | Fn, item: ItemType) -> TypedColumn:
    """The argument of an aggregate as a column, and its type."""
    if isinstance(argument, Fn):
        return evaluated(argument, item), fn_type(argument, item)
    return named(F.col(ITEM), item, argument)


def merged_aggregate(
    aggregate: Aggregate, item: ItemType, result: ItemType, node: Node, *, goes: bool = False
) -> MergedResult | None:
    """The aggregate over a history, or with `goes` over updates with retractions.

    None if it is not merged from partial results.
    """
    split = (moving_split if goes else running_split)(aggregate, item)
    if split is None:
        return None
    if split[0] != aggregate:
        return _of_parts(aggregate, item, result, node, goes=goes)
    arguments = [argument_of(a, item) for a in aggregate.arguments]
    return _MERGED[aggregate.function](Group(arguments, result, node, F.col(TICK)))


def _of_parts(
    aggregate: Aggregate, item: ItemType, result: ItemType, node: Node, *, goes: bool
) -> MergedResult | None:
    """A result that is computed from those of other aggregates."""
    parts, found = parts_of(aggregate, item), []
    for part, of in parts:
        merged = merged_aggregate(part, item, of, node, goes=goes)
        if merged is None:
            return None
        found.append((merged, of))
    partials = tuple(p for merged, _ in found for p in merged.partials)

    def result_of(columns: Sequence[Column]) -> Column:
        rest = iter(columns)
        made = [(merged.of_next(rest), of) for merged, of in found]
        return made_of(aggregate.function, made, result, node)

    return MergedResult(partials, result_of)


def stored_part(row: Column, item: ItemType, name: str, merge: Aggregate) -> Column:
    """A result in a stored row as a partial result."""
    value = named(row, item, name)
    if merge.function not in EXTREMES:
        return value[0]
    order = named(row, item, str(merge.arguments[1]))
    return _extreme_part(value, order, greatest=_GREATEST[merge.function])


def parts_of(aggregate: Aggregate, item: ItemType) -> Sequence[tuple[Aggregate, ItemType]]:
    """The aggregates that it is computed from, each with its type."""
    kept = AGGREGATES[aggregate.function].kept
    assert isinstance(kept, PartialState), f"{aggregate.function} is not made of parts"
    found = [Aggregate(part, aggregate.arguments) for part in kept.parts]
    return [(part, aggregate_type(part, item)) for part in found]


def made_of(
    function: str, parts: Sequence[tuple[Column, ItemType]], result: ItemType, node: Node
) -> Column:
    """A result that is computed from those of other aggregates over the same rows, its parts."""
    columns = [column for column, _ in parts]
    if function in _MADE:
        return _MADE[function](columns, result, node)
    kept = AGGREGATES[function].kept
    fn = kept.function if isinstance(kept, PartialState) else None
    assert fn is not None, f"nothing makes {function} of its parts"
    row = Row(tuple(Field(p, item) for p, (_, item) in zip(fn.params, parts, strict=True)))
    whole = make_row(list(zip(fn.params, columns, strict=True)))
    return apply(fn, whole, row, tick=F.col(TICK)).cast(spark_type(result))


def _one(aggregate: Merge) -> Callable[[Group], MergedResult]:
    """An aggregate of Spark's, which merges its own results."""

    def found(group: Group) -> MergedResult:
        part = Partial(group.of(aggregate), aggregate)
        return MergedResult((part,), lambda parts: parts[0].cast(spark_type(group.result)))

    return found


def _count(group: Group) -> MergedResult:
    value = group.arguments[0][0] if group.arguments else F.lit(1)
    return _counted(group, value)


def _counted(group: Group, value: Column) -> MergedResult:
    part = count_part(value, group.scope)
    return MergedResult((part,), lambda parts: parts[0].cast(spark_type(group.result)))


def _sum(group: Group) -> MergedResult:
    return MergedResult(
        (_summed(group),), lambda parts: checked_sum(parts[0], group.result, group.node, group.tick)
    )


def _summed(group: Group) -> Partial:
    column, item = group.arguments[0]
    if isinstance(item, Decimal):
        return sum_of_decimals(column, item, group.node, group.scope)
    if is_integer(item):
        return exact_sum(column.cast(_WIDE), group.scope)
    return Partial(group.scope.of(F.sum(column.cast("double"))), F.sum)


def _total(group: Group) -> MergedResult:
    """The sum, 0 for no values.

    A 0 of another type would remove digits after the point from a long decimal.
    """
    of_type = spark_type(group.result)
    zero = F.lit(0).cast(of_type)
    return MergedResult((_summed(group),), lambda parts: F.coalesce(parts[0].cast(of_type), zero))


def _extreme(group: Group, *, greatest: bool) -> MergedResult:
    """The value at the least or greatest order; of several values the greatest."""
    value, order = group.arguments
    part = Partial(group.scope.of(F.max(_extreme_part(value, order, greatest=greatest))), F.max)
    of_type = spark_type(group.result)
    return MergedResult((part,), lambda parts: parts[0].getField("v").cast(of_type))


def _extreme_part(value: TypedColumn, order: TypedColumn, *, greatest: bool) -> Column:
    """The order and the value, to be maximized for the value at the least or greatest order; null
    orders do not count.
    """
    place = order[0] if greatest else reversed_order(*order)
    both = F.struct(place.alias("o"), value[0].alias("v"))
    return F.when(order[0].isNotNull(), both)


_GREATEST: Mapping[str, bool] = {"max_by": True, "min_by": False}
"""The aggregates of a value at an order: True for the greatest order, False for the least."""

_MERGED: Mapping[str, Callable[[Group], MergedResult]] = {
    **{name: partial(_extreme, greatest=greatest) for name, greatest in _GREATEST.items()},
    "count": _count,
    "count_if": lambda group: _counted(group, F.when(group.arguments[0][0], F.lit(True))),
    "sum": _sum,
    "total": _total,
    "min": _one(F.min),
    "max": _one(F.max),
    "any_value": _one(F.min),
    "bool_and": _one(F.bool_and),
    "bool_or": _one(F.bool_or),
}
"""Aggregates whose own results are merged."""


def _average(group: Group) -> Column:
    """For integers: the exact sum, divided once."""
    column, item = group.arguments[0]
    if isinstance(item, Decimal):
        return mean_of_decimals(column, item, group.result, group.node, group.scope)
    if is_integer(item):
        total = group.scope.of(F.sum(column.cast(_WIDE)))
        return total.cast("double") / F.nullif(group.of(F.count), F.lit(0))
    return group.of(F.avg)


def _at_end(group: Group, *, first: bool) -> Column:
    choose = F.min if first else F.max
    both = F.struct(F.col(ORD).alias("o"), group.arguments[0][0].alias("v"))
    return group.scope.of(choose(both)).getField("v")


def _listed(group: Group) -> Column:
    """The non-null values in the stream's order."""
    column, _ = group.arguments[0]
    pairs = F.collect_list(
        F.when(column.isNotNull(), F.struct(F.col(ORD).alias("o"), column.alias("v")))
    )
    return F.transform(F.sort_array(group.scope.of(pairs)), lambda pair: pair.getField("v"))


def _spread(group: Group, *, of: Callable[[Column], Column]) -> Column:
    """The spread of a sample; null for one value."""
    return F.when(group.of(F.count) > 1, group.of(of))


def _sorted(group: Group) -> Column:
    """The non-null values, ascending."""
    return F.sort_array(group.of(F.collect_list))


def _different(group: Group) -> Column:
    columns = [column for column, _ in group.arguments]
    if group.scope.counts_different:
        return group.scope.of(F.count_distinct(columns[0], *columns[1:]))
    there = reduce(and_, (column.isNotNull() for column in columns))
    values = F.struct(*(column.alias(f"v{i}") for i, column in enumerate(columns)))
    return F.size(F.array_distinct(group.scope.of(F.collect_list(F.when(there, values)))))


_OF_GROUP: Mapping[str, Callable[[Group], Column]] = {
    "count_distinct": _different,
    "avg": _average,
    "first": partial(_at_end, first=True),
    "last": partial(_at_end, first=False),
    "collect_list": lambda group: _listed(group) if group.ordered else _sorted(group),
    "collect_set": lambda group: F.array_distinct(_sorted(group)),
    "median": lambda group: group.of(lambda column: F.percentile(column.cast("double"), 0.5)),
    "stddev": partial(_spread, of=F.stddev_samp),
    "stddev_pop": lambda group: group.of(F.stddev_pop),
    "variance": partial(_spread, of=F.var_samp),
    "var_pop": lambda group: group.of(F.var_pop),
}
"""Aggregates over all rows of a group; others are computed from parts."""


def _mean(parts: Sequence[Column], result: ItemType, _: Node) -> Column:
    """A total, divided once."""
    total, count = parts[0], F.nullif(parts[1], F.lit(0))
    if not isinstance(result, Decimal):
        return total.cast("double") / count
    return _rounded_once(total, count.cast("decimal(18,0)"), result).cast(spark_type(result))


def _rounded_once(total: Column, count: Column, result: Decimal) -> Column:
    """A total of decimals divided, half up, as `avg` does it, where Spark's own division of such
    types would round to fewer digits, or twice.

    The remainder is subtracted first, so that the division does not round; it decides the last
    digit. All types have at most 38 digits, if the result has 23.
    """
    scale = result.scale - 4
    unit = F.lit(decimal.Decimal(1).scaleb(-scale))
    # The mean has four digits more than the total.
    times = total.cast(f"decimal({result.precision + 6},{scale})") * F.lit(decimal.Decimal(10_000))
    step = count * unit
    left = times % step
    whole = ((times - left) / count).cast(f"decimal({result.precision + 2},{scale})")
    last = F.when(left * 2 >= step, unit).when(left * -2 >= step, -unit)
    return (whole + F.coalesce(last, unit - unit)) * F.lit(decimal.Decimal("0.0001"))


def _sum_of_parts(parts: Sequence[Column], result: ItemType, node: Node) -> Column:
    """The sum of no values is null; a count of the values is the second part."""
    return checked_sum(F.when(parts[1] > 0, parts[0]), result, node, F.col(TICK))


_MADE: Mapping[str, Callable[[Sequence[Column], ItemType, Node], Column]] = {
    "avg": _mean,
    "sum": _sum_of_parts,
    ITSELF: lambda parts, result, _: parts[0].cast(spark_type(result)),
}
