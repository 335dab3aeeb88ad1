"""Operators over ticks: histories, windows, the tick before, changelogs and commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyspark.sql import Column, DataFrame, Window

from hydro_core.catalog.classes import KeyMatch, MatchCondition
from hydro_core.catalog.spec import NO_COMMAND, NO_KEYED_COMMAND
from hydro_core.plan.tick_plan import TimeBound
from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import (
    COUNT,
    FOREVER,
    ITEM,
    ORD,
    TICK,
    UNTIL,
    Kind,
    Narrow,
    Relation,
    coming_and_going,
    consolidated,
    expanded,
    live,
    live_rows,
    since,
)
from hydro_core.spark.lower.changelogs import as_changes, changes_of, of_versions, weighed
from hydro_core.spark.lower.items import convert, key_of, make_tuple, type_at
from hydro_core.spark.lower.registry import Step, as_kind, fail, lowers
from hydro_core.spark.lower.relations import (
    empty,
    guarded,
    keys_alone,
    narrowly,
    one_after_another,
    united,
    with_keys_of,
    without_keys_of,
)
from hydro_core.ticks.untimed import refuse_untimed
from hydro_core.types.item import Row
from hydro_core.types.values import since_epoch

# `persist`: rows that stay, or expire by a time of theirs, which determines each one's last tick.


_LEAVES = "leaves"
"""The column of the moment from which on a row has expired."""


@lowers("persist")
def persist(step: Step) -> Relation:
    """`Σ_{s≤t} a_s`: stored additions and new rows, each with its tick."""
    bound = TimeBound.of(step.node)
    if bound is None:
        return step.relation(Kind.H, additions(step))
    # Rows that are too old at their arrival, and rows without a time, are never valid.
    return of_versions(step, _with_ends(step, bound).where(F.col(TICK) < F.col(UNTIL)))


def _with_ends(step: Step, bound: TimeBound) -> DataFrame:
    """The additions (item, t, until) that were valid before the range, or may be in it.

    They are valid until the first tick whose end is `bound` after their time, or more.
    """
    at = F.unix_micros(F.col(ITEM).getField(bound.column).cast("timestamp"))
    found = additions(step if step.clock else step.with_(past=_stored(step, bound))).withColumn(
        _LEAVES, at + F.lit(bound.micros)
    )
    found = found.where(F.col(_LEAVES).isNotNull())
    if step.clock is not None:
        clock = step.clock().select(*(F.unix_micros(name).alias(name) for name in ("start", "end")))
        found = found.crossJoin(F.broadcast(clock))
        before, until = F.col("start"), _first_of((F.col("end"),), step.first)
    else:
        ends = _ends(step)
        before, until = F.lit(ends[0]), _first_end(ends[1:], step.first)
    is_known = (F.col(TICK) >= step.first) | (F.col(_LEAVES) > before)
    return found.where(is_known).select(ITEM, TICK, until.cast("long").alias(UNTIL))


def _stored(step: Step, bound: TimeBound) -> DataFrame | None:
    """The stored rows that are valid before the range; for updates alone, those that expire in it.

    Spark prunes files by their statistics for such rows.
    """
    if step.past is None:
        return None
    ends = _ends(step)
    at = F.col(f"{ITEM}.{quoted(bound.column)}")
    found = step.past.where(at > _moment(step, bound, ends[0]))
    return found.where(at <= _moment(step, bound, ends[-1])) if step.alone else found


def _moment(step: Step, bound: TimeBound, end: int) -> Column:
    """The latest time of rows that have expired at an end."""
    moment = F.timestamp_micros(F.lit(end - bound.micros))
    item = step.item.column(bound.column) if isinstance(step.item, Row) else None
    return moment if item is None else moment.cast(str(item))


def _ends(step: Step) -> list[int]:
    """The ends of the tick before the range, and of those in the range."""
    found: list[int] = []
    for tick in range(step.first, step.last + 1):
        start, end = step.times.get(tick, (None, None))
        if start is None or end is None:
            raise refuse_untimed(step.node, tick)
        found += [since_epoch(end)] if found else [since_epoch(start), since_epoch(end)]
    return found


def _first_of(ends: Sequence[Column], first: int) -> Column:
    """The first tick whose end is at or after a row's expiry; the ends begin with tick `first`."""
    found = F.lit(FOREVER)
    for place, end in reversed(list(enumerate(ends))):
        found = F.when(F.col(_LEAVES) <= end, F.lit(first + place)).otherwise(found)
    return found


