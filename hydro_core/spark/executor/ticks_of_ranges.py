"""What a single tick sees of the relations of a range, and what it adds to them."""

from __future__ import annotations

from pyspark.sql import functions as F

from hydro_core.spark.frames.relation import TICK, UNTIL, Kind, Relation
from hydro_core.spark.lower.registry import as_kind


def at_tick(relation: Relation, t: int) -> Relation:
    """The relation as a range of the single tick t sees it."""
    if relation.kind is Kind.E:
        return relation.with_(frame=relation.frame.where(F.col(TICK) == t))
    frame = relation.frame.where(F.col(TICK) <= t)
    if relation.kind is Kind.G:
        frame = frame.where(F.col(UNTIL) > t).withColumn(TICK, F.lit(t).cast("long"))
    return relation.with_(frame=frame)


def newly(relation: Relation, t: int, first: int) -> Relation:
    """What the single tick t adds to a relation of a range from `first` on."""
    if relation.kind is Kind.H:
        return (
            relation if t == first else relation.with_(frame=relation.frame.where(F.col(TICK) == t))
        )
    return as_kind(relation.events(t, t), relation.kind, t)
