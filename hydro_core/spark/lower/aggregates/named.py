"""The named aggregates as Spark's, made as exact and as deterministic as the language asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import and_

from pyspark.sql import Column

from hydro_core.catalog.spec import Aggregate
from hydro_core.functions.fn import Fn
from hydro_core.ir.graph import Node
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, ORD
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.columns.compiler import TypedColumn
from hydro_core.spark.lower.aggregates.of_parts import made_of, parts_of
from hydro_core.spark.lower.aggregates.scope import GROUP, AggregateScope
from hydro_core.spark.lower.aggregates.sums import checked_sum, mean_of_decimals, sum_of_decimals
from hydro_core.spark.lower.items.columns import named, reversed_order
from hydro_core.spark.lower.items.functions import evaluated, fn_type
from hydro_core.types.item import Decimal, ItemType, is_integer


@dataclass(frozen=True, slots=True)
class Group:
    """What an aggregate is lowered for: its arguments over the rows of a group, and its result."""

    arguments: Sequence[TypedColumn]
    result: ItemType
    node: Node
    ordered: bool
    """By the column `ord`."""
    scope: AggregateScope = GROUP


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
    make = _LOWERED.get(aggregate.function)
    if make is not None:
        arguments = [argument_of(a, item) for a in aggregate.arguments]
        found = make(Group(arguments, result, node, ordered, scope))
    else:
        parts = [
            (aggregate_column(part, item, of, node, ordered=ordered, scope=scope), of)
            for part, of in parts_of(aggregate, item)
        ]
        found = made_of(aggregate.function, parts, result, node)
    return found.cast(spark_type(result))


def argument_of(argument: str | Fn, item: ItemType) -> TypedColumn:
    """The column that an aggregate is over, and its type."""
    if isinstance(argument, Fn):
        return evaluated(argument, item), fn_type(argument, item)
    return named(F.col(ITEM), item, argument)


def _at_extreme(group: Group, *, greatest: bool) -> Column:
    """The value at the extreme order.

    Null orders do not count, of several values the greatest is taken.
    """
    value, order = group.arguments
    place = order[0] if greatest else reversed_order(*order)
    both = F.struct(place.alias("o"), value[0].alias("v"))
    return group.scope.of(F.max(F.when(order[0].isNotNull(), both))).getField("v")


def _sum(group: Group) -> Column:
    """Integers are summed with room to spare: only the result must have 64 bits."""
    column, item = group.arguments[0]
    if isinstance(item, Decimal):
        return sum_of_decimals(column, item, group.node, group.scope).of_rows
    return group.scope.of(F.sum(column.cast("decimal(20,0)" if is_integer(item) else "double")))


def or_zero(total: Column, result: ItemType) -> Column:
    """The total as the result's type, 0 where it is null.

    A 0 of another type would take digits after the point from a long decimal.
    """
    of_type = spark_type(result)
    return F.coalesce(total.cast(of_type), F.lit(0).cast(of_type))


def _average(group: Group) -> Column:
    """Of integers: the exact sum, divided once."""
    (column, item), of = group.arguments[0], group.scope.of
    if isinstance(item, Decimal):
        return mean_of_decimals(column, item, group.result, group.node, group.scope)
    if is_integer(item):
        count = F.nullif(of(F.count(column)), F.lit(0))
        return of(F.sum(column.cast("decimal(20,0)"))).cast("double") / count
    return of(F.avg(column))


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
    """A sample of one value has no spread."""
    column, _ = group.arguments[0]
    return F.when(group.scope.of(F.count(column)) > 1, group.scope.of(of(column)))


def _count(group: Group) -> Column:
    return group.scope.of(F.count(group.arguments[0][0] if group.arguments else F.lit(1)))


def _checked(group: Group) -> Column:
    return checked_sum(_sum(group), group.result, group.node, group.scope.tick())


def _sorted(group: Group) -> Column:
    """The non-null values, ascending."""
    return F.sort_array(group.scope.of(F.collect_list(group.arguments[0][0])))


def _all_listed(group: Group) -> Column:
    return _listed(group) if group.ordered else _sorted(group)


def _different(group: Group) -> Column:
    columns = [column for column, _ in group.arguments]
    if group.scope.counts_different:
        return group.scope.of(F.count_distinct(columns[0], *columns[1:]))
    there = reduce(and_, (column.isNotNull() for column in columns))
    values = F.struct(*(column.alias(f"v{i}") for i, column in enumerate(columns)))
    return F.size(F.array_distinct(group.scope.of(F.collect_list(F.when(there, values)))))


def _of(aggregate: Callable[[Column], Column]) -> Callable[[Group], Column]:
    """An aggregate of Spark's."""
    return lambda group: group.scope.of(aggregate(group.arguments[0][0]))


GREATEST: Mapping[str, bool] = {"max_by": True, "min_by": False}
"""The aggregates of a value at an extreme order: whether that is the greatest."""

_LOWERED: Mapping[str, Callable[[Group], Column]] = {
    **{name: partial(_at_extreme, greatest=greatest) for name, greatest in GREATEST.items()},
    "count": _count,
    "count_if": _of(F.count_if),
    "count_distinct": _different,
    "sum": _checked,
    "total": lambda group: or_zero(_sum(group), group.result),
    "avg": _average,
    "min": _of(F.min),
    "max": _of(F.max),
    "any_value": _of(F.min),
    "first": partial(_at_end, first=True),
    "last": partial(_at_end, first=False),
    "collect_list": _all_listed,
    "collect_set": lambda group: F.array_distinct(_sorted(group)),
    "bool_and": _of(F.bool_and),
    "bool_or": _of(F.bool_or),
    "median": _of(lambda column: F.percentile(column.cast("double"), 0.5)),
    "stddev": partial(_spread, of=F.stddev_samp),
    "stddev_pop": _of(F.stddev_pop),
    "variance": partial(_spread, of=F.var_samp),
    "var_pop": _of(F.var_pop),
}
"""Those that are not here are made of their parts."""
