"""Logs of changes: rows `(item, t, n)`, which sum up to what is there."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hydro_core.spark.frames.relation import COUNT, ITEM, TICK


def live(log: DataFrame) -> DataFrame:
    """The items that are there after all rows of the log: (item, n), n copies of each."""
    return log.groupBy(ITEM).agg(F.sum(COUNT).alias(COUNT)).where(F.col(COUNT) > 0)


def live_rows(log: DataFrame, t: int) -> DataFrame:
    """A row (item, t) for each copy of an item that is there after all rows of the log."""
    return expanded(live(log)).withColumn(TICK, F.lit(t).cast("long"))


def expanded(counted: DataFrame, count: str = COUNT) -> DataFrame:
    """Rows with a column `count` as that many rows without it."""
    each = F.explode(F.array_repeat(F.lit(1), F.col(count).cast("int")))
    return counted.withColumn(count, each).drop(count)


def consolidated(changes: DataFrame) -> DataFrame:
    """The changes of an item in a tick as one row; none where they cancel out."""
    summed = changes.groupBy(ITEM, TICK).agg(F.sum(COUNT).alias(COUNT))
    return summed.where(F.col(COUNT) != 0)
