"""The named aggregates as Spark's, made as exact and as deterministic as the language asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column

from hydro_core.catalog.spec import Aggregate
from hydro_core.functions.fn import Fn
from hydro_core.ir.graph import Node
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, ORD, TICK
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.items import named, reversed_order
from hydro_core.spark.lower.itemwise import evaluated, fn_type
from hydro_core.spark.lower.sums import checked_sum, mean_of_decimals, sum_of_decimals
from hydro_core.types.item import Decimal, ItemType, is_integer

Argument = tuple[Column, ItemType]


def aggregate_column(
    aggregate: Aggregate, item: ItemType, result: ItemType, node: Node, *, ordered: bool
) -> Column:
    """The aggregate over the rows `item` of a group; `ordered`: by the column `ord`."""
    arguments = [argument_of(a, item) for a in aggregate.arguments]
    name = aggregate.function
    if not arguments:
        return F.count(F.lit(1))
    if ordered and name in _IN_ORDER:
        found = _IN_ORDER[name](arguments[0][0])
    elif name in ("max_by", "min_by"):
        found = _extreme(*arguments, greatest=name == "max_by")
    elif name in ("sum", "total"):
        total = _sum(*arguments[0], node)
        if name == "total":
            return or_zero(total, result)
        return checked_sum(total, result, node, F.max(TICK))
    elif name == "avg":
        found = _average(*arguments[0], result, node)
    elif name == "count_distinct":
        found = F.count_distinct(arguments[0][0], *(column for column, _ in arguments[1:]))
    else:
        found = _SIMPLE[name](*arguments[0])
    return found.cast(spark_type(result))


def argument_of(argument: str | Fn, item: ItemType) -> Argument:
    """The column that an aggregate is over, and its type."""
    if isinstance(argument, Fn):
        return evaluated(argument, item), fn_type(argument, item)
    return named(F.col(ITEM), item, argument)


def _extreme(value: Argument, order: Argument, *, greatest: bool) -> Column:
    """The value at the extreme order.

    Null orders do not count, of several values the greatest is taken.
    """
    place = order[0] if greatest else reversed_order(*order)
    both = F.struct(place.alias("o"), value[0].alias("v"))
    return F.max(F.when(order[0].isNotNull(), both)).getField("v")


def _sum(column: Column, item: ItemType, node: Node) -> Column:
    """Integers are summed with room to spare: only the result must have 64 bits."""
    if isinstance(item, Decimal):
        return sum_of_decimals(column, item, node).of_rows
    return F.sum(column.cast("decimal(20,0)" if is_integer(item) else "double"))


def or_zero(total: Column, result: ItemType) -> Column:
    """The total as the result's type, 0 where it is null.

    A 0 of another type would take digits after the point from a long decimal.
    """
    of_type = spark_type(result)
    return F.coalesce(total.cast(of_type), F.lit(0).cast(of_type))


def _average(column: Column, item: ItemType, result: ItemType, node: Node) -> Column:
    """Of integers: the exact sum, divided once."""
    if isinstance(item, Decimal):
        return mean_of_decimals(column, item, result, node)
    if is_integer(item):
        return F.sum(column.cast("decimal(20,0)")).cast("double") / F.nullif(
            F.count(column), F.lit(0)
        )
    return F.avg(column)


def _median(column: Column, item: ItemType) -> Column:
    return F.percentile(column.cast("double"), 0.5)


def _collected(values: Column) -> Column:
    return F.sort_array(values)


def _at_end(first: bool) -> Callable[[Column], Column]:
    choose = F.min if first else F.max
    return lambda column: choose(F.struct(F.col(ORD).alias("o"), column.alias("v"))).getField("v")


def _listed(column: Column) -> Column:
    """The non-null values in the stream's order."""
    pairs = F.collect_list(
        F.when(column.isNotNull(), F.struct(F.col(ORD).alias("o"), column.alias("v")))
    )
    return F.transform(F.sort_array(pairs), lambda pair: pair.getField("v"))


_IN_ORDER: Mapping[str, Callable[[Column], Column]] = {
    "first": _at_end(first=True),
    "last": _at_end(first=False),
    "collect_list": _listed,
}

_SIMPLE: Mapping[str, Callable[[Column, ItemType], Column]] = {
    "count": lambda column, _: F.count(column),
    "count_if": lambda column, _: F.count_if(column),
    "min": lambda column, _: F.min(column),
    "max": lambda column, _: F.max(column),
    "any_value": lambda column, _: F.min(column),
    "collect_list": lambda column, _: _collected(F.collect_list(column)),
    "collect_set": lambda column, _: F.array_distinct(_collected(F.collect_list(column))),
    "bool_and": lambda column, _: F.bool_and(column),
    "bool_or": lambda column, _: F.bool_or(column),
    "median": _median,
    "stddev": lambda column, _: _spread(F.stddev_samp(column), column),
    "stddev_pop": lambda column, _: F.stddev_pop(column),
    "variance": lambda column, _: _spread(F.var_samp(column), column),
    "var_pop": lambda column, _: F.var_pop(column),
}


def _spread(found: Column, column: Column) -> Column:
    """A sample of one value has no spread."""
    return F.when(F.count(column) > 1, found)
