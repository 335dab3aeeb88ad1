"""Rows of relations: none, one for each tick, added up, of a wider type, numbered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession, Window

from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.few_rows import together
from hydro_core.spark.frames.relation import FOREVER, ITEM, ORD, TICK, UNTIL, Kind, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.items.columns import convert
from hydro_core.spark.lower.registry import Step, as_kind
from hydro_core.spark.session.sessions import has_few_rows
from hydro_core.types.item import ItemType


def positioned(relation: Relation) -> DataFrame:
    """Events (item, t, ord) with the position within the tick, from 0, as `ord`."""
    in_order = Window.partitionBy(TICK).orderBy(ORD)
    position = (F.row_number().over(in_order) - 1).cast("long")
    return relation.frame.select(ITEM, TICK, position.alias(ORD))


def empty(step: Step) -> DataFrame:
    """A frame (item, t) of items of the output's type, without rows."""
    return empty_frame(step.spark, step.item)


def empty_frame(spark: SparkSession, item: ItemType) -> DataFrame:
    """A frame (item, t) of items of this type, without rows."""
    item_column = F.lit(None).cast(spark_type(item)).alias(ITEM)
    # Of what is filtered out as a whole Spark knows that it is nothing, and leaves it out of plans.
    no_rows = spark.range(0).where(F.lit(False))
    return no_rows.select(item_column, F.col("id").alias(TICK))


def tick_axis(step: Step) -> DataFrame:
    """One row (t) for each tick of the range."""
    ticks = step.spark.range(step.first, step.last + 1).select(F.col("id").alias(TICK))
    return together(ticks)


def stretches(cuts: DataFrame, last: int) -> DataFrame:
    """(item, t, until): from each cut (item, t) of an item to the next one, up to the last tick."""
    following = F.lead(TICK).over(Window.partitionBy(ITEM).orderBy(TICK))
    found = cuts.withColumn(UNTIL, F.coalesce(following, F.lit(FOREVER)))
    return found.where(F.col(TICK) <= last)


def written_as(relation: Relation, item: ItemType) -> Relation:
    """The same items, as items of a type that holds them all."""
    if relation.item == item:
        return relation
    return relation.with_items(convert(F.col(ITEM), relation.item, item), item)


def added_up(relations: Sequence[Relation], item: ItemType, kind: Kind, first: int) -> Relation:
    """The bag sum of streams in a range from `first` on, as rows of a kind, in no order."""
    parts = [as_kind(written_as(r.unordered(), item), kind, first) for r in relations]
    places = {p.partitioned_by for p in parts}
    lie_by = places.pop() if len(places) == 1 else None
    return Relation(kind, united([p.frame for p in parts]), item, partitioned_by=lie_by)


def one_after_another(first: Relation, second: Relation) -> Relation:
    """The rows of two ordered streams of one kind, in a tick those of the first one first."""
    frames = (
        part.frame.withColumnRenamed(ORD, f"{ORD}{i}").withColumn("side", F.lit(i))
        for i, part in enumerate((first, second))
    )
    both = reduce(lambda x, y: x.unionByName(y, allowMissingColumns=True), frames)
    order = F.struct("side", f"{ORD}0", f"{ORD}1").alias(ORD)
    return Relation(first.kind, both.select(ITEM, *first.times, order), first.item, ordered=True)


def united(frames: list[DataFrame]) -> DataFrame:
    """The bag sum of frames with the same columns in the same order."""
    return reduce(DataFrame.union, frames)


def gathered(frame: DataFrame) -> DataFrame:
    """The rows of a sum in no more partitions than a shuffle has: sums of sums would multiply."""
    if has_few_rows(frame.sparkSession):
        return frame
    return frame.coalesce(int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1))
