"""Folds that go on from the result of the tick before: the optimizer's own operators."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame

from hydro_core.catalog.parts import merging
from hydro_core.plan.kinds import Kind
from hydro_core.spark.columns.dry import F
from hydro_core.spark.lower.combine import added_up
from hydro_core.spark.lower.folds import folded, reduced
from hydro_core.spark.lower.group import (
    ACC,
    accumulator_type,
    aggregate,
    aggregated,
    at_every_tick,
    fields_of,
    keyed_item,
    keyed_value,
    latest,
)
from hydro_core.spark.lower.io import tick_axis
from hydro_core.spark.lower.items import at, convert, key_fields, key_of, literal, named, type_at
from hydro_core.spark.lower.partial import Partial, Running
from hydro_core.spark.lower.registry import Lowered, Step, lowers, per_tick
from hydro_core.spark.lower.running import running_aggregate
from hydro_core.spark.relation import ITEM, ORD, TICK, Relation
from hydro_core.types.item import ItemType, Row

STATE, NEW = "state", "new"


@lowers("fold_from")
@per_tick
def fold_from(step: Step) -> Relation:
    """`f(acc, x)` over the new items, from the state's item; from `init` where there is none."""

    def columns(step: Step) -> list[Column]:
        on = _on_new(step)
        return [_resumed_fold(on, step.item, on.input.item).alias(ITEM)]

    both = _both(step, [], F.col(ITEM), F.col(ITEM))
    rows = at_every_tick(step, both, columns)
    return step.relation(Kind.E, rows.select(ITEM, TICK))


@lowers("reduce_from")
@per_tick
def reduce_from(step: Step) -> Relation:
    """`f` over the state's item and then the new ones."""
    on = _on_new(step)
    both = _both(step, [], convert(F.col(ITEM), step.inputs[0].item, step.item), F.col(ITEM))
    acc = _resumed_reduction(on, step.item, on.input.item)
    return step.relation(Kind.E, both.groupBy(TICK).agg(acc.alias(ITEM)).select(ITEM, TICK))


@lowers("fold_keyed_from")
@per_tick
def fold_keyed_from(step: Step) -> Relation:
    """`fold_from` of each key; keys without new values stay as they are."""
    on = _on_new(step)
    acc_type, (value, of) = accumulator_type(on), keyed_value(on)
    both = _both(step, _keys(step), _accumulator(step, acc_type), value)
    return _by_key(on, both, _resumed_fold(on, acc_type, of), acc_type)


@lowers("reduce_keyed_from")
@per_tick
def reduce_keyed_from(step: Step) -> Relation:
    """`reduce_from` of each key; keys without new values stay as they are."""
    on = _on_new(step)
    acc_type, (value, of) = accumulator_type(on), keyed_value(on)
    both = _both(step, _keys(step), _accumulator(step, acc_type), value)
    return _by_key(on, both, _resumed_reduction(on, acc_type, of), acc_type)


@lowers("latest_from")
@per_tick
def latest_from(step: Step) -> Relation:
    """Of each key the latest of the state's row and the new ones."""
    return one_relation(latest(step.with_(inputs=(added_up(step),))))


@lowers("aggregate_from")
@per_tick
def aggregate_from(step: Step) -> Relation:
    """The state's aggregates and those of the new rows, merged.

    What is merged are partial results, so that only a total must have 64 bits.
    """
    state, new = step.inputs
    types = {field.name: field.type for field in fields_of(step.item)}
    given = step.arg("aggregates")
    merges = merging(given) or ()
    of_new = [running_aggregate(a, new.item, types[name], step.node) for name, a in given]
    of_state = [running_aggregate(a, state.item, types[name], step.node) for name, a in merges]
    runs_on = [running for running in of_new if running is not None]
    stored = [running for running in of_state if running is not None]
    if len(runs_on) < len(given) or len(stored) < len(given):
        return _aggregated_twice(step)
    keys = _keys(step) if step.arg("by") else [[], []]
    parts = [
        _partials(relation, own, of, step)
        for relation, own, of in zip(step.inputs, keys, (stored, runs_on), strict=True)
    ]
    both = parts[0].unionByName(parts[1])
    results = _merged(runs_on)
    rows = both.groupBy(TICK, *(f"k{i}" for i in range(len(keys[0])))).agg(*results)
    return step.relation(Kind.E, rows.select(aggregated(step).alias(ITEM), TICK))


