"""Building blocks of lowerings: unions, keys, matches and products of relations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession, Window

from hydro_core.catalog.forms import Form
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.leaf import together
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
    exploded,
)
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.items import common, convert, key_fields, key_of
from hydro_core.spark.lower.registry import Step, as_kind
from hydro_core.spark.session.session import has_few_rows
from hydro_core.types.item import ItemType

# Rows of relations: none, one for each tick, sums, conversions, positions.


def positioned(relation: Relation) -> DataFrame:
    """Batches (item, t, ord) with the position within the tick, from 0, as `ord`."""
    in_order = Window.partitionBy(TICK).orderBy(ORD)
    position = (F.row_number().over(in_order) - 1).cast("long")
    return relation.frame.select(ITEM, TICK, position.alias(ORD))


def empty(step: Step) -> DataFrame:
    """A frame (item, t) of items of the output's type, without rows."""
    return empty_frame(step.spark, step.item)


def empty_frame(spark: SparkSession, item: ItemType) -> DataFrame:
    """A frame (item, t) of items of this type, without rows."""
    item_column = F.lit(None).cast(spark_type(item)).alias(ITEM)
    # Spark knows that a filter with a false condition has no rows, and prunes it from plans.
    no_rows = spark.range(0).where(F.lit(False))
    return no_rows.select(item_column, F.col("id").alias(TICK))


def tick_axis(step: Step) -> DataFrame:
    """One row (t) for each tick of the range."""
    ticks = step.spark.range(step.first, step.last + 1).select(F.col("id").alias(TICK))
    return together(ticks)


def stretches(cuts: DataFrame, last: int) -> DataFrame:
    """(item, t, until): from each cut (item, t) of an item to the next one, up to the last tick."""
    following = F.lead(TICK).over(Window.partitionBy(ITEM).orderBy(TICK))
    found = cuts.withColumn(UNTIL, F.coalesce(following, F.lit(FOREVER)))
    return found.where(F.col(TICK) <= last)


def written_as(relation: Relation, item: ItemType) -> Relation:
    """The same items, as items of a wider type."""
    if relation.item == item:
        return relation
    return relation.with_items(convert(F.col(ITEM), relation.item, item), item)


def added_up(relations: Sequence[Relation], item: ItemType, kind: Kind, first: int) -> Relation:
    """The bag sum of streams in a range from `first` on, as rows of a kind, in no order."""
    parts = [as_kind(written_as(r.unordered(), item), kind, first) for r in relations]
    places = {p.partitioned_by for p in parts}
    lie_by = places.pop() if len(places) == 1 else None
    return Relation(kind, united([p.frame for p in parts]), item, partitioned_by=lie_by)


def one_after_another(first: Relation, second: Relation) -> Relation:
    """The rows of two ordered streams of one kind; within a tick those of the first precede."""
    frames = (
        part.frame.withColumnRenamed(ORD, f"{ORD}{i}").withColumn("side", F.lit(i))
        for i, part in enumerate((first, second))
    )
    both = reduce(lambda x, y: x.unionByName(y, allowMissingColumns=True), frames)
    order = F.struct("side", f"{ORD}0", f"{ORD}1").alias(ORD)
    return Relation(first.kind, both.select(ITEM, *first.times, order), first.item, ordered=True)


def united(frames: list[DataFrame]) -> DataFrame:
    """The bag sum of frames with the same columns in the same order."""
    return reduce(DataFrame.union, frames)


def gathered(frame: DataFrame) -> DataFrame:
    """The rows of a sum in at most as many partitions as a shuffle has: sums of sums would
    multiply.
    """
    if has_few_rows(frame.sparkSession):
        return frame
    return frame.coalesce(int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1))


# Lookup keys: as columns of both sides, as conditions, and as early filters.


Keys = tuple[Sequence[Column], Sequence[Column]]
"""The parts of a key, as columns of the left and as columns of the right."""


def join_keys(step: Step) -> Keys:
    """The key `on` of the items of both sides, each part in its common type."""
    on, types = step.arg("on"), key_types(step)
    left, right = (
        [
            convert(part, field.type, to)
            for part, field, to in zip(
                key_of(F.col(ITEM), side.item, on), key_fields(side.item, on), types, strict=True
            )
        ]
        for side in step.inputs
    )
    return left, right


def key_types(step: Step) -> list[ItemType]:
    """The types in which the parts of the key are compared."""
    left, right = (key_fields(side.item, step.arg("on")) for side in step.inputs)
    return [common(a.type, b.type) for a, b in zip(left, right, strict=True)]


def key_struct(keys: Sequence[Column]) -> Column:
    """The parts of a key as one column."""
    return F.struct(*(k.alias(f"k{i}") for i, k in enumerate(keys)))


def key_parts(count: int) -> list[Column]:
    """The parts of a key that is the item."""
    return [F.col(ITEM).getField(f"k{i}") for i in range(count)]


