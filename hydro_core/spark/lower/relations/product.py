"""What several operators are made of: products, covers, gaps and signed changes of relations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Window

from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.few_rows import together
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
from hydro_core.spark.lower.as_of import as_of, is_there, pays
from hydro_core.types.item import ItemType

KEY = "key"


@dataclass(frozen=True, slots=True)
class Range:
    """The ticks first … last."""

    first: int
    last: int
    additions: bool = False
    """Of a history only the rows from `first` on are needed."""

    @property
    def is_tick(self) -> bool:
        """Whether it is a single tick."""
        return self.first == self.last


def guarded(condition: Column) -> Column:
    """A condition that Spark evaluates where it stands.

    Spark would move a filter below a join that comes before it, and then call its function on
    items that never reach the filter; on those it may fail. A condition that seems to depend on
    the partition is not moved.
    """
    return F.when(F.spark_partition_id() >= 0, condition).otherwise(F.lit(False))


def renamed(relation: Relation, prefix: str, *keys: Column) -> DataFrame:
    """The frame with prefixed column names, and key columns `…k0`, `…k1`, … beside them."""
    columns = [F.col(name).alias(f"{prefix}{name}") for name in (ITEM, *relation.beside)]
    return relation.frame.select(*columns, *(k.alias(f"{prefix}k{i}") for i, k in enumerate(keys)))


def equal_keys(count: int) -> list[Column]:
    """Null-safe equality of the key columns of two renamed frames."""
    return [F.col(f"l_k{i}").eqNullSafe(F.col(f"r_k{i}")) for i in range(count)]


def overlap(left: Kind, right: Kind, ticks: Range, mine: str = "l_") -> list[Column]:
    """When a row of the left and one of the right are there together.

    Nothing where that is so anyway. `mine` is how the left's columns begin.
    """
    if ticks.is_tick and Kind.G not in (left, right):
        return []
    if left is right is Kind.E:
        return [F.col(f"{mine}t") == F.col("r_t")]
    found = []
    for one, other, kind in ((mine, "r_", right), ("r_", mine, left)):
        # A row has begun when the other one is there, or before the other one ends.
        if kind is Kind.E:
            found.append(F.col(f"{one}t") <= F.col(f"{other}t"))
        elif kind is Kind.G:
            found.append(F.col(f"{one}t") < F.col(f"{other}until"))
    return found


def product(
    left: Relation,
    right: Relation,
    keys: tuple[Sequence[Column], Sequence[Column]],
    make: Callable[[Column, Column], Column],
    item: ItemType,
    ticks: Range,
) -> Relation:
    """The pairs of rows with equal keys, at the ticks at which both are there, in the order of the
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
    keys: tuple[Sequence[Column], Sequence[Column]],
    ticks: Range,
    how: str = "inner",
) -> DataFrame:
    """Spark's join of rows with equal keys that are there together; the columns are prefixed."""
    conditions = equal_keys(len(keys[0])) + overlap(left.kind, right.kind, ticks)
    lefts, rights = renamed(left, "l_", *keys[0]), renamed(right, "r_", *keys[1])
    if conditions:
        return together(lefts.join(rights, all_of(conditions), how))
    return together(lefts.crossJoin(rights))


def narrowly(relation: Relation, narrow: Narrow) -> DataFrame:
    """The rows that matter, as early as the relation can tell."""
    return narrow(relation.frame) if relation.narrowed is None else relation.narrowed(narrow)


def keys_alone(frame: DataFrame, keys: Sequence[Column]) -> DataFrame:
    """The keys of the rows, and nothing else."""
    return frame.select(*(k.alias(f"k{i}") for i, k in enumerate(keys)))


def with_keys_of(others: DataFrame, mine: Sequence[Column]) -> Narrow:
    """Leaves the rows whose keys `mine` are in a row of `others`, which has nothing but keys."""
    return _by_keys_of(others, mine, "left_semi")


def without_keys_of(others: DataFrame, mine: Sequence[Column]) -> Narrow:
    """Leaves the rows whose keys `mine` are in no row of `others`, which has nothing but keys."""
    return _by_keys_of(others, mine, "left_anti")


def _by_keys_of(others: DataFrame, mine: Sequence[Column], how: str) -> Narrow:
    names = [f"of{i}" for i in range(len(mine))]
    keys = others.toDF(*names)
    conditions = [k.eqNullSafe(F.col(n)) for k, n in zip(mine, names, strict=True)]
    return lambda frame: frame.join(keys, all_of(conditions), how)


def meeting(relation: Relation, other: Relation, keys: Sequence[Sequence[Column]]) -> Relation:
    """Without what meets nothing on the other side, where finding that out early saves work."""
    mine, theirs = keys
    if relation.narrowed is None or other.narrowed is not None or not mine:
        return relation
    narrow = with_keys_of(keys_alone(other.frame, theirs), mine)
    return relation.with_(frame=relation.narrowed(narrow))


def all_of(conditions: Sequence[Column]) -> Column:
    """The conjunction."""
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = whole & condition
    return whole


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


