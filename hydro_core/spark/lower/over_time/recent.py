"""`persist`: rows that stay, or leave by a time of theirs, which tells each one's last tick."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pyspark.sql import Column, DataFrame

from hydro_core.plan.bound import TimeBound
from hydro_core.spark.frames.column_names import quoted
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import FOREVER, ITEM, TICK, UNTIL, Kind, Relation
from hydro_core.spark.lower.over_time.history import additions
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.spark.lower.relations.changes import of_versions
from hydro_core.ticks.untimed import refuse_untimed
from hydro_core.types.item import Row
from hydro_core.types.moments import since_epoch

_LEAVES = "leaves"
"""The column of the moment from which on a row is gone."""


@lowers("persist")
def persist(step: Step) -> Relation:
    """`Σ_{s≤t} a_s`: stored additions and new rows, each with its tick."""
    bound = TimeBound.of(step.node)
    if bound is None:
        return step.relation(Kind.H, additions(step))
    # Those that are too old when they come, and those without a time, are never there.
    return of_versions(step, _with_ends(step, bound).where(F.col(TICK) < F.col(UNTIL)))


def _with_ends(step: Step, bound: TimeBound) -> DataFrame:
    """The additions (item, t, until) that were there before the range, or may be in it.

    They are there until the first tick whose end is `bound` after their time, or more.
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
    """The stored rows that are there before the range; if only changes are asked for, that leave.

    Spark asks the files' statistics for such rows.
    """
    if step.past is None:
        return None
    ends = _ends(step)
    at = F.col(f"{ITEM}.{quoted(bound.column)}")
    found = step.past.where(at > _moment(step, bound, ends[0]))
    return found.where(at <= _moment(step, bound, ends[-1])) if step.alone else found


def _moment(step: Step, bound: TimeBound, end: int) -> Column:
    """The latest time of rows that have left at an end."""
    moment = F.timestamp_micros(F.lit(end - bound.micros))
    item = step.item.column(bound.column) if isinstance(step.item, Row) else None
    return moment if item is None else moment.cast(str(item))


def _ends(step: Step) -> list[int]:
    """When the tick before the range ends, and those of the range."""
    found: list[int] = []
    for tick in range(step.first, step.last + 1):
        start, end = step.times.get(tick, (None, None))
        if start is None or end is None:
            raise refuse_untimed(step.node, tick)
        found += [since_epoch(end)] if found else [since_epoch(start), since_epoch(end)]
    return found


def _first_of(ends: Sequence[Column], first: int) -> Column:
    """The first tick that ends when a row leaves, or after; these begin with `first`."""
    found = F.lit(FOREVER)
    for place, end in reversed(list(enumerate(ends))):
        found = F.when(F.col(_LEAVES) <= end, F.lit(first + place)).otherwise(found)
    return found


_FEW = 8
"""Of so many ticks the ends are compared one after the other."""


def _first_end(ends: Sequence[int], first: int) -> Column:
    """The same of known ends: where they are many, they are looked up in a table of equal steps.

    A step is as long as the shortest tick, so that one tick ends in it at most.
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
