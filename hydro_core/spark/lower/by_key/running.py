"""Results by key that go on from stored ones, with their changes: a range costs what is new in it.

Of what is stored only the rows of the keys of the new rows are looked at; each such key's stored
row stands before its first tick. A row of the result is there until the next one of its key, so
what changes is known: at each tick of a key its row comes and the one before it goes. The rows of
all other keys stay, and are read only if somebody wants the whole relation.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.log import live
from hydro_core.spark.frames.materialize import counted, held
from hydro_core.spark.frames.relation import COUNT, FOREVER, ITEM, TICK, UNTIL, Narrow, Relation
from hydro_core.spark.lower.by_key.arguments import with_arguments
from hydro_core.spark.lower.by_key.merging import STATE, Merging
from hydro_core.spark.lower.by_key.over_ticks import (
    ROW,
    few_keys,
    partial_results,
    results,
    start_of,
    versions,
)
from hydro_core.spark.lower.by_key.replaying import Replaying
from hydro_core.spark.lower.by_key.summaries import KeySummary, summary_of
from hydro_core.spark.lower.items.grouping import GroupKeys
from hydro_core.spark.lower.items.keyed import keys_of, keys_of_results, rows_go
from hydro_core.spark.lower.registry import Step, lowers, per_tick
from hydro_core.spark.lower.relations.changes import changes_of, rows_or_changes
from hydro_core.spark.lower.relations.narrowing import with_keys_of, without_keys_of

BEFORE = "before"
"""The row whose place a key's row takes; null where there is none."""


@lowers("running_fold", "running_reduce", "running_fold_keyed", "running_reduce_keyed")
@lowers("running_latest", "running_aggregate")
@per_tick
def running(step: Step) -> Relation:
    """The result of all that came so far; the input is what is new."""
    return resumes(step)


@lowers("moving_aggregate")
def moving_aggregate(step: Step) -> Relation:
    """The result of the input, which tells its changes."""
    return resumes(step.with_(inputs=(changes_of(step.input, step.first),)))


def resumes(step: Step) -> Relation:
    """The result of an operator that goes on from its own; the input holds what changes it."""
    step, log, summary = with_arguments(step), stored_log(step), summary_of(step)
    along = _along(step, summary, log is not None)
    rows, keys = step.input.frame, keys_of(step)
    new = keys.plainly(partial_results(along, keys, rows))
    if summary.is_always(step) and step.first == 0:
        new = new.unionByName(start_of(step, along, rows))
    count = None
    if log is not None:
        new, count = counted(new, step.materialize)
    keys, of_stored = GroupKeys.of(map(F.col, keys.names)), keys_of_results(step)
    few = few_keys(new.select(*keys.names), count)
    parts = new
    if log is not None:
        narrow: Narrow = with_keys_of(few, of_stored.parts) if keys.names else lambda frame: frame
        stored = _stored(step, along, of_stored, live(narrow(log)))
        parts = new.unionByName(_as_typed(stored, new), allowMissingColumns=True)
    found = results(step, summary, along, keys, along.along(keys, parts))
    moves = held(_moves(keys, found))
    others = None if log is None or not keys.names else without_keys_of(few, of_stored.parts)
    return rows_or_changes(
        step, lambda: _rows(step, moves, log, others), lambda: _changes(step, moves)
    )


def stored_log(step: Step) -> DataFrame | None:
    """The stored changes of the result; where only its last tick is stored, its rows all come."""
    if step.log is not None or step.past is None:
        return step.log
    before = step.past.where(F.col(TICK) == step.first - 1)
    return before.select(ITEM, TICK, F.lit(1).cast("long").alias(COUNT))


def _along(step: Step, summary: KeySummary, is_stored: bool) -> Merging | Replaying:
    """How results follow each other."""
    along = summary.in_time(step, is_stored)
    if rows_go(step):
        along = along.of_changes() if isinstance(along, Merging) else None
    if along is None:
        raise TypeError(f"`{step.node.op.name}` is not merged from its own results")
    return along


def _stored(
    step: Step, along: Merging | Replaying, keys: GroupKeys, stored: DataFrame
) -> DataFrame:
    """(k0 …, t, state, …): the stored rows, at the tick before the range."""
    state = F.struct(F.col(ITEM).alias("x")).alias(STATE)
    before = F.lit(step.first - 1).cast("long")
    return along.of_stored(keys, stored, state).withColumn(TICK, before)


def _as_typed(stored: DataFrame, parts: DataFrame) -> DataFrame:
    """The stored partial results in the types of the new ones."""
    wanted = {f.name: f.dataType for f in parts.schema.fields}
    # Structs that differ in what may be null are one type to a union, but not to a cast.
    differ = {
        f.name
        for f in stored.schema.fields
        if f.name in wanted and f.dataType.simpleString() != wanted[f.name].simpleString()
    }
    return stored.select(
        *(F.col(n).cast(wanted[n]).alias(n) if n in differ else F.col(n) for n in stored.columns)
    )


def _moves(keys: GroupKeys, rows: DataFrame) -> DataFrame:
    """(row, t, until, before): each row of a changed key, and what it takes the place of."""
    before = F.lag(ROW).over(Window.partitionBy(*keys.names).orderBy(TICK))
    return rows.select(ROW, TICK, UNTIL, before.alias(BEFORE))


def _rows(step: Step, moves: DataFrame, log: DataFrame | None, others: Narrow | None) -> Relation:
    """The rows of changed keys, and of the log all others."""
    there = versions(step, moves)
    stays = None if log is None or others is None else others(log)

    def narrowed(narrow: Narrow) -> DataFrame:
        if stays is None:
            return narrow(there)
        start = F.lit(step.first).cast("long").alias(TICK)
        until = F.lit(FOREVER).cast("long").alias(UNTIL)
        rest = live(narrow(stays)).select(ITEM, start, until)
        return narrow(there).unionByName(rest)

    return Relation(Kind.G, narrowed(lambda frame: frame), step.item, narrowed=narrowed)


def _changes(step: Step, moves: DataFrame) -> DataFrame:
    """(item, t, n): the new row of a key comes and the one before it goes, if they differ."""
    is_change = (F.col(TICK) >= step.first) & ~F.col(BEFORE).eqNullSafe(F.col(ROW))
    moved = F.array(
        F.struct(F.col(ROW).alias("w"), F.lit(1).cast("long").alias(COUNT)),
        F.struct(F.col(BEFORE).alias("w"), F.lit(-1).cast("long").alias(COUNT)),
    )
    moving = moves.where(is_change)
    each = exploded(moving, [TICK, F.explode(moved).alias("c")], reads=(ROW, BEFORE))
    there = each.where(F.col("c.w").isNotNull())
    return there.select(F.col("c.w.x").alias(ITEM), TICK, F.col(f"c.{COUNT}").alias(COUNT))
