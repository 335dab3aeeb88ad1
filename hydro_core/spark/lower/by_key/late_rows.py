"""Keys of which a row comes late, or changes earlier ones: from there on they are computed again.

Each stored row has what a later one goes on from. So of such a key the rows before the first new
one stay, the last of these tell how it goes on, and all rows behind are computed as new ones are.
What stood there goes as it was stored, and where a row is given what it had, nothing changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Window

from hydro_core.catalog.tails import given_to_peers, rows_ahead
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.materialize import held
from hydro_core.spark.frames.relation import FOREVER, ITEM, ORD, TICK, UNTIL
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.by_key.continued import NUMBER, STATE, Continued, KeyRows, key_rows
from hydro_core.spark.lower.by_key.ordered import numbered
from hydro_core.spark.lower.items.columns import key_of
from hydro_core.spark.lower.registry import Step
from hydro_core.spark.lower.relations.conditions import all_of
from hydro_core.spark.lower.relations.narrowing import with_keys_of

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
