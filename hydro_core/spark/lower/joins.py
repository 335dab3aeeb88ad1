"""Operators of two inputs: `cross`, `join`, `anti_join`, `difference` and `join_asof`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal as DecimalValue
from math import floor
from typing import Any

from pyspark.sql import Column, DataFrame, Window

from hydro_core.catalog.combine import TIMES, place_type
from hydro_core.catalog.spec import MANY_SINGLES
from hydro_core.plan.tick_plan import Key, Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.materialize import held
from hydro_core.spark.frames.relation import COUNT, ITEM, TICK, UNTIL, Relation
from hydro_core.spark.lower.changelogs import (
    changed_matches,
    changed_pairs,
    changes_by_lookups,
    changes_of,
)
from hydro_core.spark.lower.items import (
    at,
    common,
    convert,
    key_fields,
    key_of,
    make_tuple,
    named,
    null,
    row_of_two,
    type_at,
)
from hydro_core.spark.lower.registry import Step, as_kind, fail, lowers
from hydro_core.spark.lower.relations import (
    VERSION,
    Keys,
    added_up,
    anti_join,
    as_of,
    gathered,
    guarded,
    is_there,
    join_keys,
    key_parts,
    key_struct,
    key_types,
    meeting,
    pairs,
    pays,
    product,
    selected,
    semi_join,
    stretches,
    ticks_of,
    united,
)
from hydro_core.types.item import DATE, DOUBLE, UNKNOWN, Decimal, ItemType, Tuple, is_integer

# All pairs of two streams' items.


@lowers("cross")
def cross(step: Step) -> Relation:
    """All pairs of items that are valid at the same tick."""
    left, right = (relation.unordered() for relation in step.inputs)
    ticks = ticks_of(step)
    return changes_by_lookups(
        step,
        lambda: product(left, right, ([], []), make_tuple, step.item, ticks),
        lambda: changed_pairs(left, right, ([], []), make_tuple, ticks),
    )


@lowers("cross_singleton")
def cross_singleton(step: Step) -> Relation:
    """Each item with the single item of the other side; a second single item fails the tick."""
    left, single = step.inputs
    single = single.unordered()
    if step.singles[1]:
        return _with_single(step, left, single)
    marked = _marked(single.events(step.first, step.last) if step.is_tick else single)
    wrong = fail(step.node, MANY_SINGLES)
    fine = F.when(F.col("at_once") > 1, wrong.cast("boolean")).otherwise(F.lit(True))
    checked = marked.with_(frame=marked.frame.where(guarded(fine)).drop("at_once"))
    found = _with_single(step, left, checked)
    # Without an item on the left, Spark would skip the check: a part without rows forces it to
    # evaluate it.
    empty = marked.frame.where(guarded(~fine)).select(
        null(step.item).alias(ITEM), *(F.col(name) for name in _times(marked, found))
    )
    whole = found.frame.unionByName(empty, allowMissingColumns=True)
    return found.with_(frame=whole)


def _with_single(step: Step, left: Relation, single: Relation) -> Relation:
    """Each item with the single item; for batches, the single item of each tick is a small
    table.
    """
    if left.kind is Kind.E:
        single = single.events(step.first, step.last)
    return product(left, single, ([], []), make_tuple, step.item, ticks_of(step))


def _times(marked: Relation, found: Relation) -> tuple[str, ...]:
    return tuple(name for name in marked.times if name in found.times)


def _marked(single: Relation) -> Relation:
    """The rows of the single side, with the number of rows that are valid together, as
    `at_once`.
    """
    match single.kind:
        case Kind.E:
            at_once = F.count(F.lit(1)).over(Window.partitionBy(TICK))
        case Kind.H:
            at_once = F.count(F.lit(1)).over(Window.partitionBy())
        case Kind.G:
            # In the order of starts, a row that starts before another one ends is a second one.
            in_time = Window.partitionBy().orderBy(TICK, UNTIL)
            before = in_time.rowsBetween(Window.unboundedPreceding, -1)
            is_second = F.max(UNTIL).over(before) > F.col(TICK)
            at_once = F.when(is_second, 2).otherwise(1)
    return single.with_(frame=single.frame.withColumn("at_once", at_once))


# `join`: the pairs of equal keys, and the rows without a partner that `how` retains.
#
# The key of a pair's item is read from the columns that the rows were joined by: so Spark sees that
# the result of a join is partitioned by the key of the new item, in all later operators.


@lowers("join")
def join(step: Step) -> Relation:
    """The pairs of equal keys, and the rows without a partner that `how` retains."""
    step = step.with_(inputs=tuple(r.unordered() for r in step.inputs))
    left, right = step.inputs
    how, keys, ticks = step.arg("how"), join_keys(step), ticks_of(step)
    looked_up = join_with_versions(step, how, keys)
    if looked_up is not None:
        return looked_up
    if how in ("semi", "anti"):
        partitioned_by, wanted = _partitioned_by(step), how == "semi"
        matched = semi_join if wanted else anti_join
        return changes_by_lookups(
            step,
            lambda: matched(left, right, keys, ticks).with_(partitioned_by=partitioned_by),
            lambda: changed_matches(left, right, keys, ticks, wanted=wanted),
        )
    return changes_by_lookups(
        step, lambda: _pairs(step, keys), lambda: _changes_of_pairs(step, keys)
    )


def _pairs(step: Step, keys: Keys) -> Relation:
    """The pairs, and the rows without a partner that the join retains."""
    left, right = step.inputs
    how, ticks = step.arg("how"), ticks_of(step)
    if _keeps_events(step, how):
        return _outer(step, how, keys)
    parts = [product(left, right, keys, lambda x, y: _of_pair(step, x, y), step.item, ticks)]
    for side in _KEPT.get(how, ()):
        alone = anti_join(*_seen_from(side, step, keys), ticks)
        parts.append(alone.with_items(_padded(step, side), step.item))
    if len(parts) == 1:
        return parts[0].with_(partitioned_by=_partitioned_by(step))
    return added_up(parts, step.item, step.kind, step.first)


def _changes_of_pairs(step: Step, keys: Keys) -> DataFrame:
    """The updates of the pairs, and of the rows without a partner that the join retains."""
    left, right = step.inputs
    ticks, kept = ticks_of(step), _KEPT.get(step.arg("how"), ())
    frames = [changed_pairs(left, right, keys, lambda x, y: _of_pair(step, x, y), ticks)]
    for side in kept:
        rows = changed_matches(*_seen_from(side, step, keys), ticks, wanted=False)
        frames.append(rows.select(_padded(step, side).alias(ITEM), TICK, COUNT))
    return united(frames)


def _seen_from(side: int, step: Step, keys: Keys) -> tuple[Relation, Relation, Keys]:
    """The input on a side, the other input, and the keys of both."""
    return step.inputs[side], step.inputs[1 - side], keys if side == 0 else keys[::-1]


def _padded(step: Step, side: int) -> Column:
    """The item of a row of a side without a partner."""
    return paired(step, None, F.col(ITEM)) if side else paired(step, F.col(ITEM), None)


def _keeps_events(step: Step, how: str) -> bool:
    """True if the join retains rows without a partner of batch streams only.

    A row of a batch is valid at one tick, so it has a partner or not once for all.
    """
    kept = _KEPT.get(how, ())
    return bool(kept) and (step.is_tick or all(step.inputs[i].kind is Kind.E for i in kept))


_KEPT = {"left": (0,), "right": (1,), "outer": (0, 1)}
"""The inputs whose rows without a partner a join retains."""


def _outer(step: Step, how: str, keys: Keys) -> Relation:
    """The pairs, and the batch rows without a partner, by one join."""
    left, right = (
        r.events(step.first, step.last) if i in _KEPT[how] else r for i, r in enumerate(step.inputs)
    )
    if how == "left":
        right = meeting(right, left, keys[::-1])
    if how == "right":
        left = meeting(left, right, keys)
    joined = pairs(left, right, keys, ticks_of(step), "full" if how == "outer" else how)
    x, y = F.col(f"l_{ITEM}"), F.col(f"r_{ITEM}")
    # A missing right item, like a null one, has null fields.
    item = _of_pair(step, x, y)
    if how in ("right", "outer"):
        item = F.when(F.col(f"l_{TICK}").isNull(), paired(step, None, y)).otherwise(item)
    tick = {"left": F.col(f"l_{TICK}"), "right": F.col(f"r_{TICK}")}.get(
        how, F.coalesce(f"l_{TICK}", f"r_{TICK}")
    )
    found = step.relation(Kind.E, joined.select(item.alias(ITEM), tick.alias(TICK)))
    return found.with_(partitioned_by=_partitioned_by(step)) if how == "left" else found


def _of_pair(step: Step, x: Column, y: Column) -> Column:
    """The item of a pair of joined rows, whose key columns are in the same frame."""
    return paired(step, x, y, [F.col(f"l_k{i}") for i in range(len(key_types(step)))])


def _partitioned_by(step: Step) -> Key | None:
    """The key of the items, if Spark partitions the rows by it."""
    on = step.arg("on")
    made = [field.type for field in key_fields(step.item, on)]
    return (on or ()) if made == key_types(step) else None


def join_with_versions(step: Step, how: str, keys: Keys) -> Relation | None:
    """The join of batch rows with at most one version of each key at a tick, else None."""
    side = 0 if step.inputs[0].kind is Kind.E else 1
    events, versions, ours = _seen_from(side, step, keys)
    padded = ("left", "right")[side]
    known = events.kind is Kind.E and versions.kind is Kind.G and pays(step.first, step.last)
    if not (known and _is_keyed(step, 1 - side) and how in ("inner", padded)):
        return None
    found = as_of(events, meeting(versions, events, ours[::-1]), ours)
    version = F.col(VERSION).getField("x")
    both = (F.col(ITEM), version) if side == 0 else (version, F.col(ITEM))
    if how == "inner":
        made = found.where(guarded(is_there())).select(paired(step, *both).alias(ITEM), TICK)
    else:
        item = F.when(is_there(), paired(step, *both)).otherwise(_padded(step, side))
        made = found.select(item.alias(ITEM), TICK)
    return step.relation(Kind.E, made)


def _is_keyed(step: Step, position: int) -> bool:
    """True if an input has at most one item of each key of the join at a tick."""
    key, on = step.keys[position], step.arg("on")
    if key is None:
        return False
    return set(key) <= set(on) and bool(key) if on is not None else key == ()


def paired(
    step: Step, x: Column | None, y: Column | None, key: list[Column] | None = None
) -> Column:
    """The item of a pair; None stands for a missing item, whose fields are null.

    `key` is the key of the left item, in the types in which it is compared.
    """
    on, types = step.arg("on"), key_types(step)
    left, right = (side.item for side in step.inputs)

    def part(position: int, to: ItemType) -> Column:
        if key is not None and types[position] == to:
            return key[position]
        own, of = (y, right) if x is None else (x, left)
        assert own is not None
        return convert(key_of(own, of, on)[position], key_fields(of, on)[position].type, to)

    if on is not None:
        return row_of_two(step.item, on, part, (x, left), (y, right))
    if not isinstance(step.item, Tuple):
        return null(step.item)
    first, values = step.item.fields
    mine = _value(x, left, type_at(values, 0))
    return make_tuple(part(0, first), make_tuple(mine, _value(y, right, type_at(values, 1))))


def _value(column: Column | None, item: ItemType, to: ItemType) -> Column:
    return null(to) if column is None else convert(at(column, item, 1), type_at(item, 1), to)


# Antijoin: the items whose key is in no item of the other side.


@lowers("anti_join")
def anti_join_(step: Step) -> Relation:
    """The items of pos whose key is not in neg."""
    pos, neg = step.inputs
    mine = type_at(pos.item, 0)
    to = common(mine, neg.item)
    keys = ([convert(at(F.col(ITEM), pos.item, 0), mine, to)], [convert(F.col(ITEM), neg.item, to)])
    return _without_match(step, keys)


@lowers("difference")
def difference(step: Step) -> Relation:
    """The items of pos that are not in neg."""
    pos, neg = step.inputs
    to = common(pos.item, neg.item)
    if step.is_tick and pos.distinct is not None and pos.item == to:
        return _without(step, pos.distinct, convert(F.col(ITEM), neg.item, to))
    keys = ([convert(F.col(ITEM), pos.item, to)], [convert(F.col(ITEM), neg.item, to)])
    return _without_match(step, keys)


def _without_match(step: Step, keys: Keys) -> Relation:
    (pos, neg), ticks = step.inputs, ticks_of(step)
    return changes_by_lookups(
        step,
        lambda: anti_join(pos, neg, keys, ticks),
        lambda: changed_matches(pos, neg, keys, ticks, wanted=False),
    )


def _without(step: Step, distinct: DataFrame, negative: Column) -> Relation:
    """The items, each in a struct of its own, that are not in neg; they are not repartitioned."""
    pos, neg = step.inputs
    keys = ([F.col(ITEM)], [key_struct([negative])])
    found = selected(
        pos.with_(frame=distinct),
        neg.events(step.first, step.last),
        keys,
        ticks_of(step),
        "left_anti",
        never_null=True,
    )
    item = F.col(ITEM).getField("k0").alias(ITEM)
    return found.with_(frame=found.frame.select(item, *found.other_columns))


# `join_asof`: rows of both sides are merged in one order, and each left row takes the last right
# one.
#
# The rows of both sides of a key at a tick are sorted by their place (`at`, `since`), a right row
# before a left one of the same place, equal right ones by the item: so the last right row before a
# left one is the result of `backward`, and in descending order of `forward`. A sort replaces the
# product of all pairs.
#
# The updates of the result: with x and y the sides after a tick and Δx and Δy their updates,
#
#     Δ(x asof y) = x asof y − x asof (y − Δy) + Δx asof (y − Δy),
#
# where the first two terms cancel except for the keys of Δy. A right row that was valid before the
# tick and one that is valid after it are in the same order, so one pass finds both.


SIDE, AT, RIGHT, KEY = "side", "at", "y", "k"
NOW, BEFORE = "now", "before"
"""Flags of a right row, valid after the tick and valid before it: columns of the rows, and of the
matches.
"""


@lowers("join_asof")
def join_asof(step: Step) -> Relation:
    """Each left row with the right row of its key that is nearest to it."""
    step = step.with_(inputs=tuple(r.unordered() for r in step.inputs))
    return changes_by_lookups(step, lambda: _there(step), lambda: _changes(step))


def _there(step: Step) -> Relation:
    """The rows with their intervals of validity."""
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
    """The rows of each key, split wherever a row of either side starts or ends."""
    sides, keys = [as_kind(r, Kind.G, step.first) for r in step.inputs], _keys(step)
    keyed = [_keyed(side, key) for side, key in zip(sides, keys, strict=True)]
    ends = [side.select(KEY, F.col(time).alias(TICK)) for side in keyed for time in (TICK, UNTIL)]
    cuts = united(ends).distinct().withColumnRenamed(KEY, ITEM)
    stretch = Relation(Kind.G, stretches(cuts, step.last), step.item)
    lefts, rights = (_met(step, i, sides[i], stretch) for i in (0, 1))
    found = _found(step, lefts, rights.drop(UNTIL).withColumn(NOW, F.lit(True)), (NOW,))
    return step.relation(Kind.G, _rows(step, found, NOW, TICK, UNTIL))


def _changes(step: Step) -> DataFrame:
    """The updates of the rows: (item, t, n)."""
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
    # Added and retracted left rows match the right rows before the tick; all other left rows of the
    # changed keys match those before and after it.
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
    """(k, item, t): the rows of a side that are valid at ticks (k, t) of their key."""
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
    """The left rows (k, item, t, …) with their matches among the right rows (k, item, t, flags).

    The match among the right rows whose flag is true is in the column with the flag's name: the
    right item as `y`; null if there is none.
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
    """The match of a left row among the right rows that satisfy `there`."""
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
    """The rows (item, …) of left rows with their matches."""
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
    """The places of the rows of two sides, compared as values of one type.

    A time is a long of microseconds.
    """

    columns: tuple[str, str]
    items: tuple[ItemType, ItemType]
    type: ItemType

    def place(self, row: Column, side: int) -> Column:
        """The place of a row of a side; the left side is 0."""
        column, of = named(row, self.items[side], self.columns[side])
        if of == DATE:
            return F.unix_date(column).cast("long") * F.lit(_DAY)
        if of in TIMES:
            return F.unix_micros(column.cast("timestamp"))
        found = convert(column, of, self.type)
        # Both zeros are one place.
        return found + F.lit(0.0) if self.type == DOUBLE else found

    def distance(self, one: Column, other: Column) -> Column:
        """The distance of two places; NaN, which is greater than all, for a NaN."""
        if self.type == DOUBLE:
            apart = F.when(F.isnan(one) | F.isnan(other), F.lit(float("nan")))
            return F.when(one == other, 0.0).otherwise(apart.otherwise(F.abs(one - other)))
        if is_integer(self.type):
            one, other = (place.cast("decimal(20,0)") for place in (one, other))
        return F.abs(one - other)

    def is_within(self, distance: Column, within: Any) -> Column:
        """True if a distance is at most `within`, exactly."""
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
