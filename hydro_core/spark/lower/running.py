"""Results over a history, as they run from tick to tick: one pass, whatever the range.

A result that is merged from partial results needs the partial results of each key and tick only:
these are merged in the order of ticks, and each merged one is there until the next change of its
key. Rows of before the range count as those of the tick before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from hydro_core.catalog.spec import Aggregate
from hydro_core.plan.kinds import Kind
from hydro_core.spark.lower.aggregates import Argument, argument_of
from hydro_core.spark.lower.items import reversed_order
from hydro_core.spark.lower.partial import Merge, Partial, Running
from hydro_core.spark.lower.registry import Step
from hydro_core.spark.relation import FOREVER, TICK, UNTIL
from hydro_core.spark.types import spark_type
from hydro_core.types.item import Decimal, ItemType, is_integer


def runs(step: Step) -> bool:
    """Whether the input is a history over several ticks, whose order does not matter."""
    return step.input.kind is Kind.H and not step.is_tick and not step.input.ordered


def run_over(
    step: Step, keys: Sequence[Column], results: Mapping[str, Running], *, every_tick: bool
) -> DataFrame:
    """The results of each key, named, at all times: (k0 …, the results, t, until).

    With `every_tick`, and without keys, there is a result before the first row too.
    """
    partials = [p for running in results.values() for p in running.partials]
    names = [f"p{i}" for i in range(len(partials))]
    of_rows = [p.of_rows.alias(name) for p, name in zip(partials, names, strict=True)]
    by = [f"k{i}" for i in range(len(keys))]
    start = F.lit(step.first - 1)
    at_tick = F.greatest(F.col(TICK), start).alias("at")
    found = step.input.frame.groupBy(at_tick, *keys).agg(*of_rows)
    if every_tick:
        nothing = step.input.frame.where(F.lit(False)).agg(*of_rows)
        found = found.unionByName(nothing.withColumn("at", start.cast("long")))
    in_time = Window.partitionBy(*by).orderBy("at")
    so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    merged = found.select(
        *by,
        F.greatest(F.col("at"), F.lit(step.first)).alias(TICK),
        F.coalesce(F.lead("at").over(in_time), F.lit(FOREVER)).alias(UNTIL),
        *(p.merge(F.col(n)).over(so_far).alias(n) for p, n in zip(partials, names, strict=True)),
    )
    there = merged.where(F.col(TICK) < F.col(UNTIL))
    columns, position = [], 0
    for name, running in results.items():
        own = [F.col(n) for n in names[position : position + len(running.partials)]]
        columns.append(running.final(own).alias(name))
        position += len(own)
    return there.select(*by, *columns, TICK, UNTIL)


def running_aggregate(aggregate: Aggregate, item: ItemType, result: ItemType) -> Running | None:
    """The aggregate over a history; None where it is not merged from partial results."""
    arguments = [argument_of(a, item) for a in aggregate.arguments]
    if aggregate.function == "count":
        counted = arguments[0][0] if arguments else F.lit(1)
        return _one(F.count(counted), F.sum, result)
    if aggregate.function in ("max_by", "min_by"):
        return _extreme(arguments[0], arguments[1], result, greatest=aggregate.function == "max_by")
    make = _MERGED.get(aggregate.function)
    return None if make is None else make(*arguments[0], result)


def _one(of_rows: Column, merge: Merge, result: ItemType) -> Running:
    return Running((Partial(of_rows, merge),), lambda parts: parts[0].cast(spark_type(result)))


def _sum(column: Column, item: ItemType, result: ItemType) -> Running | None:
    if is_integer(item):
        return _one(F.sum(column.cast("decimal(20,0)")), F.sum, result)
    if isinstance(item, Decimal):
        return _one(F.sum(column), F.sum, result)
    return _one(F.sum(column.cast("double")), F.sum, result)


def _total(column: Column, item: ItemType, result: ItemType) -> Running | None:
    """The sum with 0 for no values."""
    found = _sum(column, item, result)
    if found is None:
        return None
    zero = F.lit(0)
    return Running(
        found.partials, lambda parts: F.coalesce(parts[0], zero).cast(spark_type(result))
    )


def _average(column: Column, item: ItemType, result: ItemType) -> Running | None:
    if isinstance(item, Decimal):
        return None
    total = column.cast("decimal(20,0)" if is_integer(item) else "double")
    return Running(
        (Partial(F.sum(total), F.sum), Partial(F.count(column), F.sum)),
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
    "total": _total,
    "count_if": lambda column, _, result: _one(F.count_if(column), F.sum, result),
    "sum": _sum,
    "avg": _average,
    "min": lambda column, _, result: _one(F.min(column), F.min, result),
    "max": lambda column, _, result: _one(F.max(column), F.max, result),
    "any_value": lambda column, _, result: _one(F.min(column), F.min, result),
    "bool_and": lambda column, _, result: _one(F.bool_and(column), F.bool_and, result),
    "bool_or": lambda column, _, result: _one(F.bool_or(column), F.bool_or, result),
}