def guarded(condition: Column) -> Column:
    """A condition that Spark does not move.

    Spark would move a filter below a join that precedes it, and then call its function on items
    that never reach the filter; on those it may fail. A condition that formally depends on the
    partition is not moved.
    """
    return F.when(F.spark_partition_id() >= 0, condition).otherwise(F.lit(False))


def equal_keys(count: int) -> list[Column]:
    """Null-safe equality of the key columns of two renamed frames."""
    return [F.col(f"l_k{i}").eqNullSafe(F.col(f"r_k{i}")) for i in range(count)]


def all_of(conditions: Sequence[Column]) -> Column:
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = whole & condition
    return whole


def narrowly(relation: Relation, narrow: Narrow) -> DataFrame:
    """The rows that pass the filter, applied as early as the relation permits."""
    return narrow(relation.frame) if relation.narrowed is None else relation.narrowed(narrow)


def keys_alone(frame: DataFrame, keys: Sequence[Column]) -> DataFrame:
    """The keys of the rows, and nothing else."""
    return frame.select(*(k.alias(f"k{i}") for i, k in enumerate(keys)))


FEW_KEYS = 200_000
"""Most rows of new keys that are broadcast to the stored rows, which then need no sort."""


def few_keys(keys: DataFrame, count: int | None) -> DataFrame:
    """The keys, prepared for a lookup among the stored rows; None: they are not counted."""
    return F.broadcast(keys) if count is not None and count <= FEW_KEYS else keys


def with_keys_of(others: DataFrame, mine: Sequence[Column]) -> Narrow:
    """Selects the rows whose keys `mine` are in a row of `others`, which has nothing but keys."""
    return _by_keys_of(others, mine, "left_semi")


def without_keys_of(others: DataFrame, mine: Sequence[Column]) -> Narrow:
    """Selects the rows whose keys `mine` are in no row of `others`, which has nothing but keys."""
    return _by_keys_of(others, mine, "left_anti")


def _by_keys_of(others: DataFrame, mine: Sequence[Column], how: str) -> Narrow:
    names = [f"of{i}" for i in range(len(mine))]
    keys = others.toDF(*names)
    conditions = [k.eqNullSafe(F.col(n)) for k, n in zip(mine, names, strict=True)]
    return lambda frame: frame.join(keys, all_of(conditions), how)


def meeting(relation: Relation, other: Relation, keys: Sequence[Sequence[Column]]) -> Relation:
    """The relation without rows that have no match on the other side, if an early filter saves
    work.
    """
    mine, theirs = keys
    if relation.narrowed is None or other.narrowed is not None or not mine:
        return relation
    narrow = with_keys_of(keys_alone(other.frame, theirs), mine)
    return relation.with_(frame=relation.narrowed(narrow))


# The rows of a relation whose key is, or is not, in another; the intervals in which a key exists.


def semi_join(left: Relation, right: Relation, keys: Keys, ticks: Range) -> Relation:
    """The left rows, at the ticks at which their key is on the right."""
    if left.kind is Kind.E:
        return _of_events(left, right, keys, ticks, there=True)
    left = meeting(left, right, keys)
    there, both = cover(right, keys[1]), (keys[0], key_parts(len(keys[1])))
    return product(left, there, both, lambda mine, _: mine, left.item, ticks)


def anti_join(left: Relation, right: Relation, keys: Keys, ticks: Range) -> Relation:
    """The left rows, at the ticks at which their key is not on the right.

    Batch rows stay such; all others become a changelog stream.
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
    """The batch rows whose key is, or is not, on the right."""
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
    """The left rows of Spark's semi or anti join, partitioned by their own columns.

    Keys that are `never_null` are compared without null safety.
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
    """The intervals without a row of a key, for keys that have rows: (r_k0 …, r_t, r_until),
    before, between and after these.
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
    """The intervals with at least one row of each key: rows whose item is the tuple of the key's
    parts, disjoint in time.
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
    """(item, t, until) rows as the disjoint intervals in which at least one of them is valid."""
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


# Batch rows with the version of their key that is valid at their tick, in one pass over both.
#
# Rows and versions are merged in the order of time, and each row takes the last version that began:
# a sort instead of all pairs of a key.


MANY_TICKS = 365
"""From so many ticks on it pays: a key has at most one version a tick, and a join that tries up to
so many for each row was as fast (100,000 rows, 100 keys with 365 versions each), with few versions
faster, since it sorts nothing.
"""

VERSION = "version"
"""The version of a row: its item as `x`, and its end; null where none has begun."""


