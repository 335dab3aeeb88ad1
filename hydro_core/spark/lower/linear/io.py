"""Where streams begin, end, and flow together."""

from __future__ import annotations

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.few_rows import together
from hydro_core.spark.frames.leaf import frame_of
from hydro_core.spark.frames.relation import ITEM, TICK, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.registry import Step, as_kind, lowers
from hydro_core.spark.lower.relations.rows import (
    added_up,
    empty,
    one_after_another,
    tick_axis,
    written_as,
)
from hydro_core.types.item import TIMESTAMP


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
    if step.clock is not None:
        row = F.struct("tick", "start", "end")
        return step.relation(Kind.E, step.clock().select(row.alias(ITEM), F.col(TICK)))
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
        unknown = F.lit(None).cast(spark_type(TIMESTAMP))
        columns += [unknown.alias("start"), unknown.alias("end")]
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


@lowers("union")
def union(step: Step) -> Relation:
    """The rows of all inputs."""
    return added_up(step.inputs, step.item, step.kind, step.first)


@lowers("chain")
def chain(step: Step) -> Relation:
    """The rows of both inputs, those of the first before those of the second."""
    if not step.ordered:
        return added_up(step.inputs, step.item, step.kind, step.first)
    parts = (as_kind(written_as(r, step.item), step.kind, step.first) for r in step.inputs)
    return one_after_another(*parts)
