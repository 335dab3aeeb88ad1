"""`over` of a history that goes on from the last rows of each key.

A new row that comes after all stored rows of its key is computed from the key's tail; what a row
was given then stays. Of a key with a row that comes before an earlier one, or changes what that is
given, the rows from there on are computed again.

Each stored row has what a later one goes on from. So of such a key the rows before the first new
one stay, the last of these tell how it goes on, and all rows behind are computed as new ones are.
What stood there goes as it was stored, and where a row is given what it had, nothing changes.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame, Window

from hydro_core.catalog.tails import given_to_peers, rows_ahead
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.log import live_rows
from hydro_core.spark.frames.materialize import held
from hydro_core.spark.frames.relation import FOREVER, ITEM, ORD, TICK, UNTIL, Narrow, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.by_key.continued import NUMBER, STATE, Continued, KeyRows, key_rows
from hydro_core.spark.lower.by_key.ordered import numbered
from hydro_core.spark.lower.by_key.places import PLACE
from hydro_core.spark.lower.by_key.running import of_new_keys, stored_log
from hydro_core.spark.lower.items.columns import key_of
from hydro_core.spark.lower.registry import Step, lowers, per_tick
from hydro_core.spark.lower.relations.changes import Others, of_versions
from hydro_core.spark.lower.relations.keys import all_of, with_keys_of, without_keys_of
from hydro_core.spark.lower.relations.rows import united

CUT = "cut"
"""The tick of the first new row of the key."""
STORED = "stored"
"""A stored row, whether it is computed again or not."""
LATE = "late"
"""Whether some row of the key comes after one that stands behind it."""
_HERE = (Window.unboundedPreceding, Window.currentRow)


@lowers("running_over")
@per_tick
def running_over(step: Step) -> Relation:
    """The rows of all ticks so far with their columns; the input is what is new."""
    args, new = step.node.args, step.input.frame.select(ITEM, TICK)
    of_new, of_stored = (key_of(F.col(ITEM), t, args["by"]) for t in (step.input.item, step.item))
    tail = F.col(ITEM).getField(args["tail"])
    stored: DataFrame | None = None
    others: Others | None = None
    if stored_log(step) is not None:
        new, log, others = of_new_keys(step, new, of_new, of_stored)
        stored = held(live_rows(log, step.first - 1)).select(ITEM, TICK)
    both = key_rows(step, new, None if stored is None else stored.where(tail.isNotNull()))
    keys, key = both.places.keys, both.places.whole()
    frame = both.places.frame.withColumn("behind", _is_behind(both))
    frame = frame.withColumn(LATE, F.max("behind").over(key))
    late = held(frame.where(F.col(LATE)).select(*keys).distinct())
    late_stored = None if stored is None else with_keys_of(late, of_stored)(stored)
    again, stays = _made_again(step, with_keys_of(late, of_new)(new), late_stored)
    on_time = _on_time(both.with_frame(frame.where(~F.col(LATE))))
    moves = held(on_time.unionByName(again).select(ITEM, TICK, UNTIL))

    def rest(narrow: Narrow) -> DataFrame:
        """All rows that are neither computed nor go: of other keys, and what stays of these."""
        assert stored is not None
        assert others is not None
        earlier = without_keys_of(late, of_stored)(stored.where(tail.isNull()))
        parts = [others(lambda log: log), earlier, stays]
        return narrow(united([part.select(ITEM) for part in parts]))

    return of_versions(step, moves, None if others is None else rest, again=True)


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


def _made_again(
    step: Step, new: DataFrame, stored: DataFrame | None
) -> tuple[DataFrame, DataFrame]:
    """What becomes of the rows of late keys.

    Args:
        step: the operator.
        new: the new rows (item, t) of these keys.
        stored: the stored ones (item, t), at least those at or after the first new row of a key,
            and the last ones before it.

    Returns:
        (item, t, until): the rows that are computed, and what stood in their places.
        (item): the other stored rows that were found.
    """
    rows = key_rows(step, new, stored)
    flagged = rows.with_frame(held(_flagged(rows)))
    frame = flagged.places.frame
    moved = frame.where("moved")
    again = _computed(step, flagged.with_frame(_in_stretches(step, flagged.places.keys, moved)))
    went = moved.where(F.col(STORED).isNotNull())
    old = went.select(F.col(STORED).alias(ITEM), TICK, F.col(CUT).alias(UNTIL))
    stays = frame.where(~F.col("moved")).select(F.col(STORED).alias(ITEM))
    return again.unionByName(old), stays


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
