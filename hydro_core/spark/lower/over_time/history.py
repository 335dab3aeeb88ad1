"""Histories: what is there from its tick on, or for some ticks."""

from __future__ import annotations

from pyspark.sql import DataFrame

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.log import coming_and_going
from hydro_core.spark.frames.relation import ITEM, TICK, UNTIL, Relation
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.spark.lower.relations.changes import rows_or_changes
from hydro_core.spark.lower.relations.rows import empty


@lowers("old")
def old(step: Step) -> Relation:
    """`Σ_{s<t} a_s`: the additions, a tick later."""
    if step.is_tick:
        stored = step.with_(inputs=())
        return step.relation(Kind.H, later(additions(stored)))
    return step.relation(Kind.H, later(additions(step)).where(F.col(TICK) <= step.last))


def additions(step: Step) -> DataFrame:
    """All additions (item, t) up to the end of the range."""
    frames = [r.events(step.first, step.last).frame.select(ITEM, TICK) for r in step.inputs]
    if step.past is not None:
        frames.append(step.past.where(F.col(TICK) < step.first).select(ITEM, TICK))
    if not frames:
        return empty(step)
    return frames[0] if len(frames) == 1 else frames[0].union(frames[1])


def later(frame: DataFrame) -> DataFrame:
    """The rows, a tick later."""
    return frame.withColumn(TICK, F.col(TICK) + 1)


@lowers("window")
def window(step: Step) -> Relation:
    """`Σ_{t−n<s≤t} a_s`: an addition is there for n ticks, and goes when they are over."""
    added = additions(step).withColumn(UNTIL, F.col(TICK) + step.arg("n"))
    start = F.greatest(F.col(TICK), F.lit(step.first)).alias(TICK)

    def rows() -> Relation:
        there = added.where(F.col(UNTIL) > step.first)
        return step.relation(Kind.G, there.select(ITEM, start, UNTIL))

    return rows_or_changes(step, rows, lambda: coming_and_going(added, step.first, step.last))
