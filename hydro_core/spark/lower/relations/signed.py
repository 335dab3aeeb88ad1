"""Signed changes of a relation, by all of its rows."""

from __future__ import annotations

from pyspark.sql import DataFrame

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import COUNT, ITEM, TICK, UNTIL, Relation
from hydro_core.spark.lower.relations.product import Range


def signed(relation: Relation, past: DataFrame | None, ticks: Range) -> DataFrame:
    """By how much the multiplicity of an item changes from tick to tick: (item, t, n).

    n is never 0, and an item stands at most once in a tick.
    """
    rows = [relation.new(ticks.first).frame.select(ITEM, TICK, F.lit(1).alias(COUNT))]
    if relation.kind is Kind.E:
        gone = relation.frame.where(F.col(TICK) < ticks.last)
        rows.append(gone.select(ITEM, (F.col(TICK) + 1).alias(TICK), F.lit(-1).alias(COUNT)))
    if relation.kind is Kind.G:
        gone = relation.frame.where(F.col(UNTIL) <= ticks.last)
        rows.append(gone.select(ITEM, F.col(UNTIL).alias(TICK), F.lit(-1).alias(COUNT)))
    if past is not None:
        start = F.lit(ticks.first).cast("long").alias(TICK)
        rows.append(past.select(ITEM, start, F.lit(-1).alias(COUNT)))
    if ticks.is_tick:
        rows = [rows[0], *rows[2:]] if relation.kind is not Kind.H else rows
    union = rows[0]
    for more in rows[1:]:
        union = union.union(more)
    return union.groupBy(ITEM, TICK).agg(F.sum(COUNT).alias(COUNT)).where(F.col(COUNT) != 0)
