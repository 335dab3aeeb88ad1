"""Events with the version of their key that is there at their tick, in one pass over both.

Events and versions stand together in the order of time, and each event takes the last version that
began: a sort instead of all pairs of a key.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window

from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, UNTIL, Kind, Relation
from hydro_core.spark.lower.relations.keys import Keys

MANY_TICKS = 365
"""From so many ticks on it pays: a key has at most one version a tick, and a join that tries up to
so many for each event was as fast (100,000 events, 100 keys with 365 versions each), with few
versions faster, since it sorts nothing."""

VERSION = "version"
"""The version of an event: its item as `x`, and its end; null where none has begun."""


def as_of(events: Relation, versions: Relation, keys: Keys) -> DataFrame:
    """The events (item, t[, ord]), each with its `version`.

    Of each key, at most one of the versions is there at a tick.
    """
    mine, theirs = (
        [key.alias(f"k{i}") for i, key in enumerate(side)] for side in (keys[0], keys[1])
    )
    names = [f"k{i}" for i in range(len(keys[0]))]
    until = F.col(UNTIL) if versions.kind is Kind.G else F.lit(None).cast("long")
    found = F.struct(F.col(ITEM).alias("x"), until.alias(UNTIL)).alias(VERSION)
    begun = versions.frame.select(*theirs, TICK, found, F.lit(0).alias("side"))
    order = [ORD] if events.ordered else []
    asking = events.frame.select(ITEM, TICK, *order, *mine, F.lit(1).alias("side"))
    both = asking.unionByName(begun, allowMissingColumns=True)
    in_time = Window.partitionBy(*names).orderBy(TICK, "side")
    so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    last = F.last(VERSION, ignorenulls=True).over(so_far)
    return (
        both.withColumn(VERSION, last).where(F.col("side") == 1).select(ITEM, TICK, *order, VERSION)
    )


def pays(first: int, last: int) -> bool:
    """Whether a range is so long that looking up is better than trying all versions."""
    return last - first + 1 >= MANY_TICKS


def is_there() -> Column:
    """Whether the version of an event has begun and not ended."""
    until = F.col(VERSION).getField(UNTIL)
    return F.col(VERSION).isNotNull() & (until.isNull() | (F.col(TICK) < until))
