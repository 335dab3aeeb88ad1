"""The named aggregates as results that are merged from partial results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from pyspark.sql import Column

from hydro_core.catalog.parts import moving_split, running_split
from hydro_core.catalog.spec import Aggregate
from hydro_core.ir.graph import Node
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import TICK
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.columns.compiler import TypedColumn
from hydro_core.spark.lower.aggregates.named import GREATEST, Group, argument_of, or_zero
from hydro_core.spark.lower.aggregates.of_parts import made_of, parts_of
from hydro_core.spark.lower.aggregates.partial import (
    Merge,
    MergedResult,
    Partial,
    counted,
    exact_sum,
)
from hydro_core.spark.lower.aggregates.sums import checked_sum, sum_of_decimals
from hydro_core.spark.lower.items.columns import reversed_order
from hydro_core.types.item import Decimal, ItemType, is_integer

_WIDE = "decimal(20,0)"
"""Sums of integers have room to spare: only the result must have 64 bits."""


def merged_aggregate(
    aggregate: Aggregate, item: ItemType, result: ItemType, node: Node, *, goes: bool = False
) -> MergedResult | None:
    """The aggregate over a history, or over what `goes` again.

    None where it is not merged from partial results.
    """
    split = (moving_split if goes else running_split)(aggregate, item)
    if split is None:
        return None
    if split[0] != aggregate:
        return _of_parts(aggregate, item, result, node, goes=goes)
    arguments = [argument_of(a, item) for a in aggregate.arguments]
    return _MERGED[aggregate.function](Group(arguments, result, node, ordered=False))


def _of_parts(
    aggregate: Aggregate, item: ItemType, result: ItemType, node: Node, *, goes: bool
) -> MergedResult | None:
    """A result that is made of those of other aggregates."""
    parts, found = parts_of(aggregate, item), []
    for part, of in parts:
        merged = merged_aggregate(part, item, of, node, goes=goes)
        if merged is None:
            return None
        found.append((merged, of))
    partials = tuple(p for merged, _ in found for p in merged.partials)

    def result_of(columns: Sequence[Column]) -> Column:
        rest, made = list(columns), []
        for merged, of in found:
            own, rest = rest[: len(merged.partials)], rest[len(merged.partials) :]
            made.append((merged.result(own), of))
        return made_of(aggregate.function, made, result, node)

    return MergedResult(partials, result_of)


def _one(aggregate: Merge) -> Callable[[Group], MergedResult]:
    """An aggregate of Spark's, which merges its own results."""

    def found(group: Group) -> MergedResult:
        part = Partial(aggregate(group.arguments[0][0]), aggregate)
        return MergedResult((part,), lambda parts: parts[0].cast(spark_type(group.result)))

    return found


def _count(group: Group, is_counted: Column) -> MergedResult:
    return MergedResult(
        (counted(is_counted),), lambda parts: parts[0].cast(spark_type(group.result))
    )


def _rows(group: Group) -> MergedResult:
    return _count(group, group.arguments[0][0].isNotNull() if group.arguments else F.lit(True))


def _sum(group: Group) -> MergedResult:
    part = _sum_of_rows(*group.arguments[0], group.node)
    return MergedResult(
        (part,), lambda parts: checked_sum(parts[0], group.result, group.node, F.col(TICK))
    )


def _sum_of_rows(column: Column, item: ItemType, node: Node) -> Partial:
    if isinstance(item, Decimal):
        return sum_of_decimals(column, item, node)
    if is_integer(item):
        return exact_sum(column.cast(_WIDE))
    return Partial(F.sum(column.cast("double")), F.sum)


def _total(group: Group) -> MergedResult:
    """The sum with 0 for no values."""
    part = _sum_of_rows(*group.arguments[0], group.node)
    return MergedResult((part,), lambda parts: or_zero(parts[0], group.result))


def _extreme(group: Group, *, greatest: bool) -> MergedResult:
    found = F.max(extreme_part(*group.arguments, greatest=greatest))
    of_type = spark_type(group.result)
    return MergedResult(
        (Partial(found, F.max),), lambda parts: parts[0].getField("v").cast(of_type)
    )


def extreme_part(value: TypedColumn, order: TypedColumn, *, greatest: bool) -> Column:
    """What the value at an extreme order has most of; null orders do not count."""
    place = order[0] if greatest else reversed_order(*order)
    both = F.struct(place.alias("o"), value[0].alias("v"))
    return F.when(order[0].isNotNull(), both)


_MERGED: Mapping[str, Callable[[Group], MergedResult]] = {
    **{name: partial(_extreme, greatest=greatest) for name, greatest in GREATEST.items()},
    "count": _rows,
    "count_if": lambda group: _count(group, group.arguments[0][0]),
    "sum": _sum,
    "total": _total,
    "min": _one(F.min),
    "max": _one(F.max),
    "any_value": _one(F.min),
    "bool_and": _one(F.bool_and),
    "bool_or": _one(F.bool_or),
}
"""Those whose own results are merged; others are made of their parts."""