def as_of(events: Relation, versions: Relation, keys: Keys) -> DataFrame:
    """The batch rows (item, t[, ord]), each with its `version`.

    At most one version of a key is valid at a tick.
    """
    mine, theirs = (
        [key.alias(f"k{i}") for i, key in enumerate(side)] for side in (keys[0], keys[1])
    )
    names = [f"k{i}" for i in range(len(keys[0]))]
    until = F.col(UNTIL) if versions.kind is Kind.G else F.lit(None).cast("long")
    found = F.struct(F.col(ITEM).alias("x"), until.alias(UNTIL)).alias(VERSION)
    begun = versions.frame.select(*theirs, TICK, found, F.lit(0).alias("side"))
    order = [ORD] if events.ordered else []
    asking = events.frame.select(ITEM, TICK, *order, *mine, F.lit(1).alias("side"))
    both = asking.unionByName(begun, allowMissingColumns=True)
    in_time = Window.partitionBy(*names).orderBy(TICK, "side")
    so_far = in_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    last = F.last(VERSION, ignorenulls=True).over(so_far)
    return (
        both.withColumn(VERSION, last).where(F.col("side") == 1).select(ITEM, TICK, *order, VERSION)
    )


def pays(first: int, last: int) -> bool:
    """True if a range is so long that the sort is better than trying all versions."""
    return last - first + 1 >= MANY_TICKS


def is_there() -> Column:
    """A condition that the version of a row has begun and not ended."""
    until = F.col(VERSION).getField(UNTIL)
    return F.col(VERSION).isNotNull() & (until.isNull() | (F.col(TICK) < until))


# Products of relations: the pairs of rows with equal keys that are valid at the same tick.


@dataclass(frozen=True, slots=True)
class Range:
    """The ticks first … last."""

    first: int
    last: int
    additions: bool = False
    """True if only the rows of a history from `first` on are needed."""

    @property
    def is_tick(self) -> bool:
        return self.first == self.last


def renamed(relation: Relation, prefix: str, *keys: Column) -> DataFrame:
    """The frame with prefixed column names, and with key columns `…k0`, `…k1`, …."""
    columns = [F.col(name).alias(f"{prefix}{name}") for name in (ITEM, *relation.other_columns)]
    return relation.frame.select(*columns, *(k.alias(f"{prefix}k{i}") for i, k in enumerate(keys)))


def overlap(left: Kind, right: Kind, ticks: Range, mine: str = "l_") -> list[Column]:
    """The condition that a row of the left and one of the right are valid at the same tick.

    Empty where that always holds. `mine` is the prefix of the left's columns.
    """
    if ticks.is_tick and Kind.G not in (left, right):
        return []
    if left is right is Kind.E:
        return [F.col(f"{mine}t") == F.col("r_t")]
    found = []
    for one, other, kind in ((mine, "r_", right), ("r_", mine, left)):
        # One row has begun when the other is valid, or before the other ends.
        if kind is Kind.E:
            found.append(F.col(f"{one}t") <= F.col(f"{other}t"))
        elif kind is Kind.G:
            found.append(F.col(f"{one}t") < F.col(f"{other}until"))
    return found


def product(
    left: Relation,
    right: Relation,
    keys: Keys,
    make: Callable[[Column, Column], Column],
    item: ItemType,
    ticks: Range,
) -> Relation:
    """The pairs of rows with equal keys, at the ticks at which both are valid, in the order of the
    left.
    """
    if ticks.additions and ticks.first > 0 and left.kind is right.kind is Kind.H:
        whole = replace(ticks, additions=False)
        arms = [
            product(x, y, keys, make, item, whole)
            for x, y in (
                (left.new(ticks.first), right),
                (left.past(ticks.first), right.new(ticks.first)),
            )
        ]
        return arms[0].with_(frame=arms[0].frame.unionByName(arms[1].frame))
    left, right = meeting(left, right, keys), meeting(right, left, keys[::-1])
    joined = pairs(left, right, keys, ticks)
    both = (left.kind, right.kind)
    tick, until = F.greatest(F.col("l_t"), F.col("r_t")), []
    if Kind.E in both:
        kind = Kind.E
        tick = F.col("l_t") if left.kind is Kind.E else F.col("r_t")
    elif Kind.G in both:
        kind = Kind.G
        ends = [F.col(f"{p}until") for p, k in zip(("l_", "r_"), both, strict=True) if k is Kind.G]
        until = [(ends[0] if len(ends) == 1 else F.least(*ends)).alias(UNTIL)]
        tick = F.greatest(tick, F.lit(ticks.first))
    else:
        kind = Kind.H
    order = [F.col("l_ord").alias(ORD)] if left.ordered else []
    made = make(F.col("l_item"), F.col("r_item")).alias(ITEM)
    return Relation(kind, joined.select(made, tick.alias(TICK), *until, *order), item, left.ordered)


def pairs(
    left: Relation,
    right: Relation,
    keys: Keys,
    ticks: Range,
    how: str = "inner",
) -> DataFrame:
    """Spark's join of rows with equal keys that are valid at the same tick; the columns are
    prefixed.
    """
    conditions = equal_keys(len(keys[0])) + overlap(left.kind, right.kind, ticks)
    lefts, rights = renamed(left, "l_", *keys[0]), renamed(right, "r_", *keys[1])
    if conditions:
        return together(lefts.join(rights, all_of(conditions), how))
    return together(lefts.crossJoin(rights))


def ticks_of(step: Step) -> Range:
    return Range(step.first, step.last, step.form is Form.GROWTH and step.alone)
