"""Groups of items: what becomes of all items of a tick, or of a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, Relation
from hydro_core.spark.lower.by_key.between import between_changes
from hydro_core.spark.lower.by_key.over_ticks import over_ticks
from hydro_core.spark.lower.by_key.summaries import KeySummary, summary_of
from hydro_core.spark.lower.items.keyed import keys_of
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.spark.lower.relations.cover import cover, key_struct
from hydro_core.spark.lower.relations.rows import tick_axis
from hydro_core.types.item import Row, Tuple


@lowers("unique")
def unique(step: Step) -> Relation:
    """Each distinct item once at each tick, where it stands first."""
    if step.ordered:
        return _first_of_each(step.as_events())
    item = F.col(ITEM).getField("k0").alias(ITEM)
    if step.is_tick and step.input.kind is Kind.E and isinstance(step.item, Row | Tuple):
        tick = F.lit(step.first).cast("long").alias(TICK)
        items = step.input.frame.select(key_struct([F.col(ITEM)]).alias(ITEM)).distinct()
        rows = items.select(ITEM, tick)
        return step.relation(Kind.E, rows.select(item, TICK)).with_(distinct=rows)
    found = cover(step.input, [F.col(ITEM)])
    return step.relation(found.kind, found.frame.select(item, *found.times))


def _first_of_each(step: Step) -> Relation:
    firsts = step.input.frame.groupBy(ITEM, TICK).agg(F.min(ORD).alias(ORD))
    return step.relation(Kind.E, firsts, ordered=True)


@lowers("aggregate", "fold", "fold_keyed", "latest", "reduce", "reduce_keyed")
def by_key(step: Step) -> Relation:
    """One item of those of a key, or of all."""
    summary = summary_of(step)
    # What stays over several ticks need not be looked at in each.
    stays = step.input.kind is not Kind.E and not step.is_tick and not step.input.ordered
    return (over_ticks(step, summary) if stays else None) or _of_groups(step, summary)


def _of_groups(step: Step, summary: KeySummary) -> Relation:
    """Of the rows of each key at a tick, or as long as they stay the same."""
    step = between_changes(step, keys_of(step).parts)
    frame, times = step.input.frame, step.input.times
    if summary.is_always(step):
        rows = _at_every_tick(step, frame, summary.of_group)
    else:
        rows = keys_of(step).grouped(frame, times, summary.of_group(step))
    return step.relation(step.input.kind, rows.select(summary.item(step).alias(ITEM), *times))


def _at_every_tick(
    step: Step, frame: DataFrame, columns: Callable[[Step], Sequence[Column]]
) -> DataFrame:
    """Aggregates of each tick of the range, those without rows too: (the columns, t)."""
    if step.is_tick:
        # An aggregate over nothing has a row.
        return frame.agg(*columns(step)).withColumn(TICK, F.lit(step.first).cast("long"))
    found = frame.groupBy(TICK).agg(*columns(step))
    rest = tick_axis(step).join(found.select(TICK), TICK, "left_anti")
    empty = frame.where(F.lit(False)).agg(*columns(step.with_(last=step.first)))
    return found.unionByName(rest.crossJoin(empty))
