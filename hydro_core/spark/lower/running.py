"""Results over what stays, as they run from tick to tick: one pass, whatever the range.

A result that is merged from partial results needs the partial results of each key and tick only:
these are merged in the order of ticks, and each merged one is there until the next change of its
key. Rows of before the range count as those of the tick before it. Where rows go again, counts and
exact sums are merged from by how much they change, and a key without rows has no result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

from pyspark.sql import Column, DataFrame, Window

from hydro_core.catalog.spec import Aggregate
from hydro_core.ir.graph import Node
from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import FOREVER, ITEM, TICK, UNTIL
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates import Argument, argument_of, or_zero
from hydro_core.spark.lower.grouping import GroupKeys
from hydro_core.spark.lower.items import reversed_order
from hydro_core.spark.lower.partial import Merge, Partial, Running, counted, exact_sum
from hydro_core.spark.lower.registry import Step
from hydro_core.spark.lower.sums import checked_sum, sum_of_decimals
from hydro_core.types.item import Decimal, ItemType, is_integer


def runs(step: Step) -> bool:
    """Whether the input's rows stay over several ticks, in no order."""
    return step.input.kind is not Kind.E and not step.is_tick and not step.input.ordered


def is_merged(running: Running | None, step: Step) -> TypeGuard[Running]:
    """Whether the result over the step's input is merged from partial results."""
    return running is not None and (step.input.kind is Kind.H or running.is_invertible)


def run_over(
    step: Step, keys: GroupKeys, results: Mapping[str, Running], *, every_tick: bool
) -> DataFrame:
    """The results of each key, named, at all times: (k0 …, the results, t, until).

    With `every_tick`, and without keys, there is a result before the first row too.
    """
    partials = [p for running in results.values() for p in running.partials]
    names = [f"p{i}" for i in range(len(partials))]
    goes = step.input.kind is Kind.G
    rows, of_rows = _changing(step, partials) if goes else _growing(step, partials)
    of_rows = [c.alias(name) for c, name in zip(of_rows, [*names, ROWS], strict=True)]
    found = rows.groupBy("at", *keys.columns).agg(*of_rows)
    if every_tick:
        start = step.first if goes else step.first - 1
        nothing = rows.where(F.lit(False)).agg(*of_rows)
        found = found.unionByName(nothing.withColumn("at", F.lit(start).cast("long")))
    in_time = Window.partitionBy(*keys.by).orderBy("at")
    so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    if goes:
        partials = [Partial(p.of_rows, F.sum) for p in partials]
    merged = found.withColumn(TICK, F.greatest(F.col("at"), F.lit(step.first))).select(
        *keys.by,
        TICK,
        F.coalesce(F.lead("at").over(in_time), F.lit(FOREVER)).alias(UNTIL),
        *(p.merged(F.col(n), so_far).alias(n) for p, n in zip(partials, names, strict=True)),
        F.sum(ROWS).over(so_far).alias(ROWS),
    )
    there = merged.where(F.col(TICK) < F.col(UNTIL))
    if not every_tick:
        there = there.where(F.col(ROWS) > 0)
    columns, position = [], 0
    for name, running in results.items():
        own = [F.col(n) for n in names[position : position + len(running.partials)]]
        columns.append(running.final(own).alias(name))
        position += len(own)
    return there.select(*keys.back, *columns, TICK, UNTIL)


_WIDE = "decimal(20,0)"
"""Sums of integers have room to spare: only the result must have 64 bits."""
ROWS = "rows"
"""How many rows a key has."""


def _growing(step: Step, partials: Sequence[Partial]) -> tuple[DataFrame, list[Column]]:
    """The rows of a history by the tick `at` at which they count, and the partial results."""
    at = F.greatest(F.col(TICK), F.lit(step.first - 1))
    return step.input.frame.withColumn("at", at), [*(p.of_rows for p in partials), F.count(at)]


def _changing(step: Step, partials: Sequence[Partial]) -> tuple[DataFrame, list[Column]]:
    """Rows as they come and go, at the tick `at`, and by how much that changes the results."""
    ends = F.when(
        F.col(UNTIL) <= step.last, F.struct(F.col(UNTIL).alias("at"), F.lit(-1).alias("n"))
    )
    both = F.array(F.struct(F.col(TICK).alias("at"), F.lit(1).alias("n")), ends)
    rows = step.input.frame.select(ITEM, F.inline(F.array_compact(both)).alias("at", "sign"))
    rows = rows.withColumn(TICK, F.col("at"))
    sign = F.col("sign")
    found = [p.of_changes(sign) for p in partials if p.of_changes is not None]
    return rows, [*found, F.coalesce(F.sum(sign), F.lit(0))]


