"""Results that are made of the parts of a row."""

from __future__ import annotations

from pyspark.sql import Column

from hydro_core.catalog.refusals import sum_beyond
from hydro_core.catalog.spec import Aggregate
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.algebra import guarded
from hydro_core.spark.lower.failure import NUMBER, fail
from hydro_core.spark.lower.group import fields_of
from hydro_core.spark.lower.items import make_row, named
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.types.item import LONG, Decimal, ItemType


@lowers("aggregate_result")
def aggregate_result(step: Step) -> Relation:
    """The results that the parts of a row make."""
    item = step.input.item
    keys = [(name, named(F.col(ITEM), item, name)[0]) for name in step.arg("by") or ()]
    types = {f.name: f.type for f in fields_of(step.item)}
    made = [(name, _made(step, a, types[name])) for name, a in step.arg("aggregates")]
    row = make_row([*keys, *made]).alias(ITEM)
    beside = [F.col(name) for name in step.input.beside]
    return step.input.with_(frame=step.input.frame.select(row, *beside), item=step.item)


def _made(step: Step, aggregate: Aggregate, result: ItemType) -> Column:
    parts = [
        named(F.col(ITEM), step.input.item, name)[0]
        for name in aggregate.arguments
        if isinstance(name, str)
    ]
    if aggregate.function == "any_value":
        return parts[0].cast(spark_type(result))
    total, count = parts[0], F.nullif(parts[1], F.lit(0))
    if aggregate.function == "avg":
        return _mean(total, count, result)
    found = F.when(count.isNotNull(), total)
    if result != LONG:
        return found.cast(spark_type(result))
    fits = total.between(F.lit(-(2**63)).cast("decimal(20,0)"), F.lit(2**63 - 1))
    wide = total.cast("decimal(38,0)")
    failed = fail(step.node, sum_beyond(NUMBER), number=wide).cast("long")
    return F.when(guarded(count.isNull() | fits), found.cast("long")).otherwise(failed)


def _mean(total: Column, count: Column, result: ItemType) -> Column:
    """A total divided once."""
    if not isinstance(result, Decimal):
        return total.cast("double") / count
    # so few digits before the point leave enough behind it to round once
    narrow = total.cast(f"decimal({result.precision + 6},{result.scale - 4})")
    return (narrow / count.cast("decimal(20,0)")).cast(spark_type(result))
