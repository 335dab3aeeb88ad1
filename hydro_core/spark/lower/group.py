"""Groups of items: what becomes of all items of a tick, or of a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame

from hydro_core.catalog.type_rules import accumulated
from hydro_core.functions.fn import Fn
from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, UNTIL, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates import aggregate_column
from hydro_core.spark.lower.algebra import cover, key_struct
from hydro_core.spark.lower.between import between_changes
from hydro_core.spark.lower.emitting import Value, before_all, emitted
from hydro_core.spark.lower.folds import fold_column, reduce_column, wrapped
from hydro_core.spark.lower.grouping import GroupKeys, group_keys
from hydro_core.spark.lower.io import tick_axis
from hydro_core.spark.lower.items import (
    at,
    convert,
    key_fields,
    literal,
    make_row,
    make_tuple,
    named,
    type_at,
)
from hydro_core.spark.lower.itemwise import evaluated
from hydro_core.spark.lower.native import native_fold, native_reduction
from hydro_core.spark.lower.partial import MergedResult, Partial
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.spark.lower.running import is_merged, run_over, running_aggregate, runs
from hydro_core.types.common import type_of
from hydro_core.types.item import Field, ItemType, Row, Tuple

ACC = "acc"


@lowers("unique")
def unique(step: Step) -> Relation:
    """Each distinct item once at each tick, where it stands first."""
    if step.ordered:
        return _first_of_each(step.as_events())
    item = F.col(ITEM).getField("k0").alias(ITEM)
    if step.is_tick and step.input.kind is Kind.E and isinstance(step.item, Row | Tuple):
        tick = F.lit(step.first).cast("long").alias(TICK)
        items = step.input.frame.select(key_struct([F.col(ITEM)]).alias(ITEM)).distinct()
        rows = items.select(ITEM, tick)
        return step.relation(Kind.E, rows.select(item, TICK)).with_(distinct=rows)
    found = cover(step.input, [F.col(ITEM)])
    return step.relation(found.kind, found.frame.select(item, *found.times))


def _first_of_each(step: Step) -> Relation:
    firsts = step.input.frame.groupBy(ITEM, TICK).agg(F.min(ORD).alias(ORD))
    return step.relation(Kind.E, firsts, ordered=True)


@lowers("fold")
def fold(step: Step) -> Relation:
    """One item each tick: `init` if nothing came."""
    if runs(step):
        start = literal(step.arg("init"), step.item)
        running = native_fold(step, start, step.item, wrapped(F.col(ITEM)), step.input.item)
        if is_merged(running, step):
            rows = run_over(step, GroupKeys(), {ITEM: running}, every_tick=True)
            return step.relation(Kind.G, rows.select(ITEM, TICK, UNTIL))
        if step.input.kind is Kind.H:
            rows = emitted(step, GroupKeys(), (F.col(ITEM), step.input.item), step.item, start)
            before = before_all(step, start.cast(spark_type(step.item)))
            versions = rows.select(F.col(ACC).alias(ITEM), TICK, UNTIL)
            return step.relation(Kind.G, versions.unionByName(before))
    return _fold(step.as_events())


def _fold(step: Step) -> Relation:
    def columns(step: Step) -> list[Column]:
        item = step.input.item
        acc = fold_column(step, step.arg("init"), step.item, F.col(ITEM), item)
        return [acc.alias(ITEM)]

    rows = at_every_tick(step, step.input.frame, columns)
    return step.relation(Kind.E, rows.select(ITEM, TICK))


@lowers("reduce")
def reduce_(step: Step) -> Relation:
    """One item, none if nothing came."""
    if runs(step):
        running = native_reduction(step, step.item, wrapped(F.col(ITEM)), step.input.item)
        if is_merged(running, step):
            rows = run_over(step, GroupKeys(), {ITEM: running}, every_tick=False)
            return step.relation(Kind.G, rows.select(ITEM, TICK, UNTIL))
        if step.input.kind is Kind.H:
            rows = emitted(step, GroupKeys(), (F.col(ITEM), step.input.item), step.item, None)
            return step.relation(Kind.G, rows.select(F.col(ACC).alias(ITEM), TICK, UNTIL))
    step = step.as_events()
    acc = reduce_column(step, step.item, F.col(ITEM), step.input.item)
    frame = step.input.frame.groupBy(TICK).agg(acc.alias(ITEM)).select(ITEM, TICK)
    return step.relation(Kind.E, frame)


def at_every_tick(
    step: Step, frame: DataFrame, columns: Callable[[Step], Sequence[Column]]
) -> DataFrame:
    """Aggregates of each tick of the range, those without rows too: (the columns, t)."""
    if step.is_tick:
        # An aggregate over nothing has a row.
        return frame.agg(*columns(step)).withColumn(TICK, F.lit(step.first).cast("long"))
    found = frame.groupBy(TICK).agg(*columns(step))
    rest = tick_axis(step).join(found.select(TICK), TICK, "left_anti")
    nothing = frame.where(F.lit(False)).agg(*columns(step.with_(last=step.first)))
    return found.unionByName(rest.crossJoin(nothing))


@lowers("aggregate")
def aggregate(step: Step) -> Relation:
    """A row for each key, or one of all: the key columns, then the aggregates."""
    return _running_aggregate(step) or _aggregate(between_changes(step, _keys(step).parts))


def _running_aggregate(step: Step) -> Relation | None:
    """Over a history, if all aggregates are merged from partial results."""
    if not runs(step):
        return None
    item, types = step.input.item, {f.name: f.type for f in fields_of(step.item)}
    goes = step.input.kind is Kind.G
    found = [
        running_aggregate(a, item, types[name], step.node, goes=goes)
        for name, a in step.arg("aggregates")
    ]
    results = {f"a{i}": running for i, running in enumerate(found) if is_merged(running, step)}
    if len(results) < len(found):
        return None
    rows = run_over(step, _keys(step), results, every_tick=not step.arg("by"))
    return step.relation(Kind.G, rows.select(aggregated(step).alias(ITEM), TICK, UNTIL))


def _keys(step: Step) -> GroupKeys:
    by = step.arg("by")
    return group_keys(step.input, by) if by else GroupKeys()


def aggregated(step: Step) -> Column:
    """The output's row, of the columns k0, k1, … and a0, a1, …."""
    keyed = [(name, F.col(f"k{i}")) for i, name in enumerate(step.arg("by") or ())]
    made = [(name, F.col(f"a{i}")) for i, (name, _) in enumerate(step.arg("aggregates"))]
    return make_row([*keyed, *made])


