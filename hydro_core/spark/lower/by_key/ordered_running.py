"""The first rows of keys that go on from the stored ones: a range costs what is new in it.

Whoever is among the first of all rows is so among those that were the first before and the new
ones. Of what is stored only the rows of the keys of the new rows are looked at.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from hydro_core.plan.kinds import Kind
from hydro_core.plan.versions import group_key
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.log import coming_and_going, consolidated, live_rows
from hydro_core.spark.frames.materialize import counted, held
from hydro_core.spark.frames.relation import FOREVER, ITEM, TICK, UNTIL, Narrow, Relation
from hydro_core.spark.lower.by_key.ordered import first_rows
from hydro_core.spark.lower.by_key.over_ticks import few_keys
from hydro_core.spark.lower.by_key.running import stored_log
from hydro_core.spark.lower.items.columns import key_of
from hydro_core.spark.lower.registry import Step, as_kind, lowers, per_tick
from hydro_core.spark.lower.relations.changes import rows_or_changes
from hydro_core.spark.lower.relations.narrowing import (
    keys_alone,
    with_keys_of,
    without_keys_of,
)


@lowers("running_top")
@per_tick
def running_top(step: Step) -> Relation:
    """The first rows of all that came so far; the input is what is new."""
    return _resumed(step.with_(inputs=(step.input.unordered(),)), first_rows)


def _resumed(step: Step, results: Callable[[Step], Relation]) -> Relation:
    log, key = stored_log(step), group_key(step.node)
    new = step.input.frame.select(ITEM, TICK)
    others: Narrow | None = None
    if log is not None:
        stored = log
        if key is not None:
            keys = key_of(F.col(ITEM), step.item, key)
            new, count = counted(new, step.materialize)
            few = few_keys(keys_alone(new, keys).distinct(), count)
            stored, others = with_keys_of(few, keys)(log), without_keys_of(few, keys)
        new = new.unionByName(live_rows(stored, step.first - 1).select(ITEM, TICK))
    rows = Relation(Kind.H, new, step.item)
    since = step.with_(first=step.first - 1, inputs=(rows,))
    made = as_kind(results(since), Kind.G, since.first).frame
    found = held(made.select(ITEM, TICK, UNTIL))

    def changes() -> DataFrame:
        return consolidated(coming_and_going(found, step.first, step.last))

    return rows_or_changes(step, lambda: _rows(step, found, log, others), changes)


def _rows(step: Step, found: DataFrame, log: DataFrame | None, others: Narrow | None) -> Relation:
    """The rows of changed keys, and of the log all others."""
    tick = F.greatest(F.col(TICK), F.lit(step.first).cast("long")).alias(TICK)
    there = found.select(ITEM, tick, UNTIL).where(F.col(TICK) < F.col(UNTIL))

    def narrowed(narrow: Narrow) -> DataFrame:
        if log is None or others is None:
            return narrow(there)
        rest = live_rows(narrow(others(log)), step.first)
        until = F.lit(FOREVER).cast("long").alias(UNTIL)
        return narrow(there).unionByName(rest.select(ITEM, TICK, until))

    return Relation(Kind.G, narrowed(lambda frame: frame), step.item, narrowed=narrowed)
