"""Updates of derived streams: pairs, matches and versions, from the updates of their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame

from hydro_core.catalog.forms import Form
from hydro_core.plan.tick_plan import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.materialize import held
from hydro_core.spark.frames.relation import (
    COUNT,
    FOREVER,
    ITEM,
    TICK,
    UNTIL,
    Narrow,
    Relation,
    coming_and_going,
    consolidated,
    exploded,
    since,
)
from hydro_core.spark.lower.registry import Lowered, Step, as_kind, lower
from hydro_core.spark.lower.relations import (
    Keys,
    Range,
    all_of,
    equal_keys,
    gathered,
    key_parts,
    meeting,
    overlap,
    pairs,
    renamed,
    selected,
    united,
)
from hydro_core.types.item import ItemType

# Updates of streams: operators forward a known changelog along with the rows.


def changes_of(relation: Relation, first: int) -> Relation:
    """The differences of each item's multiplicity from the tick before: (item, t, n).

    An item may have several rows in a tick.
    """
    if relation.changes is not None:
        return relation.changes
    if relation.kind is not Kind.H:
        raise TypeError(f"rows of kind {relation.kind.name} do not tell their changes")
    return as_changes(relation.item, weighed(relation.unordered().new(first).frame, 1))


def weighed(rows: DataFrame, n: int, at: str = TICK) -> DataFrame:
    """The rows as updates (item, t, n), each with the count n, at the tick in the column `at`."""
    return rows.select(ITEM, F.col(at).alias(TICK), F.lit(n).cast("long").alias(COUNT))


def rows_before(rows: Relation, changes: DataFrame, first: int) -> DataFrame:
    """The rows of a changelog stream in the tick before a range: (item, t, until).

    They are the rows of its first tick, without those added there and with those retracted there.

    Args:
        rows: the rows, which are unknown before the range.
        changes: their updates (item, t, n).
        first: the first tick of the range.
    """
    there = weighed(rows.at(first).frame, 1)
    since = changes.where(F.col(TICK) == first).select(ITEM, TICK, (-F.col(COUNT)).alias(COUNT))
    copies = there.unionByName(since).groupBy(ITEM).agg(F.sum(COUNT).cast("int").alias(COUNT))
    each = F.explode(F.array_repeat(F.lit(first - 1).cast("long"), F.col(COUNT))).alias(TICK)
    found = exploded(copies.where(F.col(COUNT) > 0), [ITEM, each], reads=(COUNT,))
    return found.select(ITEM, TICK, F.lit(first).cast("long").alias(UNTIL))


def rows_or_changes(
    step: Step, rows: Callable[[], Relation], changes: Callable[[], DataFrame]
) -> Relation:
    """The wanted representation of a stream that knows its updates: its rows, its updates, or both.

    Args:
        step: the operator that gives the stream.
        rows: computes its rows.
        changes: computes its updates (item, t, n).
    """
    if step.form is not Form.CHANGES:
        return rows()
    made = as_changes(step.item, changes())
    return _telling(step, made if step.alone else rows(), made)


Others = Callable[[Narrow], DataFrame]
"""Further rows without a tick; a filter on their items leaves out those that do not matter."""


def of_versions(
    step: Step, versions: DataFrame, others: Others | None = None, *, again: bool = False
) -> Relation:
    """A stream of rows with known intervals of validity.

    Args:
        step: the operator that gives the stream.
        versions: at least all rows (item, t, until) that are added or retracted in the range.
        others: the rows that are valid in the whole range, if there are any.
        again: True if a row may be replaced by an equal one, so that there is no update.
    """

    def changes() -> DataFrame:
        found = coming_and_going(versions, step.first, step.last)
        return consolidated(found) if again else found

    def rows() -> Relation:
        there = since(versions, step.first)
        return step.relation(Kind.G, there) if others is None else with_others(step, there, others)

    return rows_or_changes(step, rows, changes)


def with_others(step: Step, rows: DataFrame, others: Others) -> Relation:
    """Rows (item, t, until), and the others, which are valid in the whole range."""
    start, until = (F.lit(tick).cast("long") for tick in (step.first, FOREVER))

    def narrowed(narrow: Narrow) -> DataFrame:
        rest = others(narrow).select(ITEM, start.alias(TICK), until.alias(UNTIL))
        return narrow(rows).unionByName(rest)

    return Relation(Kind.G, narrowed(lambda frame: frame), step.item, narrowed=narrowed)


def changes_by_lookups(
    step: Step, rows: Callable[[], Relation], changes: Callable[[], DataFrame]
) -> Relation:
    """Without earlier ticks all rows arrive in the range, so the rows determine the updates.

    Without earlier ticks all rows arrive in the range, so the rows determine the updates.
    """
    if step.first or step.form is not Form.CHANGES:
        return rows_or_changes(step, rows, changes)
    there = as_kind(rows(), Kind.G, 0)
    if not step.alone:
        there = there.with_(frame=held(there.frame))
    came = held(coming_and_going(there.frame.select(ITEM, TICK, UNTIL), 0, step.last))
    return _telling(step, there, as_changes(step.item, came))


def _telling(step: Step, rows: Relation, changes: Relation) -> Relation:
    """The rows with their updates; no rows if the updates are the only representation in use."""
    if step.alone:
        frame = changes.frame.select(ITEM, TICK, F.col(TICK).alias(UNTIL)).where(F.lit(False))
        rows = Relation(Kind.G, frame, step.item)
    return as_kind(rows, Kind.G, step.first).with_(changes=changes.with_(carried=(COUNT,)))


def as_changes(item: ItemType, frame: DataFrame) -> Relation:
    """The rows (item, t, n) as a relation."""
    return Relation(Kind.E, frame, item, carried=(COUNT,))


def handed_on(step: Step) -> Lowered:
    """The output of an operator that maps updates of its inputs to updates as it maps rows to
    rows.
    """
    inputs = tuple(changes_of(relation, step.first) for relation in step.inputs)
    changes = lower(step.with_(inputs=inputs, kind=Kind.E))
    rows = changes if step.alone else lower(step)
    if isinstance(rows, Relation) and isinstance(changes, Relation):
        return _telling(step, rows, changes)
    if isinstance(rows, Relation) or isinstance(changes, Relation):
        raise TypeError("an operator with one output or several, by what it gets")
    return {port: _telling(step, rows[port], one) for port, one in changes.items()}


# Updates of streams that combine two streams: pairs, rows with a match or without one, distinct
# keys.
#
# For streams x and y with changes Δx and Δy, all as of the end of the same tick,
#
#     Δ(x ⋈ y) = Δx ⋈ y + x ⋈ Δy − Δx ⋈ Δy,
#
# where signs multiply: retractions are paired like additions. A row's match is a pair with a key
# that exists on the right at all, so with c the changes of the existence of a key of y (1, −1),
#
#     Δ(x ⋉ y) = Δx ⋉ y + x ⋈ c − Δx ⋈ c,    Δ(x ▷ y) = Δx ▷ y − x ⋈ c + Δx ⋈ c.
#
# Only the rows of x and y with keys of the other side's updates are read. A history is the cheap
# case: its updates are its new rows. The laws are those of Z-sets (Budiu and others, "DBSP", 2023).


MakePair = Callable[[Column, Column], Column]
"""Combines an item of each side into the item of the pair."""


def changed_pairs(
    left: Relation, right: Relation, keys: Keys, make: MakePair, ticks: Range
) -> DataFrame:
    """The updates of the pairs of equal keys: (item, t, n)."""
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
    """The updates of the left rows whose key is, or is not, on the right: (item, t, n)."""
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
    """The updates of the existence of keys: a key is added with its first row and retracted with
    its last; an item is the tuple of the key's parts.
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
    """The pairs where at least one side is a changelog, with the product of their counts: (item, t,
    n).
    """
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
