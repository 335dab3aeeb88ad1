"""Folds of a history with functions that Spark has no aggregate for: one pass over each key.

The values of a key are folded in the order of their ticks, and after each tick the accumulator is a
result, which is there until the next one. A commutative function may be given its values so.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import FOREVER, ITEM, TICK, UNTIL
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.folds import scanned
from hydro_core.spark.lower.grouping import GroupKeys
from hydro_core.spark.lower.items import convert
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import ItemType

Value = tuple[Column, ItemType]


def emitted(
    step: Step, keys: GroupKeys, value: Value, acc: ItemType, start: Column | None
) -> DataFrame:
    """The accumulators (k0 …, acc, t, until) after each tick in which a key has a value, from
    `start`, or for a reduction (None) from the first value.
    """
    column, item = value
    at = F.greatest(F.col(TICK), F.lit(step.first - 1))
    pairs = F.sort_array(F.collect_list(F.struct(at.alias("at"), column.alias("x"))))
    names = keys.names
    grouped = keys.grouped(step.input.frame, (), [pairs.alias("pairs")])
    values = F.transform("pairs", lambda pair: pair.getField("x"))
    found = grouped.withColumn("accs", _accumulators(step, values, item, acc, start))
    ats = F.transform("pairs", lambda pair: pair.getField("at"))
    zipped = F.arrays_zip(F.col("accs").alias("acc"), ats.alias("at"))
    # Of a tick, the accumulator after its last value.
    last = F.filter(
        zipped,
        lambda z, i: ~F.get(ats, i + 1).eqNullSafe(z.getField("at")),
    )
    numbered = found.select(*names, last.alias("last")).select(
        *names, "last", F.posexplode("last").alias("place", "one")
    )
    following = F.get("last", F.col("place") + 1).getField("at")
    rows = numbered.select(
        *names,
        F.col("one.acc").alias("acc"),
        F.greatest(F.col("one.at"), F.lit(step.first)).alias(TICK),
        F.coalesce(following, F.lit(FOREVER)).alias(UNTIL),
    )
    return rows.where(F.col(TICK) < F.col(UNTIL))


def before_all(step: Step, start: Column) -> DataFrame:
    """The start as a row (item, t, until), until the first value comes."""
    begins = F.coalesce(F.min(F.greatest(F.col(TICK), F.lit(step.first))), F.lit(FOREVER))
    rows = step.input.frame.agg(begins.alias(UNTIL))
    tick = F.lit(step.first).cast("long")
    rows = rows.select(start.alias(ITEM), tick.alias(TICK), UNTIL)
    return rows.where(F.col(TICK) < F.col(UNTIL))


def _accumulators(
    step: Step, values: Column, item: ItemType, acc: ItemType, start: Column | None
) -> Column:
    fn = step.arg("f")
    if start is not None:
        return scanned(fn, start, acc, values, item)
    first = convert(F.get(values, F.lit(0)), item, acc)
    rest = F.slice(values, F.lit(2), F.greatest(F.size(values) - 1, F.lit(0)))
    following = scanned(fn, first, acc, rest, item, pairwise=True)
    return F.concat(F.array(first.cast(spark_type(acc))), following)
