"""Results by key that go on from stored ones, with their changes: a range costs what is new in it.

Of what is stored only the rows of the keys of the new rows are looked at; each such key's stored
row stands before its first tick. A row of the result is there until the next one of its key, so
what changes is known: at each tick of a key its row comes and the one before it goes. The rows of
all other keys stay, and are read only if somebody wants the whole relation.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window

from hydro_core.plan.kinds import Kind
from hydro_core.plan.versions import group_key
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.log import live, live_rows
from hydro_core.spark.frames.materialize import counted, held
from hydro_core.spark.frames.relation import COUNT, ITEM, TICK, UNTIL, Narrow, Relation
from hydro_core.spark.lower.aggregates.folds import wrapped
from hydro_core.spark.lower.by_key.along_ticks import (
    ROW,
    STATE,
    Along,
    KeySummary,
    results,
    start_of,
    versions,
)
from hydro_core.spark.lower.by_key.arguments import with_arguments
from hydro_core.spark.lower.by_key.ordered import first_rows
from hydro_core.spark.lower.by_key.summaries import summary_of
from hydro_core.spark.lower.items.columns import key_of
from hydro_core.spark.lower.items.keyed import GroupKeys, keys_of, keys_of_results, rows_go
from hydro_core.spark.lower.registry import Step, as_kind, lowers, per_tick
from hydro_core.spark.lower.relations.changes import (
    Others,
    changes_of,
    of_versions,
    rows_or_changes,
    with_others,
)
from hydro_core.spark.lower.relations.keys import (
    few_keys,
    keys_alone,
    with_keys_of,
    without_keys_of,
)

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
    new = keys.plainly(along.partial(keys, rows))
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
        stored = along.of_stored(of_stored, live(narrow(log)), wrapped(F.col(ITEM)).alias(STATE))
        stored = stored.withColumn(TICK, F.lit(step.first - 1).cast("long"))
        parts = new.unionByName(_as_typed(stored, new), allowMissingColumns=True)
    found = results(step, summary, along, keys, along.along(keys, parts))
    before = F.lag(ROW).over(Window.partitionBy(*keys.names).orderBy(TICK))
    moves = held(found.select(ROW, TICK, UNTIL, before.alias(BEFORE)))

    def rows_of_keys() -> Relation:
        there = versions(step, moves)
        if log is None or not keys.names:
            return step.relation(Kind.G, there)
        rest = without_keys_of(few, of_stored.parts)(log)
        return with_others(step, there, lambda narrow: live(narrow(rest)))

    return rows_or_changes(step, rows_of_keys, lambda: _changes(step, moves))


@lowers("running_top")
@per_tick
def running_top(step: Step) -> Relation:
    """The first rows of all that came so far; the input is what is new.

    Whoever is among the first of all rows is so among those that were the first before and the new
    ones.
    """
    log, key = stored_log(step), group_key(step.node)
    new, others = step.input.frame.select(ITEM, TICK), None
    if log is not None:
        if key is not None:
            keys = key_of(F.col(ITEM), step.item, key)
            new, log, others = of_new_keys(step, new, keys, keys)
        new = new.unionByName(live_rows(log, step.first - 1).select(ITEM, TICK))
    rows = Relation(Kind.H, new, step.item)
    before = step.with_(first=step.first - 1, inputs=(rows,))
    made = as_kind(first_rows(before), Kind.G, before.first).frame
    return of_versions(step, held(made.select(ITEM, TICK, UNTIL)), others, again=True)


def stored_log(step: Step) -> DataFrame | None:
    """The stored changes of the result; where only its last tick is stored, its rows all come."""
    if step.log is not None or step.past is None:
        return step.log
    before = step.past.where(F.col(TICK) == step.first - 1)
    return before.select(ITEM, TICK, F.lit(1).cast("long").alias(COUNT))


def of_new_keys(
    step: Step, new: DataFrame, keys: Sequence[Column], of_stored: Sequence[Column]
) -> tuple[DataFrame, DataFrame, Others]:
    """The new rows, of what is stored the log of their keys, and the rows of all other keys."""
    log = stored_log(step)
    assert log is not None
    new, count = counted(new, step.materialize)
    few = few_keys(keys_alone(new, keys).distinct(), count)
    rest = without_keys_of(few, of_stored)
    return (
        new,
        with_keys_of(few, of_stored)(log),
        lambda narrow: live_rows(narrow(rest(log)), step.first),
    )


def _along(step: Step, summary: KeySummary, is_stored: bool) -> Along:
    """How results follow each other."""
    along = summary.in_time(step, is_stored)
    if rows_go(step):
        along = None if along is None else along.of_changes()
    if along is None:
        raise TypeError(f"`{step.node.op.name}` is not merged from its own results")
    return along


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
