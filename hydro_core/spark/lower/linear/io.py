"""Where streams begin and end."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.few_rows import together
from hydro_core.spark.frames.items import frame_of
from hydro_core.spark.frames.relation import ITEM, TICK, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.types.item import TIMESTAMP, ItemType


@lowers("source")
def source(step: Step) -> Relation:
    """The batches of the range."""
    frame = step.source
    return step.relation(Kind.E, empty(step) if frame is None else frame.select(ITEM, TICK))


@lowers("source_iter")
def source_iter(step: Step) -> Relation:
    """The items at tick 0, nothing after."""
    items = [(0, item) for item in step.arg("items")] if step.first == 0 else []
    frame = frame_of(step.spark, items, step.item) if items else empty(step)
    return step.relation(Kind.E, frame)


@lowers("tick")
def tick(step: Step) -> Relation:
    """One row each tick: its number and its times."""
    times, columns = tick_axis(step), [F.col(TICK)]
    known = {t: step.times[t] for t in range(step.first, step.last + 1) if t in step.times}
    if known:
        table = step.spark.createDataFrame(
            [(t, *ends) for t, ends in known.items()],
            f"{TICK} long, start timestamp, end timestamp",
        )
        times = times.join(together(table), TICK, "left")
        columns = [F.col(c) for c in (TICK, "start", "end")]
    else:
        nothing = F.lit(None).cast(spark_type(TIMESTAMP))
        columns += [nothing.alias("start"), nothing.alias("end")]
    row = F.struct(columns[0].alias("tick"), *columns[1:])
    return step.relation(Kind.E, times.select(row.alias(ITEM), F.col(TICK)))


@lowers("sink")
def sink(step: Step) -> Relation:
    """What reaches the output; the executor adds up the sinks of one name."""
    return step.input


@lowers("null")
def null(step: Step) -> Relation:
    """Nothing."""
    return step.relation(Kind.E, empty(step))


def empty(step: Step) -> DataFrame:
    """A frame (item, t) of items of the output's type, without rows."""
    return empty_frame(step.spark, step.item)


def empty_frame(spark: SparkSession, item: ItemType) -> DataFrame:
    """A frame (item, t) of items of this type, without rows."""
    item_column = F.lit(None).cast(spark_type(item)).alias(ITEM)
    # Of what is filtered out as a whole Spark knows that it is nothing, and leaves it out of plans.
    nothing = spark.range(0).where(F.lit(False))
    return nothing.select(item_column, F.col("id").alias(TICK))


def tick_axis(step: Step) -> DataFrame:
    """One row (t) for each tick of the range."""
    ticks = step.spark.range(step.first, step.last + 1).select(F.col("id").alias(TICK))
    return together(ticks)
