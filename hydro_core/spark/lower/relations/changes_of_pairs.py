"""Changes of what is made of two streams: pairs, rows with a match or without one, distinct keys.

For streams x and y with changes Δx and Δy, all as of the end of the same tick,

    Δ(x ⋈ y) = Δx ⋈ y + x ⋈ Δy − Δx ⋈ Δy,

where signs multiply: what goes is paired as what comes. A row's match is a pair with a key that is
there at all, so with c the change of whether a key of y is there (1, −1),

    Δ(x ⋉ y) = Δx ⋉ y + x ⋈ c − Δx ⋈ c,    Δ(x ▷ y) = Δx ▷ y − x ⋈ c + Δx ⋈ c.

Of x and y only rows with the keys of the other's changes are looked at. A history is the cheap
case: its changes are its new rows. The laws are those of Z-sets (Budiu and others, "DBSP", 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.materialize import held
from hydro_core.spark.frames.relation import COUNT, ITEM, TICK, Relation
from hydro_core.spark.lower.relations.changes import as_changes, changes_of
from hydro_core.spark.lower.relations.keys import Keys, all_of, equal_keys, key_parts, meeting
from hydro_core.spark.lower.relations.matching import selected
from hydro_core.spark.lower.relations.product import Range, overlap, pairs, renamed
from hydro_core.spark.lower.relations.rows import gathered, united

MakePair = Callable[[Column, Column], Column]
"""From an item of each side to the item that they make."""


def changed_pairs(
    left: Relation, right: Relation, keys: Keys, make: MakePair, ticks: Range
) -> DataFrame:
    """How the pairs of equal keys change: (item, t, n)."""
    mine, theirs = (changes_of(r, ticks.first) for r in (left, right))
    parts = [
        _weighed(mine, right, keys, make, ticks),
        _weighed(left, theirs, keys, make, ticks),
        _weighed(mine, theirs, keys, make, ticks, sign=-1),
    ]
    return held(gathered(united(parts)))


def changed_matches(
    left: Relation, right: Relation, keys: Keys, ticks: Range, *, wanted: bool
) -> DataFrame:
    """How the left rows change whose key is, or is not, on the right: (item, t, n)."""
    mine = changes_of(left, ticks.first)
    met = changed_keys(right, keys[1], ticks)
    met_by = (keys[0], key_parts(len(keys[1])))
    how = "left_semi" if wanted else "left_anti"
    comes = selected(mine, right, keys, ticks, how).frame.select(ITEM, TICK, COUNT)
    sign = 1 if wanted else -1
    parts = [
        comes,
        _weighed(left, met, met_by, _first, ticks, sign=sign),
        _weighed(mine, met, met_by, _first, ticks, sign=-sign),
    ]
    return held(gathered(united(parts)))


def changed_keys(relation: Relation, keys: Sequence[Column], ticks: Range) -> Relation:
    """When keys come to be there, and when they are there no more: changes whose item is the tuple
    of the key's parts.
    """
    changes = changes_of(relation, ticks.first)
    named = [k.alias(f"k{i}") for i, k in enumerate(keys)]
    names = [f"l_k{i}" for i in range(len(keys))]
    net = changes.frame.select(*named, TICK, COUNT).groupBy(
        *[f"k{i}" for i in range(len(keys))], TICK
    )
    mine = net.agg(F.sum(COUNT).alias("net")).where(F.col("net") != 0)
    mine = mine.select(*(F.col(c).alias(f"l_{c}") for c in mine.columns))
    there = meeting(relation, changes, (keys, keys))
    conditions = [*equal_keys(len(keys)), *overlap(Kind.E, relation.kind, ticks)]
    found = mine.join(renamed(there, "r_", *keys), all_of(conditions), "left")
    after = F.count("r_t")
    counted = found.groupBy(*names, "l_t", "l_net").agg(after.alias("after"))
    before = F.col("after") - F.col("l_net")
    change = (F.col("after") > 0).cast("long") - (before > 0).cast("long")
    item = F.struct(*(F.col(n).alias(f"k{i}") for i, n in enumerate(names))).alias(ITEM)
    rows = counted.select(item, F.col("l_t").alias(TICK), change.alias(COUNT))
    return as_changes(relation.item, held(rows.where(F.col(COUNT) != 0)))


def _first(mine: Column, _: Column) -> Column:
    return mine


def _weighed(
    left: Relation, right: Relation, keys: Keys, make: MakePair, ticks: Range, *, sign: int = 1
) -> DataFrame:
    """The pairs of which one side at least is changes, as often as these count: (item, t, n)."""
    left, right = meeting(left, right, keys), meeting(right, left, keys[::-1])
    counts = [F.col(f"{p}{COUNT}") for p, r in (("l_", left), ("r_", right)) if COUNT in r.carried]
    tick = F.col("l_t" if left.kind is Kind.E else "r_t")
    n = reduce(lambda one, other: one * other, counts) * F.lit(sign)
    found = pairs(left, right, keys, ticks)
    return found.select(
        make(F.col("l_item"), F.col("r_item")).alias(ITEM),
        tick.alias(TICK),
        n.cast("long").alias(COUNT),
    )