_FEW = 8
"""Most ticks whose ends are compared one after the other."""


def _first_end(ends: Sequence[int], first: int) -> Column:
    """The same for constant ends: many ends are looked up in a table of equal steps.

    A step is as long as the shortest tick, so that at most one tick ends in it.
    """
    if len(ends) <= _FEW:
        return _first_of([F.lit(end) for end in ends], first)
    step = min(later - end for end, later in pairwise(ends))
    ticks, upto, place = [], [], 0
    for begins in range(ends[0], ends[-1] + 1, step):
        while ends[place] < begins:
            place += 1
        ticks.append(first + place)
        upto.append(ends[place])
    number = F.expr(f"cast((least({_LEAVES}, {ends[-1]}L) - {ends[0]}L) div {step}L as int) + 1")
    tick, end = (F.try_element_at(_longs(values), number) for values in (ticks, upto))
    within = F.when(F.col(_LEAVES) <= end, tick).otherwise(tick + 1)
    known = F.when(F.col(_LEAVES) > F.lit(ends[-1]), F.lit(FOREVER)).otherwise(within)
    return F.when(F.col(_LEAVES) <= F.lit(ends[0]), F.lit(first)).otherwise(known)


def _longs(values: Sequence[int]) -> Column:
    return F.expr(f"array({', '.join(f'{value}L' for value in values)})")


# Rows of earlier ticks: histories, the last ticks, the tick before.


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
    """`Σ_{t−n<s≤t} a_s`: an addition is valid for n ticks."""
    return of_versions(step, additions(step).withColumn(UNTIL, F.col(TICK) + step.arg("n")))


