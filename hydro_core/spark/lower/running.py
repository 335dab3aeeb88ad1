"""Results over what stays, as they run from tick to tick: one pass, whatever the range.

A result that is merged from partial results needs the partial results of each key and tick only:
these are merged in the order of ticks, and each merged one is there until the next change of its
key. Rows of before the range count as those of the tick before it. Where rows go again, counts and
exact sums are merged from by how much they change, and a key without rows has no result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeGuard

from pyspark.sql import Column, DataFrame, Window

from hydro_core.catalog.parts import moving_split, running_split
from hydro_core.catalog.spec import Aggregate
from hydro_core.ir.graph import Node
from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import FOREVER, ITEM, TICK, UNTIL
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates import GREATEST, Argument, Group, argument_of, or_zero
from hydro_core.spark.lower.grouping import GroupKeys
from hydro_core.spark.lower.items import reversed_order
from hydro_core.spark.lower.of_parts import made_of, parts_of
from hydro_core.spark.lower.partial import Merge, MergedResult, Partial, counted, exact_sum
from hydro_core.spark.lower.registry import Step
from hydro_core.spark.lower.sums import ROOMY, checked_sum, sum_of_decimals
from hydro_core.types.item import Decimal, ItemType, is_integer


def runs(step: Step) -> bool:
    """Whether the input's rows stay over several ticks, in no order."""
    return step.input.kind is not Kind.E and not step.is_tick and not step.input.ordered


def is_merged(running: MergedResult | None, step: Step) -> TypeGuard[MergedResult]:
    """Whether the result over the step's input is merged from partial results."""
    return running is not None and (step.input.kind is Kind.H or running.is_invertible)


def run_over(
    step: Step, keys: GroupKeys, results: Mapping[str, MergedResult], *, every_tick: bool
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
        running = running_aggregate(part, item, of, node, goes=goes)
        if running is None:
            return None
        found.append((running, of))
    partials = tuple(p for running, _ in found for p in running.partials)

    def final(columns: Sequence[Column]) -> Column:
        rest, made = list(columns), []
        for running, of in found:
            own, rest = rest[: len(running.partials)], rest[len(running.partials) :]
            made.append((running.final(own), of))
        return made_of(aggregate.function, made, result, node)

    return MergedResult(partials, final)


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
        short = item.precision <= ROOMY
        return exact_sum(column) if short else sum_of_decimals(column, item, node)
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


def extreme_part(value: Argument, order: Argument, *, greatest: bool) -> Column:
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
