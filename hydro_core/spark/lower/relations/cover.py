"""Covers of relations: when there is at least one row of a key."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.relation import COUNT, FOREVER, ITEM, TICK, UNTIL, Relation


def cover(relation: Relation, keys: Sequence[Column]) -> Relation:
    """When there is at least one row of each key: rows whose item is the tuple of the key's parts,
    disjoint in time.
    """
    keyed = relation.frame.select(key_struct(keys).alias(ITEM), *map(F.col, relation.times))
    match relation.kind:
        case Kind.E:
            frame = keyed.distinct()
        case Kind.H:
            frame = keyed.groupBy(ITEM).agg(F.min(TICK).alias(TICK))
        case Kind.G:
            frame = _islands(keyed)
    return Relation(relation.kind, frame, relation.item)


def key_struct(keys: Sequence[Column]) -> Column:
    return F.struct(*(k.alias(f"k{i}") for i, k in enumerate(keys)))


def _islands(frame: DataFrame) -> DataFrame:
    """(item, t, until) rows as the disjoint intervals in which at least one of them holds."""
    ends = F.array(
        F.struct(F.col(TICK).alias(TICK), F.lit(1).alias(COUNT)),
        F.struct(F.col(UNTIL).alias(TICK), F.lit(-1).alias(COUNT)),
    )
    each = exploded(frame, [ITEM, F.explode(ends).alias("e")], reads=(TICK, UNTIL))
    points = each.select(ITEM, f"e.{TICK}", f"e.{COUNT}")
    net = points.groupBy(ITEM, TICK).agg(F.sum(COUNT).alias(COUNT)).where(F.col(COUNT) != 0)
    in_time = Window.partitionBy(ITEM).orderBy(TICK)
    running = net.withColumn("after", F.sum(COUNT).over(in_time))
    edges = running.where((F.col("after") == 0) | (F.col("after") == F.col(COUNT)))
    closed = edges.withColumn(UNTIL, F.coalesce(F.lead(TICK).over(in_time), F.lit(FOREVER)))
    return closed.where(F.col("after") > 0).select(ITEM, TICK, UNTIL)
