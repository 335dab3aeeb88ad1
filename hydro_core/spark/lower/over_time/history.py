"""What reaches over ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window

from hydro_core.catalog.refusals import NO_COMMAND, NO_KEYED_COMMAND
from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.log import consolidated, expanded, live, live_rows
from hydro_core.spark.frames.relation import (
    COUNT,
    FOREVER,
    ITEM,
    ORD,
    TICK,
    UNTIL,
    Narrow,
    Relation,
)
from hydro_core.spark.lower.algebra import (
    Range,
    guarded,
    narrowly,
    signed,
    with_keys_of,
    without_keys_of,
)
from hydro_core.spark.lower.changes import as_changes, weighed
from hydro_core.spark.lower.failure import fail
from hydro_core.spark.lower.io import empty
from hydro_core.spark.lower.items import convert, make_tuple, type_at
from hydro_core.spark.lower.registry import Step, as_kind, lowers
from hydro_core.types.item import ItemType


@lowers("persist")
def persist(step: Step) -> Relation:
    """`Σ_{s≤t} a_s`: stored additions and new rows, each with its tick."""
    return step.relation(Kind.H, additions(step))


@lowers("old")
def old(step: Step) -> Relation:
    """`Σ_{s<t} a_s`: the additions, a tick later."""
    if step.is_tick:
        stored = step.with_(inputs=())
        return step.relation(Kind.H, _later(additions(stored)))
    return step.relation(Kind.H, _later(additions(step)).where(F.col(TICK) <= step.last))


def additions(step: Step) -> DataFrame:
    """All additions (item, t) up to the end of the range."""
    frames = [r.events(step.first, step.last).frame.select(ITEM, TICK) for r in step.inputs]
    if step.past is not None:
        frames.append(step.past.where(F.col(TICK) < step.first).select(ITEM, TICK))
    if not frames:
        return empty(step)
    return frames[0] if len(frames) == 1 else frames[0].union(frames[1])


def _later(frame: DataFrame) -> DataFrame:
    return frame.withColumn(TICK, F.col(TICK) + 1)


@lowers("window")
def window(step: Step) -> Relation:
    """`Σ_{t−n<s≤t} a_s`: an addition is there for n ticks, and goes when they are over."""
    added = additions(step).withColumn(UNTIL, F.col(TICK) + step.arg("n"))
    start = F.greatest(F.col(TICK), F.lit(step.first)).alias(TICK)
    found = step.relation(Kind.G, added.where(F.col(UNTIL) > step.first).select(ITEM, start, UNTIL))
    if not step.in_changes:
        return found
    comes = added.where(F.col(TICK) >= step.first)
    goes = added.where(F.col(UNTIL).between(step.first, step.last))
    changes = weighed(comes, 1).union(weighed(goes, -1, at=UNTIL))
    return found.with_(changes=as_changes(step.item, changes))


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
        frame = _later(step.input.frame).where(F.col(TICK) <= step.last)
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
    # Stored rows and others are never there in the same tick, so their orders need not compare.
    stored, shifted = (p.frame.withColumnRenamed(ORD, f"{ORD}{i}") for i, p in enumerate(parts))
    both = stored.unionByName(shifted, allowMissingColumns=True)
    either = F.struct(f"{ORD}0", f"{ORD}1").alias(ORD)
    return parts[0].with_(frame=both.select(ITEM, *parts[0].times, either))


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
    return relation.with_(frame=_later(frame))


def first_seen(step: Step) -> Relation:
    """`x = difference(d, old x)`: each item at its first tick of all, with its copies of that tick.

    What is stored are the items of earlier ranges.
    """
    relation = step.input
    firsts = relation.frame.withColumn("first", F.min(TICK).over(Window.partitionBy(ITEM)))
    order = [ORD] if relation.ordered else []
    rows = firsts.where((F.col(TICK) == F.col("first")) & (F.col(TICK) >= step.first))
    rows = rows.select(ITEM, TICK, *order)
    if step.past is not None:
        known = step.past.select(F.col(ITEM).alias("known"))
        rows = rows.join(known, F.col(ITEM).eqNullSafe(F.col("known")), "left_anti")
    return step.relation(Kind.E, rows, ordered=relation.ordered)


@lowers("delta")
def delta(step: Step) -> Relation:
    """`a_t ∸ a_{t−1}`: what a history adds, else the positive changes, as often as they count."""
    if step.input.kind is Kind.H:
        return step.relation(Kind.E, step.input.unordered().new(step.first).frame)
    net = _changes(step).where(F.col(COUNT) > 0)
    return step.relation(Kind.E, expanded(net).select(ITEM, TICK))


@lowers("changes")
def changes(step: Step) -> Relation:
    """`(n, x)` where the number of copies of x has changed by n."""
    pair = make_tuple(F.col(COUNT), F.col(ITEM)).alias(ITEM)
    return step.relation(Kind.E, _changes(step).select(pair, TICK))


def _changes(step: Step) -> DataFrame:
    if step.input.changes is not None:
        return consolidated(step.input.changes.frame)
    before = None if step.past is None else last_stored(step)
    relation = step.input.unordered()
    if step.is_tick and relation.kind is Kind.G:
        relation = relation.events(step.first, step.last)
    return signed(relation, before, Range(step.first, step.last))


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
    untouched: DataFrame | None
    """The log of what was there, without what a command may change."""


def _commands(step: Step, stored: Sequence[Column]) -> _Commands:
    """The commands of the range; `stored` are the operands of an item that is there."""
    now = _given(step, len(stored))
    if step.log is None:
        before = last_stored(step) if step.past is not None else None
        untouched = None
    else:
        touched = now.select("x0")
        before = expanded(live(with_keys_of(touched, stored[:1])(step.log)))
        untouched = without_keys_of(touched, stored[:1])(step.log)
    if before is None:
        return _Commands(now, None)
    puts = before.select(
        F.lit(step.first - 1).cast("long").alias(TICK),
        F.lit(False).alias("is_delete"),
        *(column.alias(f"x{i}") for i, column in enumerate(stored)),
    )
    return _Commands(now.unionByName(puts, allowMissingColumns=True), untouched)


def _given(step: Step, operands: int) -> DataFrame:
    events = step.input.events(step.first, step.last).frame
    word = F.col(ITEM).getField("_1").cast("string")
    refusal = NO_COMMAND if operands == 1 else NO_KEYED_COMMAND
    wrong = fail(step.node, refusal, F.col(ITEM)).cast("boolean")
    is_delete = F.when(word == "delete", F.lit(True)).when(word == "persist", F.lit(False))
    types = [type_at(step.input.item, i + 1) for i in range(operands)]
    given = [
        convert(
            F.col(ITEM).getField(f"_{i + 2}"), types[i], _operand_type(step, i, operands)
        ).alias(f"x{i}")
        for i in range(operands)
    ]
    return events.select(
        TICK, F.struct(ORD).alias(ORD), is_delete.otherwise(wrong).alias("is_delete"), *given
    )


def _operand_type(step: Step, position: int, operands: int) -> ItemType:
    return step.item if operands == 1 else type_at(step.item, position)


def _versions(step: Step, found: _Commands, ends: DataFrame, item: Column) -> Relation:
    """The rows that commands leave, with what they change."""
    puts = ends.where(guarded(~F.col("is_delete"))).select(item.alias(ITEM), TICK, UNTIL)
    puts = puts.where(F.col(TICK) < F.col(UNTIL))
    start = F.lit(step.first).cast("long")
    there = puts.withColumn(TICK, F.greatest(F.col(TICK), start))
    frame = there.where(F.col(TICK) < F.col(UNTIL))
    if found.untouched is not None:
        until = F.lit(FOREVER).alias(UNTIL)
        rest = expanded(live(found.untouched)).select(ITEM, start.alias(TICK), until)
        frame = frame.unionByName(rest)
    come = puts.where(F.col(TICK) >= step.first).select(ITEM, TICK, F.lit(1).alias(COUNT))
    go = puts.where(F.col(UNTIL) <= step.last).select(
        ITEM, F.col(UNTIL).alias(TICK), F.lit(-1).alias(COUNT)
    )
    changes = come.union(go).withColumn(COUNT, F.col(COUNT).cast("long"))
    return step.relation(Kind.G, frame).with_(changes=as_changes(step.item, changes))
