"""`join_asof`: rows of both sides stand in one order, and each left row takes the last right one.

Of a key at a tick, the rows of both sides are sorted by their place (`at`, `since`), a right row
before a left one of the same place, equal right ones by the item: so the last right row before a
left one is what `backward` finds, and in the descending order what `forward` finds. A sort in the
place of all pairs.

How the result changes: with x and y the sides after a tick and Δx and Δy their changes,

    Δ(x asof y) = x asof y − x asof (y − Δy) + Δx asof (y − Δy),

of which the first two cancel out but for the keys of Δy. A right row that was there before the tick
and one that is there after it stand in the same order, so one pass finds both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal as DecimalValue
from math import floor
from typing import Any

from pyspark.sql import Column, DataFrame, Window

from hydro_core.catalog.nearest import TIMES, place_type
from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.materialize import held
from hydro_core.spark.frames.relation import COUNT, ITEM, TICK, UNTIL, Relation
from hydro_core.spark.lower.items.columns import (
    convert,
    named,
    row_of_two,
)
from hydro_core.spark.lower.registry import Step, as_kind, lowers
from hydro_core.spark.lower.relations.changes import changes_by_lookups, changes_of
from hydro_core.spark.lower.relations.keys import Keys, join_keys, key_parts, key_struct
from hydro_core.spark.lower.relations.product import product, ticks_of
from hydro_core.spark.lower.relations.rows import gathered, stretches, united
from hydro_core.types.item import DATE, DOUBLE, UNKNOWN, Decimal, ItemType, is_integer

SIDE, AT, RIGHT, KEY = "side", "at", "y", "k"
NOW, BEFORE = "now", "before"
"""Whether a right row is there after the tick, and whether it was before: columns of the rows, and
of what is found.
"""


@lowers("join_asof")
def join_asof(step: Step) -> Relation:
    """Each left row with the right row of its key that is nearest to it."""
    step = step.with_(inputs=tuple(r.unordered() for r in step.inputs))
    return changes_by_lookups(step, lambda: _there(step), lambda: _changes(step))


def _there(step: Step) -> Relation:
    """The rows as long as they are there."""
    if step.is_tick:
        step = step.as_events()
    left, right = step.inputs
    if left.kind is not Kind.E:
        return _in_stretches(step)
    asked = _keyed(left, _keys(step)[0])
    if right.kind is Kind.E:
        rows = _keyed(right, _keys(step)[1])
    else:
        rows = _at_ticks(step, 1, asked.select(KEY, TICK).distinct())
    found = _found(step, asked, rows.withColumn(NOW, F.lit(True)), (NOW,))
    return step.relation(Kind.E, _rows(step, found, NOW, TICK))


def _in_stretches(step: Step) -> Relation:
    """The rows of each key, cut wherever one of either side comes or goes."""
    sides, keys = [as_kind(r, Kind.G, step.first) for r in step.inputs], _keys(step)
    keyed = [_keyed(side, key) for side, key in zip(sides, keys, strict=True)]
    ends = [side.select(KEY, F.col(time).alias(TICK)) for side in keyed for time in (TICK, UNTIL)]
    cuts = united(ends).distinct().withColumnRenamed(KEY, ITEM)
    stretch = Relation(Kind.G, stretches(cuts, step.last), step.item)
    lefts, rights = (_met(step, i, sides[i], stretch) for i in (0, 1))
    found = _found(step, lefts, rights.drop(UNTIL).withColumn(NOW, F.lit(True)), (NOW,))
    return step.relation(Kind.G, _rows(step, found, NOW, TICK, UNTIL))


def _changes(step: Step) -> DataFrame:
    """How the rows change: (item, t, n)."""
    sides = zip(step.inputs, _keys(step), strict=True)
    come, changing = (_keyed(changes_of(side, step.first), key) for side, key in sides)
    changed = held(changing.select(KEY, TICK).distinct())
    asked = united([changed, come.select(KEY, TICK)]).distinct()
    one, none = F.lit(1).cast("long"), F.lit(0).cast("long")
    rights = [
        _at_ticks(step, 1, asked).withColumn(NOW, one).withColumn(BEFORE, one),
        changing.withColumn(NOW, none).withColumn(BEFORE, -F.col(COUNT)),
    ]
    copies = united([rows.select(KEY, TICK, ITEM, NOW, BEFORE) for rows in rights])
    there = copies.groupBy(KEY, TICK, ITEM).agg(
        *((F.sum(flag) > 0).alias(flag) for flag in (NOW, BEFORE))
    )
    # Those that come, or go, find what was there before; the others are found again.
    others = _at_ticks(step, 0, changed).withColumn(COUNT, F.lit(None).cast("long"))
    lefts = united([rows.select(KEY, TICK, ITEM, COUNT) for rows in (others, come)])
    found = held(_found(step, lefts, there, (NOW, BEFORE)))
    differ = found.where(F.col(COUNT).isNull() & ~F.col(NOW).eqNullSafe(F.col(BEFORE)))
    parts = [
        _counted(step, differ, NOW, one),
        _counted(step, differ, BEFORE, -one),
        _counted(step, found.where(F.col(COUNT).isNotNull()), BEFORE, F.col(COUNT)),
    ]
    return held(gathered(united(parts)))


def _counted(step: Step, found: DataFrame, choice: str, n: Column) -> DataFrame:
    rows = _rows(step, found.withColumn(COUNT, n), choice, TICK, COUNT)
    return rows.select(ITEM, TICK, COUNT)


def _keys(step: Step) -> Keys:
    """The key of the rows of both sides, in the types in which they are compared."""
    if not step.arg("on"):
        return [F.lit(0)], [F.lit(0)]
    return join_keys(step)


def _keyed(relation: Relation, key: Sequence[Column]) -> DataFrame:
    """(k, item, t, …): the rows with their key in one column."""
    return relation.frame.select(key_struct(key).alias(KEY), ITEM, *relation.other_columns)


def _at_ticks(step: Step, i: int, ticks: DataFrame) -> DataFrame:
    """(k, item, t): the rows of a side that are there at ticks (k, t) of their key."""
    wanted = Relation(Kind.E, ticks.select(F.col(KEY).alias(ITEM), TICK), step.item)
    return _met(step, i, step.inputs[i], wanted)


def _met(step: Step, i: int, rows: Relation, times: Relation) -> DataFrame:
    """(k, item, t, …): the rows of a side at the times of their key."""
    keys = _keys(step)[i]
    both = product(
        times,
        rows,
        (key_parts(len(keys)), keys),
        lambda key, row: F.struct(key.alias(KEY), row.alias(ITEM)),
        rows.item,
        ticks_of(step),
    )
    inner = [F.col(ITEM).getField(name).alias(name) for name in (KEY, ITEM)]
    return both.frame.select(*inner, *both.times)


def _found(step: Step, lefts: DataFrame, rights: DataFrame, flags: Sequence[str]) -> DataFrame:
    """The left rows (k, item, t, …) with what is found of the right rows (k, item, t, flags).

    What each flag finds, among the right rows of which it is true, stands in the column of its
    name: the right item as `y`; null where there is none.
    """
    places = places_of(step)
    mine = lefts.withColumn(AT, places.place(F.col(ITEM), 0)).withColumn(SIDE, F.lit(1))
    theirs = rights.select(
        KEY, TICK, *flags, places.place(F.col(ITEM), 1).alias(AT), F.col(ITEM).alias(RIGHT)
    )
    theirs = theirs.where(F.col(AT).isNotNull()).withColumn(SIDE, F.lit(0))
    renamed = {flag: f"is_{flag}" for flag in flags}
    both = mine.unionByName(theirs.withColumnsRenamed(renamed), allowMissingColumns=True)
    chosen = {flag: _choice(step, places, F.col(f"is_{flag}")) for flag in flags}
    return both.withColumns(chosen).where(F.col(SIDE) == 1).select(*lefts.columns, *flags)


def _choice(step: Step, places: ComparedPlaces, there: Column) -> Column:
    """What a left row finds among the right rows that are there."""
    candidate = F.when(there, F.struct(F.col(AT), F.col(RIGHT)))
    key = Window.partitionBy(KEY, TICK)
    ways = {
        "backward": key.orderBy(F.col(AT).asc(), SIDE, RIGHT),
        "forward": key.orderBy(F.col(AT).desc(), SIDE, RIGHT),
    }
    first = Window.unboundedPreceding
    last = {
        way: F.last(candidate, ignorenulls=True).over(w.rowsBetween(first, Window.currentRow))
        for way, w in ways.items()
    }
    direction, here = step.arg("direction"), F.col(AT)

    def far(found: Column) -> Column:
        return places.distance(here, found.getField(AT))

    if direction == "nearest":
        back, on = last["backward"], last["forward"]
        nearer = on.isNotNull() & (back.isNull() | (far(on) < far(back)))
        found = F.when(nearer, on).otherwise(back)
    else:
        found = last[direction]
    near = here.isNotNull() & found.isNotNull()
    if step.arg("within") is not None:
        near &= places.is_within(far(found), step.arg("within"))
    return F.when(near, F.struct(found.getField(RIGHT).alias(RIGHT)))


def _rows(step: Step, found: DataFrame, choice: str, *other_columns: str) -> DataFrame:
    """The rows (item, …) of left rows with what they have found."""
    if step.arg("how") == "inner":
        found = found.where(F.col(choice).isNotNull())
    left, right = (side.item for side in step.inputs)
    found_by, on = F.col(choice).getField(RIGHT), step.arg("on") or ()

    def key(position: int, to: ItemType) -> Column:
        return convert(*named(F.col(ITEM), left, on[position]), to)

    pair = row_of_two(step.item, on, key, (F.col(ITEM), left), (found_by, right))
    return found.select(pair.alias(ITEM), *other_columns)


_DAY = 24 * 3600 * 10**6


@dataclass(frozen=True, slots=True)
class ComparedPlaces:
    """The places of the rows of two sides, which are compared as items of one type.

    A time is a long of microseconds.
    """

    columns: tuple[str, str]
    items: tuple[ItemType, ItemType]
    type: ItemType

    def place(self, row: Column, side: int) -> Column:
        """The place of a row of a side, the left one 0."""
        column, of = named(row, self.items[side], self.columns[side])
        if of == DATE:
            return F.unix_date(column).cast("long") * F.lit(_DAY)
        if of in TIMES:
            return F.unix_micros(column.cast("timestamp"))
        found = convert(column, of, self.type)
        # both zeros are one place
        return found + F.lit(0.0) if self.type == DOUBLE else found

    def distance(self, one: Column, other: Column) -> Column:
        """How far two places are from each other; NaN, which is beyond all, from what is none."""
        if self.type == DOUBLE:
            apart = F.when(F.isnan(one) | F.isnan(other), F.lit(float("nan")))
            return F.when(one == other, 0.0).otherwise(apart.otherwise(F.abs(one - other)))
        if is_integer(self.type):
            one, other = (place.cast("decimal(20,0)") for place in (one, other))
        return F.abs(one - other)

    def is_within(self, distance: Column, within: Any) -> Column:
        """Whether a distance is no longer than another, exactly."""
        match self.type:
            case Decimal(_, scale):
                unit = 10**scale
                most = F.lit(DecimalValue(floor(DecimalValue(within) * unit)) / unit)
            case _ if isinstance(within, timedelta):
                most = F.lit(within // timedelta(microseconds=1))
            case _ if is_integer(self.type):
                most = F.lit(DecimalValue(min(floor(within), 10**20)))
            case _:
                most = F.lit(float(within))
        return distance <= most


def places_of(step: Step) -> ComparedPlaces:
    """The places that a join of two sides compares."""
    names = (step.arg("at"), step.arg("since"))
    left, right = (side.item for side in step.inputs)
    types = [
        named(F.lit(None), item, name)[1] for item, name in zip((left, right), names, strict=True)
    ]
    return ComparedPlaces(names, (left, right), place_type(*types) or UNKNOWN)