def _partials(
    relation: Relation, keys: list[Column], results: list[Running], step: Step
) -> DataFrame:
    """The partial results p0 … of each tick and key; without keys there are some in each tick."""
    partials = [p.of_rows.alias(f"p{i}") for i, p in enumerate(_flat(results))] or [F.lit(0)]
    found = relation.frame.groupBy(TICK, *keys).agg(*partials)
    if keys:
        return found
    nothing = relation.frame.where(F.lit(False)).agg(*partials)
    return found.unionByName(tick_axis(step).crossJoin(nothing))


def _merged(results: list[Running]) -> list[Column]:
    columns, position = [], 0
    for i, running in enumerate(results):
        merged = [p.merged(F.col(f"p{n}")) for n, p in enumerate(running.partials, start=position)]
        columns.append(running.final(merged).alias(f"a{i}"))
        position += len(running.partials)
    return columns or [F.lit(0)]


def _flat(results: list[Running]) -> list[Partial]:
    return [partial for running in results for partial in running.partials]


def _aggregated_twice(step: Step) -> Relation:
    """Where results are merged and not partial ones."""
    of_new = one_relation(aggregate(step.with_(inputs=step.inputs[1:])))
    both = added_up(step.with_(inputs=(step.inputs[0], of_new), kind=Kind.E))
    merges = step.node.args.with_(aggregates=merging(step.arg("aggregates")))
    return one_relation(aggregate(step.with_(node=step.node.with_(args=merges), inputs=(both,))))


def one_relation(found: Lowered) -> Relation:
    """What an operator with one output gives."""
    if not isinstance(found, Relation):
        raise TypeError("an operator with several outputs")
    return found


def _on_new(step: Step) -> Step:
    """The step as the operator without a state would have it."""
    return step.with_(inputs=step.inputs[1:])


def _keys(step: Step) -> list[list[Column]]:
    """The key columns of the state and of the new items, in one type."""
    by = step.arg("by")
    types = [field.type for field in key_fields(step.inputs[1].item, by)]
    return [
        [
            convert(column, field.type, to).alias(f"k{i}")
            for i, (column, field, to) in enumerate(
                zip(key_of(F.col(ITEM), r.item, by), key_fields(r.item, by), types, strict=True)
            )
        ]
        for r in step.inputs
    ]


def stored_accumulator(
    stored: Column, item: ItemType, by: Sequence[str] | None, acc: ItemType
) -> Column:
    """The accumulator in a stored item of a keyed result."""
    if not by:
        return convert(at(stored, item, 1), type_at(item, 1), acc)
    if isinstance(acc, Row):
        return convert(stored, item, acc)
    return convert(*named(stored, item, "value"), acc)


def _accumulator(step: Step, acc: ItemType) -> Column:
    return stored_accumulator(F.col(ITEM), step.inputs[0].item, step.arg("by"), acc)


def _both(step: Step, keys: list[list[Column]], stored: Column, value: Column) -> DataFrame:
    """(t, k0 …, state, new, ord).

    What is stored and what is new, each wrapped so that a null is an item.
    """
    state, new = step.inputs
    mine, theirs = keys or [[], []]
    old = state.frame.select(TICK, *mine, F.struct(stored.alias("x")).alias(STATE))
    order = [F.col(ORD)] if new.ordered else []
    added = new.frame.select(TICK, *theirs, F.struct(value.alias("x")).alias(NEW), *order)
    return old.unionByName(added, allowMissingColumns=True)


def _state() -> Column:
    return F.first(STATE, ignorenulls=True)


def _resumed_fold(step: Step, acc: ItemType, item: ItemType) -> Column:
    init = F.struct(literal(step.arg("init"), acc).alias("x"))
    start = F.coalesce(_state(), init).getField("x")
    return folded(step, start, acc, F.col(NEW), item)


def _resumed_reduction(step: Step, acc: ItemType, item: ItemType) -> Column:
    """From the state, or without one from the first new item."""
    without = reduced(step, acc, F.col(NEW), item)
    going_on = folded(step, _state().getField("x"), acc, F.col(NEW), item, pairwise=True)
    return F.when(_state().isNull(), without).otherwise(going_on)


def _by_key(step: Step, both: DataFrame, acc: Column, acc_type: ItemType) -> Relation:
    fields = key_fields(step.input.item, step.arg("by"))
    grouped = both.groupBy(TICK, *(f"k{i}" for i in range(len(fields)))).agg(acc.alias(ACC))
    made = keyed_item(step, fields, acc_type)
    return step.relation(Kind.E, grouped.select(made.alias(ITEM), TICK))
