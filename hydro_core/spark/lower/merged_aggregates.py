"""The named aggregates as results that are merged from partial results."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql import Column

from hydro_core.catalog.spec import Aggregate
from hydro_core.ir.graph import Node
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import TICK
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates import Argument, argument_of, or_zero
from hydro_core.spark.lower.items import reversed_order
from hydro_core.spark.lower.partial import Merge, Merged, Partial, counted, exact_sum
from hydro_core.spark.lower.sums import checked_sum, sum_of_decimals
from hydro_core.types.item import Decimal, ItemType, is_integer

_WIDE = "decimal(20,0)"
"""Sums of integers have room to spare: only the result must have 64 bits."""


def merged_aggregate(
    aggregate: Aggregate, item: ItemType, result: ItemType, node: Node
) -> Merged | None:
    """The aggregate over the rows of a key; None where it is not merged from partial results."""
    arguments = [argument_of(a, item) for a in aggregate.arguments]
    if aggregate.function == "count":
        return _count(arguments[0][0].isNotNull() if arguments else F.lit(True), result)
    if aggregate.function in ("max_by", "min_by"):
        return _extreme(arguments[0], arguments[1], result, greatest=aggregate.function == "max_by")
    if aggregate.function == "sum":
        return _sum(*arguments[0], result, node)
    if aggregate.function == "total":
        return _total(*arguments[0], result, node)
    make = _MERGED.get(aggregate.function)
    return None if make is None else make(*arguments[0], result)


def _one(of_rows: Column, merge: Merge, result: ItemType) -> Merged:
    return Merged((Partial(of_rows, merge),), lambda parts: parts[0].cast(spark_type(result)))


def _count(is_counted: Column, result: ItemType) -> Merged:
    return Merged((counted(is_counted),), lambda parts: parts[0].cast(spark_type(result)))


def _sum(column: Column, item: ItemType, result: ItemType, node: Node) -> Merged:
    """The sum of nothing is null."""
    return Merged(
        (_sum_of_rows(column, item, node),),
        lambda parts: checked_sum(parts[0], result, node, F.col(TICK)),
        support=counted(column.isNotNull()),
    )


def _sum_of_rows(column: Column, item: ItemType, node: Node) -> Partial:
    if isinstance(item, Decimal):
        return sum_of_decimals(column, item, node)
    return _sum_of(column, item)


def _sum_of(column: Column, item: ItemType) -> Partial:
    """Doubles are rounded, so that what goes cannot be taken out of their sum."""
    if is_integer(item):
        return exact_sum(column.cast(_WIDE))
    return Partial(F.sum(column.cast("double")), F.sum)


def _total(column: Column, item: ItemType, result: ItemType, node: Node) -> Merged:
    """The sum with 0 for no values."""
    part = _sum_of_rows(column, item, node)
    return Merged((part,), lambda parts: or_zero(parts[0], result))


def _average(column: Column, item: ItemType, result: ItemType) -> Merged | None:
    if isinstance(item, Decimal):
        return None
    return Merged(
        (_sum_of(column, item), counted(column.isNotNull())),
        lambda parts: parts[0].cast("double") / F.nullif(parts[1], F.lit(0)),
    )


def _extreme(value: Argument, order: Argument, result: ItemType, *, greatest: bool) -> Merged:
    found = F.max(extreme_part(value, order, greatest=greatest))
    return Merged(
        (Partial(found, F.max),), lambda parts: parts[0].getField("v").cast(spark_type(result))
    )


def extreme_part(value: Argument, order: Argument, *, greatest: bool) -> Column:
    """What the value at an extreme order has most of; null orders do not count."""
    place = order[0] if greatest else reversed_order(*order)
    both = F.struct(place.alias("o"), value[0].alias("v"))
    return F.when(order[0].isNotNull(), both)


_MERGED: Mapping[str, Callable[[Column, ItemType, ItemType], Merged | None]] = {
    "count_if": lambda column, _, result: _count(column, result),
    "avg": _average,
    "min": lambda column, _, result: _one(F.min(column), F.min, result),
    "max": lambda column, _, result: _one(F.max(column), F.max, result),
    "any_value": lambda column, _, result: _one(F.min(column), F.min, result),
    "bool_and": lambda column, _, result: _one(F.bool_and(column), F.bool_and, result),
    "bool_or": lambda column, _, result: _one(F.bool_or(column), F.bool_or, result),
}
