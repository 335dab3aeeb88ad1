"""`join`: the pairs of equal keys, and what is kept of the rows without a partner.

The key of an item that is made of two is taken from the columns that the rows were joined by: so
Spark sees that what a join has brought together lies by the key of the new item, whatever becomes
of it later.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from hydro_core.plan.kinds import Kind
from hydro_core.plan.versions import Key
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import COUNT, ITEM, TICK, Relation
from hydro_core.spark.lower.items.columns import (
    at,
    convert,
    key_fields,
    key_of,
    make_tuple,
    null,
    row_of_two,
    type_at,
)
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.spark.lower.relations.as_of import VERSION, as_of, is_there, pays
from hydro_core.spark.lower.relations.changes import changes_by_lookups
from hydro_core.spark.lower.relations.changes_of_pairs import changed_matches, changed_pairs
from hydro_core.spark.lower.relations.keys import Keys, guarded, join_keys, key_types, meeting
from hydro_core.spark.lower.relations.matching import anti_join, semi_join
from hydro_core.spark.lower.relations.product import pairs, product, ticks_of
from hydro_core.spark.lower.relations.rows import added_up, united
from hydro_core.types.item import ItemType, Tuple


@lowers("join")
def join(step: Step) -> Relation:
    """The pairs of equal keys, and what `how` keeps of the rows without a partner."""
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
    """The pairs, and the rows without a partner that stay."""
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
    """How the pairs change, and the rows without a partner that stay."""
    left, right = step.inputs
    ticks, kept = ticks_of(step), _KEPT.get(step.arg("how"), ())
    frames = [changed_pairs(left, right, keys, lambda x, y: _of_pair(step, x, y), ticks)]
    for side in kept:
        rows = changed_matches(*_seen_from(side, step, keys), ticks, wanted=False)
        frames.append(rows.select(_padded(step, side).alias(ITEM), TICK, COUNT))
    return united(frames)


def _seen_from(side: int, step: Step, keys: Keys) -> tuple[Relation, Relation, Keys]:
    """The input on a side, the other one, and the keys of both."""
    return step.inputs[side], step.inputs[1 - side], keys if side == 0 else keys[::-1]


def _padded(step: Step, side: int) -> Column:
    """What an item of a side becomes that has no partner."""
    return paired(step, None, F.col(ITEM)) if side else paired(step, F.col(ITEM), None)


def _keeps_events(step: Step, how: str) -> bool:
    """Whether rows without a partner are kept of events alone.

    An event is there at one tick, so whether it has a partner is asked once.
    """
    kept = _KEPT.get(how, ())
    return bool(kept) and (step.is_tick or all(step.inputs[i].kind is Kind.E for i in kept))


_KEPT = {"left": (0,), "right": (1,), "outer": (0, 1)}
"""The inputs of which a join keeps rows without a partner."""


def _outer(step: Step, how: str, keys: Keys) -> Relation:
    """The pairs, and the events without a partner, by one join."""
    left, right = (
        r.events(step.first, step.last) if i in _KEPT[how] else r for i, r in enumerate(step.inputs)
    )
    if how == "left":
        right = meeting(right, left, keys[::-1])
    if how == "right":
        left = meeting(left, right, keys)
    joined = pairs(left, right, keys, ticks_of(step), "full" if how == "outer" else how)
    x, y = F.col(f"l_{ITEM}"), F.col(f"r_{ITEM}")
    # Of a right item that is missing, as of one that is null, all fields are null.
    item = _of_pair(step, x, y)
    if how in ("right", "outer"):
        item = F.when(F.col(f"l_{TICK}").isNull(), paired(step, None, y)).otherwise(item)
    tick = {"left": F.col(f"l_{TICK}"), "right": F.col(f"r_{TICK}")}.get(
        how, F.coalesce(f"l_{TICK}", f"r_{TICK}")
    )
    found = step.relation(Kind.E, joined.select(item.alias(ITEM), tick.alias(TICK)))
    return found.with_(partitioned_by=_partitioned_by(step)) if how == "left" else found


def _of_pair(step: Step, x: Column, y: Column) -> Column:
    """The item of a pair of joined rows, beside which are the keys of both."""
    return paired(step, x, y, [F.col(f"l_k{i}") for i in range(len(key_types(step)))])


def _partitioned_by(step: Step) -> Key | None:
    """The key of the items, if it is what Spark brings the rows together by."""
    on = step.arg("on")
    made = [field.type for field in key_fields(step.item, on)]
    return (on or ()) if made == key_types(step) else None


def join_with_versions(step: Step, how: str, keys: Keys) -> Relation | None:
    """The join of events with what has at most one item of each key at a tick, else None."""
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
    """Whether an input has at most one item of each key of the join at a tick."""
    key, on = step.keys[position], step.arg("on")
    if key is None:
        return False
    return set(key) <= set(on) and bool(key) if on is not None else key == ()


def paired(
    step: Step, x: Column | None, y: Column | None, key: list[Column] | None = None
) -> Column:
    """The item that two items make; None stands for a missing one, whose fields are null.

    `key` has the key of the left item, in the types in which it is compared.
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
