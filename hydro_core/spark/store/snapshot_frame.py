"""The rows that an output has at ticks, as a DataFrame: of a log what its changes say is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from hydro_core.ir.graph import free_name
from hydro_core.plan.tick_plan import Kind
from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.frames.relation import expanded, exploded
from hydro_core.spark.store.schema import TableSpec

if TYPE_CHECKING:
    from hydro_core.spark.store.store import Store


def shown_frame(
    store: Store, spark: SparkSession, spec: TableSpec, ticks: tuple[int, int]
) -> DataFrame | None:
    """The rows that a table has at each of the ticks from the first to the last, with the tick;
    None where it has none.
    """
    first, last = ticks
    frame = store.frame(spark, spec.name, 0 if spec.is_log else first, last)
    if frame is None or not spec.is_log:
        return frame
    return snapshot_frame(frame, spec, first, last)


def frame_as_of(store: Store, spark: SparkSession, spec: TableSpec, last: int) -> DataFrame | None:
    """The rows that a table has as of a tick, a history those of all ticks; None: none."""
    every = spec.kind is not Kind.E and not spec.is_log
    return shown_frame(store, spark, spec, (0 if every else last, last))


def snapshot_frame(log: DataFrame, spec: TableSpec, first: int, last: int) -> DataFrame:
    """The rows that are there at each of the ticks `first` to `last`, with the tick.

    `log` has all changes up to `last`.
    """
    tick, count = spec.tick, spec.count_column
    names = [quoted(name) for name, _ in spec.items]
    # What came before the first of these ticks is there at it.
    at = F.greatest(F.col(tick), F.lit(first)).cast("long").alias(tick)
    changes = log.select(at, *names, count).groupBy(*names, tick).agg(F.sum(count).alias(count))
    in_time = Window.partitionBy(*names).orderBy(tick)
    until = _free(spec)
    next_change = F.coalesce(F.lead(tick).over(in_time), F.lit(last + 1).cast("long"))
    there = changes.select(
        tick, *names, F.sum(count).over(in_time).alias(count), next_change.alias(until)
    ).where(F.col(count) > 0)
    ticks = F.explode(F.sequence(F.col(tick), F.col(until) - 1)).alias(tick)
    kept: list[str | Column] = [ticks, *names, count]
    return expanded(exploded(there, kept, reads=(tick, until)), count)


def _free(spec: TableSpec) -> str:
    """A name that no column has; Spark does not tell names apart by case."""
    return free_name("until", {name.lower() for name, _ in spec.columns})
