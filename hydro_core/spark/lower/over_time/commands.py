"""Items that commands put and delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window

from hydro_core.catalog.refusals import NO_COMMAND, NO_KEYED_COMMAND
from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.log import coming_and_going, expanded, live, live_rows, since
from hydro_core.spark.frames.relation import FOREVER, ITEM, ORD, TICK, UNTIL, Relation
from hydro_core.spark.lower.failure import fail
from hydro_core.spark.lower.items.columns import convert, make_tuple, type_at
from hydro_core.spark.lower.over_time.history import last_stored
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.spark.lower.relations.changes import as_changes
from hydro_core.spark.lower.relations.keys import guarded, with_keys_of, without_keys_of


@lowers("persist_mut")
def persist_mut(step: Step) -> Relation:
    """Each copy is there from its tick until that of the next delete of its item."""
    found = _commands(step, (F.col(ITEM),))
    in_time = Window.partitionBy("x0").orderBy(TICK, ORD)
    following = in_time.rowsBetween(1, Window.unboundedFollowing)
    until = F.min(F.when(F.col("is_delete"), F.col(TICK))).over(following)
    ends = found.rows.withColumn(UNTIL, F.coalesce(until, F.lit(FOREVER)))
    return _versions(step, found, ends, F.col("x0"))


@lowers("persist_mut_keyed")
def persist_mut_keyed(step: Step) -> Relation:
    """Each value is there from its tick until that of the next command for its key."""
    found = _commands(step, (F.col(ITEM).getField("_1"), F.col(ITEM).getField("_2")))
    in_tick = Window.partitionBy("x0", TICK).orderBy(F.desc(ORD))
    latest = found.rows.withColumn("place", F.row_number().over(in_tick)).where(F.col("place") == 1)
    until = F.lead(TICK).over(Window.partitionBy("x0").orderBy(TICK))
    ends = latest.withColumn(UNTIL, F.coalesce(until, F.lit(FOREVER)))
    return _versions(step, found, ends, make_tuple(F.col("x0"), F.col("x1")))


@dataclass(frozen=True, slots=True)
class _Commands:
    """What the commands of a range are, and what they find."""

    rows: DataFrame
    """(t, ord, is_delete, x0, …), after those that would give what was there before them."""
    other_keys: DataFrame | None
    """The log of what was there, without what a command may change."""


def _commands(step: Step, stored: Sequence[Column]) -> _Commands:
    """The commands of the range; `stored` are the operands of an item that is there."""
    now = _given(step, len(stored))
    if step.log is None:
        before = last_stored(step) if step.past is not None else None
        other_keys = None
    else:
        commanded = now.select("x0")
        before = expanded(live(with_keys_of(commanded, stored[:1])(step.log)))
        other_keys = without_keys_of(commanded, stored[:1])(step.log)
    if before is None:
        return _Commands(now, None)
    puts = before.select(
        F.lit(step.first - 1).cast("long").alias(TICK),
        F.lit(False).alias("is_delete"),
        *(column.alias(f"x{i}") for i, column in enumerate(stored)),
    )
    return _Commands(now.unionByName(puts, allowMissingColumns=True), other_keys)


def _given(step: Step, operands: int) -> DataFrame:
    events = step.input.events(step.first, step.last).frame
    word = F.col(ITEM).getField("_1").cast("string")
    refusal = NO_COMMAND if operands == 1 else NO_KEYED_COMMAND
    wrong = fail(step.node, refusal, F.col(ITEM)).cast("boolean")
    is_delete = F.when(word == "delete", F.lit(True)).when(word == "persist", F.lit(False))
    given = []
    for i in range(operands):
        to = step.item if operands == 1 else type_at(step.item, i)
        operand = F.col(ITEM).getField(f"_{i + 2}")
        given.append(convert(operand, type_at(step.input.item, i + 1), to).alias(f"x{i}"))
    return events.select(
        TICK, F.struct(ORD).alias(ORD), is_delete.otherwise(wrong).alias("is_delete"), *given
    )


def _versions(step: Step, found: _Commands, ends: DataFrame, item: Column) -> Relation:
    """The rows that commands leave, with what they change."""
    puts = ends.where(guarded(~F.col("is_delete"))).select(item.alias(ITEM), TICK, UNTIL)
    puts = puts.where(F.col(TICK) < F.col(UNTIL))
    frame = since(puts, step.first)
    if found.other_keys is not None:
        until = F.lit(FOREVER).alias(UNTIL)
        rest = live_rows(found.other_keys, step.first).select(ITEM, TICK, until)
        frame = frame.unionByName(rest)
    changes = coming_and_going(puts, step.first, step.last)
    return step.relation(Kind.G, frame).with_(changes=as_changes(step.item, changes))
