"""Logs of changes: rows `(item, t, n)`, which sum up to what is there."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.relation import COUNT, ITEM, TICK, UNTIL


def coming_and_going(rows: DataFrame, first: int, last: int) -> DataFrame:
    """Rows (item, t, until) as the changes (item, t, n) of the ticks first … last."""
    events = F.array(
        F.when(F.col(TICK) >= first, _event(TICK, 1)),
        F.when(F.col(UNTIL).between(first, last), _event(UNTIL, -1)),
    )
    each = F.inline(F.array_compact(events)).alias(TICK, COUNT)
    return exploded(rows, [ITEM, each], reads=(TICK, UNTIL))


def _event(at: str, n: int) -> Column:
    return F.struct(F.col(at).cast("long").alias("at"), F.lit(n).cast("long").alias("n"))


def since(versions: DataFrame, first: int) -> DataFrame:
    """Rows (item, t, until) as they are there from a tick on."""
    tick = F.greatest(F.col(TICK), F.lit(first).cast("long")).alias(TICK)
    return versions.select(ITEM, tick, UNTIL).where(F.col(TICK) < F.col(UNTIL))


def live(log: DataFrame) -> DataFrame:
    """The items that are there after all rows of the log: (item, n), n copies of each."""
    return log.groupBy(ITEM).agg(F.sum(COUNT).alias(COUNT)).where(F.col(COUNT) > 0)


def live_rows(log: DataFrame, t: int) -> DataFrame:
    """A row (item, t) for each copy of an item that is there after all rows of the log."""
    return expanded(live(log)).withColumn(TICK, F.lit(t).cast("long"))


def expanded(counted: DataFrame, count: str = COUNT) -> DataFrame:
    """Rows with a column `count` as that many rows without it."""
    each = F.explode(F.array_repeat(F.lit(1), F.col(quoted(count)).cast("int"))).alias(count)
    kept = [quoted(name) for name in counted.columns if name != count]
    return exploded(counted, [*kept, each], reads=[quoted(count)]).drop(count)


def consolidated(changes: DataFrame) -> DataFrame:
    """The changes of an item in a tick as one row; none where they cancel out."""
    summed = changes.groupBy(ITEM, TICK).agg(F.sum(COUNT).alias(COUNT))
    return summed.where(F.col(COUNT) != 0)
