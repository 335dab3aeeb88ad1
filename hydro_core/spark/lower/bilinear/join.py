"""Several streams into one."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window

from hydro_core.catalog.refusals import MANY_SINGLES
from hydro_core.plan.kinds import Kind
from hydro_core.plan.versions import Key
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.few_rows import together
from hydro_core.spark.frames.relation import COUNT, ITEM, ORD, TICK, UNTIL, Relation
from hydro_core.spark.lower.algebra import (
    Range,
    anti_join,
    guarded,
    key_struct,
    meeting,
    pairs,
    positioned,
    product,
    selected,
    semi_join,
)
from hydro_core.spark.lower.as_of import VERSION, as_of, is_there, pays
from hydro_core.spark.lower.changes import as_changes, unmatched, weighed
from hydro_core.spark.lower.failure import fail
from hydro_core.spark.lower.items import (
    at,
    common,
    convert,
    key_fields,
    key_of,
    make_tuple,
    null,
    type_at,
)
from hydro_core.spark.lower.pairing import key_types, paired
from hydro_core.spark.lower.registry import Step, as_kind, lowers, per_tick
from hydro_core.types.item import ItemType

Keys = tuple[list[Column], list[Column]]


@lowers("union")
def union(step: Step) -> Relation:
    """The rows of all inputs."""
    return added_up(step)


def added_up(step: Step) -> Relation:
    """The bag sum of the inputs, in no order."""
    parts = [
        as_kind(written_as(r.unordered(), step.item), step.kind, step.first) for r in step.inputs
    ]
    whole = step.relation(step.kind, united([p.frame for p in parts]))
    places = {p.lies_by for p in parts}
    return whole.with_(lies_by=places.pop()) if len(places) == 1 else whole


@lowers("chain")
def chain(step: Step) -> Relation:
    """The rows of both inputs, those of the first before those of the second."""
    if not step.ordered:
        return added_up(step)
    parts = []
    for side, relation in enumerate(step.inputs):
        part = as_kind(written_as(relation, step.item), step.kind, step.first)
        frame = part.frame.withColumnRenamed(ORD, f"ord{side}").withColumn("side", F.lit(side))
        parts.append(frame)
    both = parts[0].unionByName(parts[1], allowMissingColumns=True)
    order = F.struct("side", "ord0", "ord1").alias(ORD)
    times = step.input.with_(kind=step.kind).times
    return step.relation(step.kind, both.select(ITEM, *times, order), ordered=True)


def written_as(relation: Relation, item: ItemType) -> Relation:
    """The same items, as items of a type that holds them all."""
    if relation.item == item:
        return relation
    column = convert(F.col(ITEM), relation.item, item).alias(ITEM)
    return relation.with_(frame=relation.frame.select(column, *relation.beside), item=item)


def united(frames: list[DataFrame]) -> DataFrame:
    """The bag sum of frames with the same columns in the same order."""
    return reduce(DataFrame.union, frames)


@lowers("cross")
def cross(step: Step) -> Relation:
    """All pairs that are there together."""
    left, right = step.inputs
    return product(left.unordered(), right, ([], []), make_tuple, step.item, ticks_of(step))


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
    # Where nothing meets the single items Spark would not look at them: this part, which has no
    # rows, makes it look.
    nothing = marked.frame.where(guarded(~fine)).select(
        null(step.item).alias(ITEM), *(F.col(name) for name in _times(marked, found))
    )
    whole = found.frame.unionByName(nothing, allowMissingColumns=True)
    return found.with_(frame=whole)


def _with_single(step: Step, left: Relation, single: Relation) -> Relation:
    """Each item with the single one; for events, which is there at each tick is a small table."""
    if left.kind is Kind.E:
        single = single.events(step.first, step.last)
    return product(left, single, ([], []), make_tuple, step.item, ticks_of(step))


def _times(marked: Relation, found: Relation) -> tuple[str, ...]:
    return tuple(name for name in marked.times if name in found.times)


def _marked(single: Relation) -> Relation:
    """The rows of the single side, with how many are there together, as `at_once`."""
    match single.kind:
        case Kind.E:
            at_once = F.count(F.lit(1)).over(Window.partitionBy(TICK))
        case Kind.H:
            at_once = F.count(F.lit(1)).over(Window.partitionBy())
        case Kind.G:
            # In the order of beginnings, a row that begins before another one ends is a second.
            in_time = Window.partitionBy().orderBy(TICK, UNTIL)
            before = in_time.rowsBetween(Window.unboundedPreceding, -1)
            is_second = F.max(UNTIL).over(before) > F.col(TICK)
            at_once = F.when(is_second, 2).otherwise(1)
    return single.with_(frame=single.frame.withColumn("at_once", at_once))


@lowers("join")
def join(step: Step) -> Relation:
    """The pairs of equal keys, and what `how` keeps of the rows without a partner."""
    step = step.with_(inputs=tuple(r.unordered() for r in step.inputs))
    left, right = step.inputs
    how, keys, ticks = step.arg("how"), join_keys(step), ticks_of(step)
    looked_up = join_with_versions(step, how, keys)
    if looked_up is not None:
        return looked_up
    if how == "semi":
        return semi_join(left, right, keys, ticks).with_(lies_by=_lies_by(step))
    if how == "anti":
        found = anti_join(left, right, keys, ticks).with_(lies_by=_lies_by(step))
        return _telling(step, found, keys)
    if _keeps_events(step, how):
        return _telling_pairs(step, _outer(step, how, keys), keys)
    parts = [product(left, right, keys, lambda x, y: _of_pair(step, x, y), step.item, ticks)]
    if how in ("left", "outer"):
        alone = anti_join(left, right, keys, ticks)
        parts.append(_padded(alone, paired(step, F.col(ITEM), None), step.item))
    if how in ("right", "outer"):
        alone = anti_join(right, left, (keys[1], keys[0]), ticks)
        parts.append(_padded(alone, paired(step, None, F.col(ITEM)), step.item))
    if len(parts) == 1:
        return parts[0].with_(lies_by=_lies_by(step))
    frames = [as_kind(p, step.kind, step.first).frame for p in parts]
    return _telling_pairs(step, step.relation(step.kind, united(frames)), keys)


def _telling(step: Step, found: Relation, keys: Keys) -> Relation:
    """The rows of a history without a match in another, with their changes if they are wanted."""
    if not step.in_changes:
        return found
    left, right = step.inputs
    found = as_kind(found, Kind.G, step.first)
    return found.with_(changes=as_changes(step.item, unmatched(left, right, keys, step.first)))


def _telling_pairs(step: Step, found: Relation, keys: Keys) -> Relation:
    """A padded join of histories, with its changes if they are wanted: pairs never go."""
    if not step.in_changes:
        return found
    left, right = step.inputs
    new = Range(step.first, step.last, additions=True)
    both = product(left, right, keys, lambda x, y: _of_pair(step, x, y), step.item, new)
    frames = [weighed(both.new(step.first).frame, 1)]
    kept = _KEPT[step.arg("how")]
    if 0 in kept:
        alone = paired(step, F.col(ITEM), None).alias(ITEM)
        frames.append(unmatched(left, right, keys, step.first).select(alone, TICK, COUNT))
    if 1 in kept:
        alone = paired(step, None, F.col(ITEM)).alias(ITEM)
        frames.append(unmatched(right, left, keys[::-1], step.first).select(alone, TICK, COUNT))
    found = as_kind(found, Kind.G, step.first)
    return found.with_(changes=as_changes(step.item, united(frames)))


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
    return found.with_(lies_by=_lies_by(step)) if how == "left" else found


def _of_pair(step: Step, x: Column, y: Column) -> Column:
    """The item of a pair of joined rows, beside which are the keys of both."""
    return paired(step, x, y, [F.col(f"l_k{i}") for i in range(len(key_types(step)))])


def _lies_by(step: Step) -> Key | None:
    """The key of the items, if it is what Spark brings the rows together by."""
    on = step.arg("on")
    made = [field.type for field in key_fields(step.item, on)]
    return (on or ()) if made == key_types(step) else None


def join_with_versions(step: Step, how: str, keys: Keys) -> Relation | None:
    """The join of events with what has at most one item of each key at a tick, else None."""
    side = 0 if step.inputs[0].kind is Kind.E else 1
    events, versions = step.inputs[side], step.inputs[1 - side]
    padded = ("left", "right")[side]
    known = events.kind is Kind.E and versions.kind is Kind.G and pays(step.first, step.last)
    if not (known and _is_keyed(step, 1 - side) and how in ("inner", padded)):
        return None
    ours = keys if side == 0 else (keys[1], keys[0])
    found = as_of(events, meeting(versions, events, ours[::-1]), ours)
    version = F.col(VERSION).getField("x")
    both = (F.col(ITEM), version) if side == 0 else (version, F.col(ITEM))
    alone = (F.col(ITEM), None) if side == 0 else (None, F.col(ITEM))
    if how == "inner":
        made = found.where(guarded(is_there())).select(paired(step, *both).alias(ITEM), TICK)
    else:
        item = F.when(is_there(), paired(step, *both)).otherwise(paired(step, *alone))
        made = found.select(item.alias(ITEM), TICK)
    return step.relation(Kind.E, made)


def _is_keyed(step: Step, position: int) -> bool:
    """Whether an input has at most one item of each key of the join at a tick."""
    key, on = step.keys[position], step.arg("on")
    if key is None:
        return False
    return set(key) <= set(on) and bool(key) if on is not None else key == ()


def ticks_of(step: Step) -> Range:
    """The range of the step."""
    return Range(step.first, step.last, step.additions)


def join_keys(step: Step) -> Keys:
    """The keys of both sides, each part in its common type."""
    left, right = step.inputs
    on = step.arg("on")
    types = key_types(step)
    return tuple(  # type: ignore[return-value]
        [
            convert(column, field.type, to)
            for column, field, to in zip(
                key_of(F.col(ITEM), side.item, on), key_fields(side.item, on), types, strict=True
            )
        ]
        for side in (left, right)
    )


def _padded(relation: Relation, item: Column, to: ItemType) -> Relation:
    frame = relation.frame.select(item.alias(ITEM), *relation.beside)
    return relation.with_(frame=frame, item=to)


@lowers("anti_join")
def anti_join_(step: Step) -> Relation:
    """The items of pos whose key is not in neg."""
    pos, neg = step.inputs
    mine = type_at(pos.item, 0)
    to = common(mine, neg.item)
    keys = ([convert(at(F.col(ITEM), pos.item, 0), mine, to)], [convert(F.col(ITEM), neg.item, to)])
    return _telling(step, anti_join(pos, neg, keys, ticks_of(step)), keys)


@lowers("difference")
def difference(step: Step) -> Relation:
    """The items of pos that are not in neg."""
    pos, neg = step.inputs
    to = common(pos.item, neg.item)
    if step.is_tick and pos.distinct is not None and pos.item == to:
        return _without(step, pos.distinct, convert(F.col(ITEM), neg.item, to))
    keys = ([convert(F.col(ITEM), pos.item, to)], [convert(F.col(ITEM), neg.item, to)])
    return _telling(step, anti_join(pos, neg, keys, ticks_of(step)), keys)


def _without(step: Step, distinct: DataFrame, negative: Column) -> Relation:
    """The items, each in a struct of its own, that are not in neg: they stay where they are."""
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
    return found.with_(frame=found.frame.select(item, *found.beside))


@lowers("zip")
@per_tick
def zip_(step: Step) -> Relation:
    """Position by position, as long as both have items."""
    return _zipped(step, "inner")


@lowers("zip_longest")
@per_tick
def zip_longest(step: Step) -> Relation:
    """Position by position, the shorter side padded with null."""
    return _zipped(step, "full")


def _zipped(step: Step, how: str) -> Relation:
    left, right = (
        positioned(r).select(F.col(ITEM).alias(name), TICK, ORD)
        for r, name in zip(step.inputs, ("x", "y"), strict=True)
    )
    pair = make_tuple(F.col("x"), F.col("y")).alias(ITEM)
    frame = together(left.join(right, [TICK, ORD], how)).select(pair, TICK, ORD)
    return step.relation(Kind.E, frame, ordered=True)