def _aggregate(step: Step) -> Relation:
    item, types = step.input.item, {f.name: f.type for f in fields_of(step.item)}
    found = [
        aggregate_column(a, item, types[name], step.node, ordered=step.input.ordered).alias(f"a{i}")
        for i, (name, a) in enumerate(step.arg("aggregates"))
    ]
    times = step.input.times
    if not step.arg("by"):
        rows = at_every_tick(step, step.input.frame, lambda _: found)
    else:
        rows = _keys(step).grouped(step.input.frame, times, found)
    return step.relation(step.input.kind, rows.select(aggregated(step).alias(ITEM), *times))


@lowers("latest")
def latest(step: Step) -> Relation:
    """Of each key the row with the greatest order, ties by the greatest row."""
    grows = runs(step) and step.input.kind is Kind.H
    if not grows:
        step = between_changes(step, _keys(step).parts)
    keys = _keys(step)
    greatest = F.max(rank(step, step.input.item))
    best = F.col("best.x").alias(ITEM)
    if grows:
        running = MergedResult((Partial(greatest, F.max),), lambda parts: parts[0])
        rows = run_over(step, keys, {"best": running}, every_tick=False)
        return step.relation(Kind.G, rows.select(best, TICK, UNTIL))
    times = step.input.times
    rows = keys.grouped(step.input.frame, times, [greatest.alias("best")])
    return step.relation(step.input.kind, rows.select(best, *times))


def rank(step: Step, item: ItemType) -> Column:
    """What the latest row of a key has most of: its order, then the row `x` itself."""
    order = step.arg("order")
    if isinstance(order, Fn):
        places = [evaluated(order, item)]
    else:
        places = [named(F.col(ITEM), item, name)[0] for name in order]
    return F.struct(*(p.alias(f"o{i}") for i, p in enumerate(places)), F.col(ITEM).alias("x"))


