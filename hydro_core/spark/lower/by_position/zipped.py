"""Two streams, position by position."""

from __future__ import annotations

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.few_rows import together
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, Relation
from hydro_core.spark.lower.items.columns import make_tuple
from hydro_core.spark.lower.registry import Step, lowers, per_tick
from hydro_core.spark.lower.relations.rows import positioned


@lowers("zip")
@per_tick
def zip_(step: Step) -> Relation:
    """Position by position, as long as both have items."""
    return _zipped(step, "inner")


@lowers("zip_longest")
@per_tick
def zip_longest(step: Step) -> Relation:
    """Position by position, the shorter side padded with null."""
    return _zipped(step, "full")


def _zipped(step: Step, how: str) -> Relation:
    left, right = (
        positioned(r).select(F.col(ITEM).alias(name), TICK, ORD)
        for r, name in zip(step.inputs, ("x", "y"), strict=True)
    )
    pair = make_tuple(F.col("x"), F.col("y")).alias(ITEM)
    frame = together(left.join(right, [TICK, ORD], how)).select(pair, TICK, ORD)
    return step.relation(Kind.E, frame, ordered=True)