@lowers("prev")
def prev(step: Step) -> Relation:
    """`a_{t−1}`: the rows a tick later, and at the first tick the stored rows of the tick
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
    """The items of the tick before the range, as a batch of its first tick."""
    order = [F.col(ORD)] if step.ordered else []
    frame = last_stored(step).select(ITEM, F.lit(step.first).cast("long").alias(TICK), *order)
    return step.relation(Kind.E, frame, ordered=step.ordered)


def last_stored(step: Step) -> DataFrame:
    """The stored rows of the tick before the range; a state table may hold more."""
    stored = empty(step) if step.past is None else step.past
    return stored.where(F.col(TICK) == step.first - 1)


def _shifted(relation: Relation, last: int) -> Relation:
    """The rows of the range, a tick later, without those that leave the range."""
    frame = relation.frame.where(F.col(TICK) < last)
    if relation.kind is Kind.G:
        frame = frame.withColumn(UNTIL, F.least(F.col(UNTIL), F.lit(FOREVER - 1)) + 1)
    return relation.with_(frame=later(frame))


# Differences from the tick before.


def first_seen(step: Step, known: Relation | None, *, once: bool = False) -> Relation:
    """`x = difference(d, old x)`: each item at its first tick ever, with its copies of that tick.

    The same for the first tick of a key. `known` are items with the keys of earlier ranges; `once`:
    one of the copies is given.
    """
    relation = step.input.unordered() if once else step.input
    keys = _seen_by(step, relation)
    order = [ORD] if relation.ordered else []
    if once:
        rows = relation.frame.groupBy(ITEM).agg(F.min(TICK).alias(TICK))
    else:
        firsts = relation.frame.withColumn("first", F.min(TICK).over(Window.partitionBy(*keys)))
        rows = firsts.where(F.col(TICK) == F.col("first")).select(ITEM, TICK, *order)
    rows = rows.where(F.col(TICK) >= step.first)
    if known is not None:
        rows = without_keys_of(keys_alone(known.frame, _seen_by(step, known)), keys)(rows)
    return step.relation(Kind.E, rows, ordered=relation.ordered)


def _seen_by(step: Step, relation: Relation) -> list[Column]:
    """The part of an item whose first occurrence counts: the whole item, or the key of the join."""
    cls = step.node.cls
    if isinstance(cls, KeyMatch) and cls.compares is MatchCondition.ITEMS:
        return [F.col(ITEM)]
    return key_of(F.col(ITEM), relation.item, step.arg("on"))


@lowers("delta")
def delta(step: Step) -> Relation:
    """`a_t ∸ a_{t−1}`: the additions of a history, else the updates with positive counts, in that
    multiplicity.
    """
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
    """(item, t, n), an item once in a tick: from the changelog, or from the stored rows of the tick
    before.
    """
    relation = step.input.unordered()
    if step.input.changes is not None or relation.kind is Kind.H:
        return consolidated(changes_of(step.input, step.first).frame)
    there = as_kind(relation, Kind.G, step.first).frame
    changes = coming_and_going(there, step.first, step.last)
    if step.past is not None:
        start = F.lit(step.first).cast("long").alias("start")
        gone = last_stored(step).select(ITEM, start)
        changes = changes.union(weighed(gone, -1, at="start"))
    return consolidated(changes)


# Items that commands insert and delete.


@lowers("persist_mut")
def persist_mut(step: Step) -> Relation:
    """Each copy is valid from its tick until that of the next delete of its item."""
    found = _commands(step, (F.col(ITEM),))
    in_time = Window.partitionBy("x0").orderBy(TICK, ORD)
    following = in_time.rowsBetween(1, Window.unboundedFollowing)
    until = F.min(F.when(F.col("is_delete"), F.col(TICK))).over(following)
    ends = found.rows.withColumn(UNTIL, F.coalesce(until, F.lit(FOREVER)))
    return _versions(step, found, ends, F.col("x0"))


@lowers("persist_mut_keyed")
def persist_mut_keyed(step: Step) -> Relation:
    """Each value is valid from its tick until that of the next command for its key."""
    found = _commands(step, (F.col(ITEM).getField("_1"), F.col(ITEM).getField("_2")))
    in_tick = Window.partitionBy("x0", TICK).orderBy(F.desc(ORD))
    latest = found.rows.withColumn("place", F.row_number().over(in_tick)).where(F.col("place") == 1)
    until = F.lead(TICK).over(Window.partitionBy("x0").orderBy(TICK))
    ends = latest.withColumn(UNTIL, F.coalesce(until, F.lit(FOREVER)))
    return _versions(step, found, ends, make_tuple(F.col("x0"), F.col("x1")))


@dataclass(frozen=True, slots=True)
class _Commands:
    """The commands of a range, and the stored rows that they affect."""

    rows: DataFrame
    """(t, ord, is_delete, x0, …), preceded by commands that would insert the stored rows."""
    other_keys: DataFrame | None
    """The changelog of stored rows, without those that a command may change."""


def _commands(step: Step, stored: Sequence[Column]) -> _Commands:
    """The commands of the range; `stored` are the operands of a stored item."""
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
    """The rows that commands leave, with their updates."""
    puts = ends.where(guarded(~F.col("is_delete"))).select(item.alias(ITEM), TICK, UNTIL)
    puts = puts.where(F.col(TICK) < F.col(UNTIL))
    frame = since(puts, step.first)
    if found.other_keys is not None:
        until = F.lit(FOREVER).alias(UNTIL)
        rest = live_rows(found.other_keys, step.first).select(ITEM, TICK, until)
        frame = frame.unionByName(rest)
    changes = coming_and_going(puts, step.first, step.last)
    return step.relation(Kind.G, frame).with_(changes=as_changes(step.item, changes))