@lowers("fold_keyed")
def fold_keyed(step: Step) -> Relation:
    """One item for each key."""
    value, of = keyed_value(step)
    acc_type, init = accumulator_type(step), step.arg("init")
    if runs(step):
        start = literal(init, acc_type)
        running = native_fold(step, start, acc_type, wrapped(value), of)
        if is_merged(running, step):
            return _running_by_key(step, running, acc_type)
        if step.input.kind is Kind.H:
            return _emitted_by_key(step, (value, of), acc_type, start)
    step = between_changes(step, _group_keys(step).parts)
    return _by_key(step, fold_column(step, init, acc_type, value, of), acc_type)


@lowers("reduce_keyed")
def reduce_keyed(step: Step) -> Relation:
    """One item for each key; of rows, the key columns stay the key."""
    value, of = keyed_value(step)
    acc_type = accumulator_type(step)
    if runs(step):
        running = native_reduction(step, acc_type, wrapped(value), of)
        if is_merged(running, step):
            return _running_by_key(step, running, acc_type)
        if step.input.kind is Kind.H:
            return _emitted_by_key(step, (value, of), acc_type, None)
    step = between_changes(step, _group_keys(step).parts)
    return _by_key(step, reduce_column(step, acc_type, value, of), acc_type)


def _running_by_key(step: Step, running: MergedResult, acc_type: ItemType) -> Relation:
    rows = run_over(step, _group_keys(step), {ACC: running}, every_tick=False)
    return _versions_by_key(step, rows, acc_type)


def _emitted_by_key(step: Step, value: Value, acc_type: ItemType, start: Column | None) -> Relation:
    return _versions_by_key(
        step, emitted(step, _group_keys(step), value, acc_type, start), acc_type
    )


def _versions_by_key(step: Step, rows: DataFrame, acc_type: ItemType) -> Relation:
    """The output's items of rows (k0 …, acc, t, until)."""
    made = keyed_item(step, key_fields(step.input.item, step.arg("by")), acc_type)
    return step.relation(Kind.G, rows.select(made.alias(ITEM), TICK, UNTIL))


def _group_keys(step: Step) -> GroupKeys:
    return group_keys(step.input, step.arg("by"))


def keyed_value(step: Step) -> tuple[Column, ItemType]:
    """What a keyed function gets: rows whole, of tuples the value."""
    item = step.input.item
    if step.arg("by"):
        return F.col(ITEM), item
    return at(F.col(ITEM), item, 1), type_at(item, 1)


def accumulator_type(step: Step) -> ItemType:
    """The type of the accumulator."""
    fn, (_, item) = step.arg("f"), keyed_value(step)
    start = item if step.node.args.get("init", item) is item else type_of(step.arg("init"))
    return accumulated(start, fn, item)


def fields_of(item: ItemType) -> tuple[Field, ...]:
    """The columns of a row type."""
    return item.fields if isinstance(item, Row) else ()


def _by_key(step: Step, acc: Column, acc_type: ItemType) -> Relation:
    """Groups by time and key, the output's items made of key and accumulator."""
    fields, times = key_fields(step.input.item, step.arg("by")), step.input.times
    grouped = _group_keys(step).grouped(step.input.frame, times, [acc.alias(ACC)])
    made = keyed_item(step, fields, acc_type)
    return step.relation(step.input.kind, grouped.select(made.alias(ITEM), *times))


def keyed_item(step: Step, keys: Sequence[Field], acc_type: ItemType) -> Column:
    """The output's item of key columns k0, k1, … and an accumulator: `(k, acc)` or a row."""
    by, acc = step.arg("by"), F.col(ACC)
    if not by:
        return make_tuple(convert(F.col("k0"), keys[0].type, type_at(step.item, 0)), acc)
    position = {name: i for i, name in enumerate(by)}
    columns = []
    for field in fields_of(step.item):
        if field.name in position:
            i = position[field.name]
            columns.append((field.name, convert(F.col(f"k{i}"), keys[i].type, field.type)))
        elif isinstance(acc_type, Row):
            columns.append((field.name, convert(*named(acc, acc_type, field.name), field.type)))
        else:
            columns.append((field.name, convert(acc, acc_type, field.type)))
    return make_row(columns)
