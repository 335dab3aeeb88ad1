"""`over` of a history that goes on from the last rows of each key.

A new row that comes after all stored rows of its key is computed from the key's tail; what a row
was given then stays. Of a key with a row that comes before an earlier one, or changes what that is
given, the rows from there on are computed again.

Each stored row has what a later one goes on from. So of such a key the rows before the first new
one stay, the last of these tell how it goes on, and all rows behind are computed as new ones are.
What stood there goes as it was stored, and where a row is given what it had, nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Window

from hydro_core.catalog.tails import given_to_peers, rows_ahead
from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.log import coming_and_going, consolidated, live_rows
from hydro_core.spark.frames.materialize import counted, held
from hydro_core.spark.frames.relation import FOREVER, ITEM, ORD, TICK, UNTIL, Narrow, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.by_key.continued import NUMBER, STATE, Continued, KeyRows, key_rows
from hydro_core.spark.lower.by_key.ordered import numbered
from hydro_core.spark.lower.by_key.over_ticks import few_keys
from hydro_core.spark.lower.by_key.places import PLACE
from hydro_core.spark.lower.by_key.running import stored_log
from hydro_core.spark.lower.items.columns import key_of
from hydro_core.spark.lower.registry import Step, lowers, per_tick
from hydro_core.spark.lower.relations.changes import rows_or_changes
from hydro_core.spark.lower.relations.conditions import all_of
from hydro_core.spark.lower.relations.narrowing import (
    keys_alone,
    with_keys_of,
    without_keys_of,
)

CUT = "cut"
"""The tick of the first new row of the key."""
STORED = "stored"
"""A stored row, whether it is computed again or not."""
_HERE = (Window.unboundedPreceding, Window.currentRow)


@dataclass(frozen=True, slots=True)
class MadeAgain:
    """What becomes of the rows of late keys."""

    moves: DataFrame
    """(item, t, until): the rows that are computed, and what stood in their places."""
    stays: DataFrame
    """(item): the other stored rows that were found."""


def made_again(step: Step, new: DataFrame, stored: DataFrame | None, late: DataFrame) -> MadeAgain:
    """What becomes of the rows of late keys.

    Args:
        step: the operator.
        new: the new rows (item, t) of all keys.
        stored: the stored ones (item, t): of late keys at least those at or after the first new
            row, and the last ones before it.
        late: (k0 …): the keys.
    """
    by = step.node.args["by"]
    of_new, of_stored = (key_of(F.col(ITEM), t, by) for t in (step.input.item, step.item))
    before = None if stored is None else with_keys_of(late, of_stored)(stored)
    rows = key_rows(step, with_keys_of(late, of_new)(new), before)
    flagged = rows.with_frame(held(_flagged(rows)))
    frame = flagged.places.frame
    moved = frame.where("moved")
    again = _computed(step, flagged.with_frame(_in_stretches(step, flagged.places.keys, moved)))
    went = moved.where(F.col(STORED).isNotNull())
    old = went.select(F.col(STORED).alias(ITEM), TICK, F.col(CUT).alias(UNTIL))
    stays = frame.where(~F.col("moved")).select(F.col(STORED).alias(ITEM))
    return MadeAgain(again.unionByName(old), stays)


def _flagged(rows: KeyRows) -> DataFrame:
    """The rows with whether they move, and stored ones without their state where they are made
    again.

    Others look up some rows of a key, too, between which there are more: the rows that are followed
    by all others of their key are those whose numbers tell so.
    """
    at, args = rows.places, rows.step.node.args
    is_stored, place = F.col(STATE).isNotNull(), F.col(ORD)
    ahead = rows_ahead(args)
    if given_to_peers(args):
        place = F.col("first_equal")
    whole = at.whole()
    so_far = F.count(F.col(STATE)).over(at.by_rows().rowsBetween(*_HERE))
    frame = at.frame.withColumn("first_equal", F.rank().over(at.by_peers())).select(
        "*",
        F.min(F.when(~is_stored, place - ahead)).over(whole).alias("first_new"),
        F.min(F.when(~is_stored, F.col(TICK))).over(whole).alias(CUT),
        F.when(is_stored, F.col(NUMBER) - so_far).alias("missing"),
    )
    frame = frame.withColumn("of_the_last", F.max("missing").over(whole))
    is_new = F.col(ORD) >= F.col("first_new")
    near = F.col(ORD) >= F.col("first_new") - (args["keep"] - ahead)
    moved = is_new | (near & (F.col("missing") == F.col("of_the_last")))
    frame = frame.withColumn("moved", moved).withColumn(STORED, F.col(STATE))
    state = F.when(~is_new, F.col(STATE)).cast(spark_type(rows.step.item))
    return frame.withColumn(STATE, state).drop("first_equal", "first_new", "missing", "of_the_last")


def _in_stretches(step: Step, keys: tuple[str, ...], rows: DataFrame) -> DataFrame:
    """The rows with (t, until), cut wherever a new one of their key comes."""
    if step.is_tick:
        first, until = F.lit(step.first).cast("long"), F.lit(FOREVER).cast("long")
        return rows.withColumn(TICK, first).withColumn(UNTIL, until)
    others = [f"of{i}" for i in range(len(keys))]
    came = rows.where(F.col(STORED).isNull()).select(*keys, TICK).distinct()
    cuts = came.toDF(*others, "since")
    following = F.lead("since").over(Window.partitionBy(*others).orderBy("since"))
    cuts = cuts.withColumn(UNTIL, F.coalesce(following, F.lit(FOREVER)))
    same = [F.col(k).eqNullSafe(F.col(o)) for k, o in zip(keys, others, strict=True)]
    both = rows.join(cuts, all_of([*same, F.col("since") >= F.col(TICK)]))
    return both.withColumn(TICK, F.col("since"))


def _computed(step: Step, rows: KeyRows) -> DataFrame:
    """(item, t, until): the rows of each stretch; those that are stored but for their marks."""
    at = numbered(replace(rows.places, by_ticks=True))
    made = Continued(replace(rows, places=at))
    row = made.row(is_last=made.leaves.isNull())
    return made.computed().select(row.alias(ITEM), TICK, UNTIL)


LATE = "late"
"""Whether some row of the key comes after one that stands behind it."""


@lowers("running_over")
@per_tick
def running_over(step: Step) -> Relation:
    """The rows of all ticks so far with their columns; the input is what is new."""
    work = _work(step.with_(inputs=(step.input.unordered(),)))
    found = _on_time(work.on_time).unionByName(work.again.moves)
    moves = held(found.select(ITEM, TICK, UNTIL))

    def changes() -> DataFrame:
        return consolidated(coming_and_going(moves, step.first, step.last))

    return rows_or_changes(step, lambda: _rows(work, moves), changes)


@dataclass(frozen=True, slots=True)
class _Work:
    step: Step
    stored: DataFrame | None
    """The stored rows (item, t) of the keys of new rows, at the tick before the range."""
    others: Callable[[], DataFrame] | None
    """Those of all other keys."""
    late: DataFrame
    """(k0 …): the keys of which a row comes late."""
    on_time: KeyRows
    """New rows and tails of all other keys."""
    again: MadeAgain
    """What becomes of the rows of late keys."""


def _work(step: Step) -> _Work:
    args, log = step.node.args, stored_log(step)
    new, by = step.input.frame.select(ITEM, TICK), step.node.args["by"]
    stored: DataFrame | None = None
    others: Callable[[], DataFrame] | None = None
    if log is not None:
        new, count = counted(new, step.materialize)
        keys, of_stored = (key_of(F.col(ITEM), t, by) for t in (step.input.item, step.item))
        few = few_keys(keys_alone(new, keys).distinct(), count)
        stored = held(live_rows(with_keys_of(few, of_stored)(log), step.first - 1))
        stored = stored.select(ITEM, TICK)
        rest: Narrow = without_keys_of(few, of_stored)
        others = lambda: live_rows(rest(log), step.first)  # noqa: E731
    is_tail = F.col(ITEM).getField(args["tail"]).isNotNull()
    both = key_rows(step, new, None if stored is None else stored.where(is_tail))
    found = both.places
    frame = found.frame.withColumn("behind", _is_behind(both))
    frame = frame.withColumn(LATE, F.max("behind").over(found.whole()))
    late = held(frame.where(F.col(LATE)).select(*found.keys).distinct())
    on_time = both.with_frame(frame.where(~F.col(LATE)))
    return _Work(step, stored, others, late, on_time, made_again(step, new, stored, late))


def _is_behind(of: KeyRows) -> Column:
    """Whether a row changes what one is given that came before it."""
    args, rows = of.step.node.args, of.places.by_rows()
    if rows_ahead(args):
        return F.lit(True)
    before = F.lag(F.struct(F.col(TICK), F.col(PLACE))).over(rows)
    is_behind = before.getField(TICK) > F.col(TICK)
    if given_to_peers(args):
        is_equal = before.getField(PLACE).eqNullSafe(F.col(PLACE))
        is_behind |= is_equal & (before.getField(TICK) < F.col(TICK))
    return F.coalesce(is_behind, F.lit(False))


def _on_time(of: KeyRows) -> DataFrame:
    """(item, t, until): the new rows, and what stays of the tails."""
    made = Continued(of)
    end = F.coalesce(F.col("leaves"), F.lit(FOREVER))
    stays = F.array(
        F.struct(F.col(TICK).alias("a"), end.alias("b"), F.lit(True).alias("c")),
        F.struct(end.alias("a"), F.lit(FOREVER).cast("long").alias("b"), F.lit(False).alias("c")),
    )
    both = made.computed().select(
        made.row(is_last=F.lit(True)).alias("kept"),
        made.row().alias("left"),
        TICK,
        made.leaves.alias("leaves"),
    )
    each = exploded(both, ["kept", "left", F.explode(stays).alias("s")], reads=(TICK, "leaves"))
    item = F.when(F.col("s.c"), F.col("kept")).otherwise(F.col("left")).alias(ITEM)
    found = each.select(item, F.col("s.a").alias(TICK), F.col("s.b").alias(UNTIL))
    return found.where(F.col(TICK) < F.col(UNTIL))


def _rows(work: _Work, moves: DataFrame) -> Relation:
    """All rows: those that are computed, and of what is stored all others."""
    step = work.step
    tick = F.greatest(F.col(TICK), F.lit(step.first).cast("long")).alias(TICK)
    there = moves.select(ITEM, tick, UNTIL).where(F.col(TICK) < F.col(UNTIL))

    def narrowed(narrow: Narrow) -> DataFrame:
        found = narrow(there)
        if work.others is None or work.stored is None:
            return found
        args = step.node.args
        keys = key_of(F.col(ITEM), step.item, args["by"])
        earlier = work.stored.where(F.col(ITEM).getField(args["tail"]).isNull())
        rest = (
            work.others()
            .select(ITEM)
            .unionByName(without_keys_of(work.late, keys)(earlier).select(ITEM))
            .unionByName(work.again.stays)
        )
        start, until = F.lit(step.first).cast("long"), F.lit(FOREVER).cast("long")
        return found.unionByName(narrow(rest).select(ITEM, start.alias(TICK), until.alias(UNTIL)))

    return Relation(Kind.G, narrowed(lambda frame: frame), step.item, narrowed=narrowed)