def running_aggregate(
    aggregate: Aggregate, item: ItemType, result: ItemType, node: Node, *, goes: bool = False
) -> Running | None:
    """The aggregate over a history, or over what `goes` again.

    None where it is not merged from partial results.
    """
    arguments = [argument_of(a, item) for a in aggregate.arguments]
    if aggregate.function == "count":
        return _count(arguments[0][0].isNotNull() if arguments else F.lit(True), result)
    if aggregate.function in ("max_by", "min_by"):
        return _extreme(arguments[0], arguments[1], result, greatest=aggregate.function == "max_by")
    if aggregate.function == "sum":
        return (_sum_of_what_goes if goes else _sum)(*arguments[0], result, node)
    if aggregate.function == "total":
        return _total(*arguments[0], result, node)
    make = _MERGED.get(aggregate.function)
    return None if make is None else make(*arguments[0], result)


def _one(of_rows: Column, merge: Merge, result: ItemType) -> Running:
    return Running((Partial(of_rows, merge),), lambda parts: parts[0].cast(spark_type(result)))


def _count(is_counted: Column, result: ItemType) -> Running:
    return Running((counted(is_counted),), lambda parts: parts[0].cast(spark_type(result)))


def _sum(column: Column, item: ItemType, result: ItemType, node: Node) -> Running:
    part = _sum_of_rows(column, item, node)
    return Running((part,), lambda parts: checked_sum(parts[0], result, node, F.col(TICK)))


def _sum_of_rows(column: Column, item: ItemType, node: Node) -> Partial:
    if isinstance(item, Decimal):
        return sum_of_decimals(column, item, node)
    return Partial(F.sum(column.cast(_WIDE if is_integer(item) else "double")), F.sum)


def _sum_of_what_goes(
    column: Column, item: ItemType, result: ItemType, node: Node
) -> Running | None:
    """The sum of nothing is null, and that nothing is left is told by a count."""
    if not _is_exact(item):
        return None
    return Running(
        (exact_sum(_with_room(column, item)), counted(column.isNotNull())),
        lambda parts: checked_sum(F.when(parts[1] > 0, parts[0]), result, node, F.col(TICK)),
    )


def _is_exact(item: ItemType) -> bool:
    return is_integer(item) or isinstance(item, Decimal)


def _with_room(column: Column, item: ItemType) -> Column:
    """Only the result of a sum must have 64 bits."""
    return column.cast(_WIDE) if is_integer(item) else column


def _total(column: Column, item: ItemType, result: ItemType, node: Node) -> Running:
    """The sum with 0 for no values."""
    part = _sum_of_rows(column, item, node)
    return Running((part,), lambda parts: or_zero(parts[0], result))


def _average(column: Column, item: ItemType, result: ItemType) -> Running | None:
    if isinstance(item, Decimal):
        return None
    if is_integer(item):
        total = exact_sum(column.cast("decimal(20,0)"))
    else:
        total = Partial(F.sum(column.cast("double")), F.sum)
    return Running(
        (total, counted(column.isNotNull())),
        lambda parts: parts[0].cast("double") / F.nullif(parts[1], F.lit(0)),
    )


def _extreme(value: Argument, order: Argument, result: ItemType, *, greatest: bool) -> Running:
    found = F.max(extreme_part(value, order, greatest=greatest))
    return Running(
        (Partial(found, F.max),), lambda parts: parts[0].getField("v").cast(spark_type(result))
    )


def extreme_part(value: Argument, order: Argument, *, greatest: bool) -> Column:
    """What the value at an extreme order has most of; null orders do not count."""
    place = order[0] if greatest else reversed_order(*order)
    both = F.struct(place.alias("o"), value[0].alias("v"))
    return F.when(order[0].isNotNull(), both)


_MERGED: Mapping[str, Callable[[Column, ItemType, ItemType], Running | None]] = {
    "count_if": lambda column, _, result: _count(column, result),
    "avg": _average,
    "min": lambda column, _, result: _one(F.min(column), F.min, result),
    "max": lambda column, _, result: _one(F.max(column), F.max, result),
    "any_value": lambda column, _, result: _one(F.min(column), F.min, result),
    "bool_and": lambda column, _, result: _one(F.bool_and(column), F.bool_and, result),
    "bool_or": lambda column, _, result: _one(F.bool_or(column), F.bool_or, result),
}
