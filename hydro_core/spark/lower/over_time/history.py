"""What was there before: histories, the last ticks, the tick before."""

from __future__ import annotations

from pyspark.sql import DataFrame

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.log import live_rows
from hydro_core.spark.frames.relation import FOREVER, ITEM, ORD, TICK, UNTIL, Narrow, Relation
from hydro_core.spark.lower.registry import Step, as_kind, lowers
from hydro_core.spark.lower.relations.changes import of_versions
from hydro_core.spark.lower.relations.keys import narrowly
from hydro_core.spark.lower.relations.rows import empty, one_after_another, united


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
    return united(frames) if frames else empty(step)


def later(frame: DataFrame) -> DataFrame:
    """The rows, a tick later."""
    return frame.withColumn(TICK, F.col(TICK) + 1)


@lowers("window")
def window(step: Step) -> Relation:
    """`Σ_{t−n<s≤t} a_s`: an addition is there for n ticks, and goes when they are over."""
    return of_versions(step, additions(step).withColumn(UNTIL, F.col(TICK) + step.arg("n")))


@lowers("prev")
def prev(step: Step) -> Relation:
    """`a_{t−1}`: the rows a tick later, and at the first tick those that are stored of the tick
    before.
    """
    log = step.log
    if log is None:
        return _prev(step)

    def narrowed(narrow: Narrow) -> DataFrame:
        before = live_rows(narrow(log), step.first - 1)
        inputs = tuple(r.with_(frame=narrowly(r, narrow)) for r in step.inputs)
        return _prev(step.with_(past=before, inputs=inputs)).frame

    return _prev(step).with_(narrowed=narrowed)


def _prev(step: Step) -> Relation:
    if step.kind is Kind.H:
        frame = later(step.input.frame).where(F.col(TICK) <= step.last)
        return step.input.with_(frame=frame)
    parts = [] if step.past is None else [_stored_before(step)]
    if not step.is_tick:
        parts.append(_shifted(step.input, step.last))
    parts = [as_kind(part, step.kind, step.first) for part in parts]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        order = [F.lit(0).alias(ORD)] if step.ordered else []
        return step.relation(Kind.E, empty(step).select(ITEM, TICK, *order), ordered=step.ordered)
    if not step.ordered:
        return parts[0].with_(frame=parts[0].frame.union(parts[1].frame))
    return one_after_another(*parts)


def _stored_before(step: Step) -> Relation:
    """The items of the tick before the range, as events of its first tick."""
    order = [F.col(ORD)] if step.ordered else []
    frame = last_stored(step).select(ITEM, F.lit(step.first).cast("long").alias(TICK), *order)
    return step.relation(Kind.E, frame, ordered=step.ordered)


def last_stored(step: Step) -> DataFrame:
    """What is stored of the tick before the range; a slot may hold more."""
    stored = empty(step) if step.past is None else step.past
    return stored.where(F.col(TICK) == step.first - 1)


def _shifted(relation: Relation, last: int) -> Relation:
    """The rows of the range, a tick later, as far as they are still in it."""
    frame = relation.frame.where(F.col(TICK) < last)
    if relation.kind is Kind.G:
        frame = frame.withColumn(UNTIL, F.least(F.col(UNTIL), F.lit(FOREVER - 1)) + 1)
    return relation.with_(frame=later(frame))
