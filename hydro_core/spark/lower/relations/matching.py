"""The rows of a relation whose key is, or is not, in another; when a key is there at all."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.relation import COUNT, FOREVER, ITEM, ORD, TICK, UNTIL, Relation
from hydro_core.spark.lower.relations.as_of import as_of, is_there, pays
from hydro_core.spark.lower.relations.keys import (
    Keys,
    all_of,
    equal_keys,
    key_parts,
    key_struct,
    meeting,
)
from hydro_core.spark.lower.relations.product import Range, overlap, product, renamed


def semi_join(left: Relation, right: Relation, keys: Keys, ticks: Range) -> Relation:
    """The left rows, at the ticks at which their key is on the right."""
    if left.kind is Kind.E:
        return _of_events(left, right, keys, ticks, there=True)
    left = meeting(left, right, keys)
    there, both = cover(right, keys[1]), (keys[0], key_parts(len(keys[1])))
    return product(left, there, both, lambda mine, _: mine, left.item, ticks)


def anti_join(left: Relation, right: Relation, keys: Keys, ticks: Range) -> Relation:
    """The left rows, at the ticks at which their key is not on the right.

    Events stay, all else becomes general.
    """
    if ticks.is_tick:
        left, right = left.events(ticks.first, ticks.last), right.events(ticks.first, ticks.last)
    if left.kind is Kind.E:
        return _of_events(left, right, keys, ticks, there=False)
    gaps = _gaps(right, keys[1])
    lefts = renamed(left, "l_", *keys[0])
    joined = lefts.join(gaps, all_of(equal_keys(len(keys[0]))), "left")
    no_match = F.col("r_t").isNull()
    tick = F.greatest(
        F.col("l_t"),
        F.lit(ticks.first),
        F.when(no_match, F.lit(ticks.first)).otherwise(F.col("r_t")),
    )
    mine = F.col("l_until") if left.kind is Kind.G else F.lit(FOREVER)
    until = F.when(no_match, mine).otherwise(F.least(mine, F.col("r_until")))
    order = [F.col("l_ord").alias(ORD)] if left.ordered else []
    cut = joined.select(
        F.col("l_item").alias(ITEM), tick.alias(TICK), until.alias(UNTIL), *order
    ).where((F.col(TICK) < F.col(UNTIL)) & (F.col(TICK) <= ticks.last))
    return Relation(Kind.G, cut, left.item, left.ordered)


def _of_events(
    left: Relation, right: Relation, keys: Keys, ticks: Range, *, there: bool
) -> Relation:
    """The events whose key is, or is not, on the right."""
    how = "left_semi" if there else "left_anti"
    if ticks.is_tick or right.kind is Kind.E:
        return selected(left, right, keys, ticks, how)
    right, keys = cover(right, keys[1]), (keys[0], key_parts(len(keys[1])))
    if right.kind is Kind.H or not pays(ticks.first, ticks.last):
        return selected(left, right, keys, ticks, how)
    found = as_of(left, right, keys)
    met = is_there() if there else ~is_there()
    return left.with_(frame=found.where(met).select(ITEM, *left.other_columns))


def selected(
    left: Relation, right: Relation, keys: Keys, ticks: Range, how: str, *, never_null: bool = False
) -> Relation:
    """The left rows that Spark's semi or anti join leaves; they lie by their own columns then.

    Keys that are `never_null` are compared as they are.
    """
    right = meeting(right, left, keys[::-1])
    theirs = [F.col(f"r_k{i}") for i in range(len(keys[1]))]
    equal = [
        mine == other if never_null else mine.eqNullSafe(other)
        for mine, other in zip(keys[0], theirs, strict=True)
    ]
    conditions = [*equal, *overlap(left.kind, right.kind, ticks, mine="")]
    found = left.frame.join(renamed(right, "r_", *keys[1]), all_of(conditions), how)
    return left.with_(frame=found)


def _gaps(relation: Relation, keys: Sequence[Column]) -> DataFrame:
    """When no row of a key is there, for keys that have rows: (r_k0 …, r_t, r_until), before,
    between and after these.
    """
    ends = {
        Kind.E: F.col(TICK) + 1,
        Kind.H: F.lit(FOREVER),
        Kind.G: F.col(UNTIL) if relation.kind is Kind.G else F.lit(FOREVER),
    }
    names = [f"r_k{i}" for i in range(len(keys))]
    rows = relation.frame.select(
        *(k.alias(n) for k, n in zip(keys, names, strict=True)),
        F.col(TICK).alias("start"),
        ends[relation.kind].alias("end"),
    )
    if relation.kind is not Kind.G:
        rows = (
            rows.distinct()
            if relation.kind is Kind.E
            else rows.groupBy(*names, "end").agg(F.min("start").alias("start"))
        )
    in_time = Window.partitionBy(*names).orderBy("start", "end")
    before = F.max("end").over(in_time.rowsBetween(Window.unboundedPreceding, -1))
    marked = rows.select(
        *names,
        "start",
        F.coalesce(before, F.lit(-FOREVER)).alias("before"),
        F.lead("start").over(in_time).isNull().alias("is_last"),
        F.max("end").over(Window.partitionBy(*names)).alias("all_end"),
    )
    found = F.array(
        F.struct(F.col("before").alias("a"), F.col("start").alias("b")),
        F.when(F.col("is_last"), F.struct(F.col("all_end").alias("a"), F.lit(FOREVER).alias("b"))),
    )
    reads = ("before", "start", "is_last", "all_end")
    gaps = exploded(marked, [*names, F.explode(found).alias("g")], reads=reads)
    return gaps.where(F.col("g.a") < F.col("g.b")).select(
        *names, F.col("g.a").alias("r_t"), F.col("g.b").alias("r_until")
    )


def cover(relation: Relation, keys: Sequence[Column]) -> Relation:
    """When there is at least one row of each key: rows whose item is the tuple of the key's parts,
    disjoint in time.
    """
    keyed = relation.frame.select(key_struct(keys).alias(ITEM), *map(F.col, relation.times))
    match relation.kind:
        case Kind.E:
            frame = keyed.distinct()
        case Kind.H:
            frame = keyed.groupBy(ITEM).agg(F.min(TICK).alias(TICK))
        case Kind.G:
            frame = _islands(keyed)
    return Relation(relation.kind, frame, relation.item)


def _islands(frame: DataFrame) -> DataFrame:
    """(item, t, until) rows as the disjoint intervals in which at least one of them holds."""
    ends = F.array(
        F.struct(F.col(TICK).alias(TICK), F.lit(1).alias(COUNT)),
        F.struct(F.col(UNTIL).alias(TICK), F.lit(-1).alias(COUNT)),
    )
    each = exploded(frame, [ITEM, F.explode(ends).alias("e")], reads=(TICK, UNTIL))
    points = each.select(ITEM, f"e.{TICK}", f"e.{COUNT}")
    net = points.groupBy(ITEM, TICK).agg(F.sum(COUNT).alias(COUNT)).where(F.col(COUNT) != 0)
    in_time = Window.partitionBy(ITEM).orderBy(TICK)
    running = net.withColumn("after", F.sum(COUNT).over(in_time))
    edges = running.where((F.col("after") == 0) | (F.col("after") == F.col(COUNT)))
    closed = edges.withColumn(UNTIL, F.coalesce(F.lead(TICK).over(in_time), F.lit(FOREVER)))
    return closed.where(F.col("after") > 0).select(ITEM, TICK, UNTIL)