def key_struct(keys: Sequence[Column]) -> Column:
    """The parts of a key in one column."""
    return F.struct(*(k.alias(f"k{i}") for i, k in enumerate(keys)))


def _islands(frame: DataFrame) -> DataFrame:
    """(item, t, until) rows as the disjoint intervals in which at least one of them holds."""
    ends = F.array(
        F.struct(F.col(TICK).alias(TICK), F.lit(1).alias(COUNT)),
        F.struct(F.col(UNTIL).alias(TICK), F.lit(-1).alias(COUNT)),
    )
    points = frame.select(ITEM, F.explode(ends).alias("e")).select(ITEM, f"e.{TICK}", f"e.{COUNT}")
    net = points.groupBy(ITEM, TICK).agg(F.sum(COUNT).alias(COUNT)).where(F.col(COUNT) != 0)
    in_time = Window.partitionBy(ITEM).orderBy(TICK)
    running = net.withColumn("after", F.sum(COUNT).over(in_time))
    edges = running.where((F.col("after") == 0) | (F.col("after") == F.col(COUNT)))
    closed = edges.withColumn(UNTIL, F.coalesce(F.lead(TICK).over(in_time), F.lit(FOREVER)))
    return closed.where(F.col("after") > 0).select(ITEM, TICK, UNTIL)


def semi_join(
    left: Relation, right: Relation, keys: tuple[Sequence[Column], Sequence[Column]], ticks: Range
) -> Relation:
    """The left rows, at the ticks at which their key is on the right."""
    if left.kind is Kind.E:
        return _of_events(left, right, keys, ticks, there=True)
    left = meeting(left, right, keys)
    there, parts = _covered(right, keys[1])
    return product(left, there, (keys[0], parts), lambda mine, _: mine, left.item, ticks)


def anti_join(
    left: Relation, right: Relation, keys: tuple[Sequence[Column], Sequence[Column]], ticks: Range
) -> Relation:
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


def _covered(relation: Relation, keys: Sequence[Column]) -> tuple[Relation, list[Column]]:
    """When there is at least one row of each key, and the columns of that key."""
    parts = [F.col(ITEM).getField(f"k{i}") for i in range(len(keys))]
    return cover(relation, keys), parts


def _of_events(
    left: Relation,
    right: Relation,
    keys: tuple[Sequence[Column], Sequence[Column]],
    ticks: Range,
    *,
    there: bool,
) -> Relation:
    """The events whose key is, or is not, on the right."""
    how = "left_semi" if there else "left_anti"
    if ticks.is_tick or right.kind is Kind.E:
        return selected(left, right, keys, ticks, how)
    right, parts = _covered(right, keys[1])
    if right.kind is Kind.H or not pays(ticks.first, ticks.last):
        return selected(left, right, (keys[0], parts), ticks, how)
    found = as_of(left, right, (keys[0], parts))
    met = is_there() if there else ~is_there()
    return left.with_(frame=found.where(met).select(ITEM, *left.beside))


def selected(
    left: Relation,
    right: Relation,
    keys: tuple[Sequence[Column], Sequence[Column]],
    ticks: Range,
    how: str,
    *,
    never_null: bool = False,
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
    gaps = marked.select(*names, F.explode(found).alias("g"))
    return gaps.where(F.col("g.a") < F.col("g.b")).select(
        *names, F.col("g.a").alias("r_t"), F.col("g.b").alias("r_until")
    )


def signed(relation: Relation, past: DataFrame | None, ticks: Range) -> DataFrame:
    """By how much the copies of an item change from tick to tick: (item, t, n), n never 0, an item
    at most once in a tick.
    """
    rows = [relation.new(ticks.first).frame.select(ITEM, TICK, F.lit(1).alias(COUNT))]
    if relation.kind is Kind.E:
        gone = relation.frame.where(F.col(TICK) < ticks.last)
        rows.append(gone.select(ITEM, (F.col(TICK) + 1).alias(TICK), F.lit(-1).alias(COUNT)))
    if relation.kind is Kind.G:
        gone = relation.frame.where(F.col(UNTIL) <= ticks.last)
        rows.append(gone.select(ITEM, F.col(UNTIL).alias(TICK), F.lit(-1).alias(COUNT)))
    if past is not None:
        start = F.lit(ticks.first).cast("long").alias(TICK)
        rows.append(past.select(ITEM, start, F.lit(-1).alias(COUNT)))
    if ticks.is_tick:
        rows = [rows[0], *rows[2:]] if relation.kind is not Kind.H else rows
    union = rows[0]
    for more in rows[1:]:
        union = union.union(more)
    return union.groupBy(ITEM, TICK).agg(F.sum(COUNT).alias(COUNT)).where(F.col(COUNT) != 0)


def positioned(relation: Relation) -> DataFrame:
    """Events (item, t, ord) with the position within the tick, from 0, as `ord`."""
    in_order = Window.partitionBy(TICK).orderBy(ORD)
    position = (F.row_number().over(in_order) - 1).cast("long")
    return relation.frame.select(ITEM, TICK, position.alias(ORD))
