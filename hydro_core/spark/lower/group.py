"""Groups of items: what becomes of all items of a tick, or of a key."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hydro_core.catalog.type_rules import accumulated
from hydro_core.functions.fn import Fn
from hydro_core.plan.kinds import Kind
from hydro_core.spark.lower.aggregates import aggregate_column
from hydro_core.spark.lower.algebra import cover
from hydro_core.spark.lower.folds import fold_column, reduce_column
from hydro_core.spark.lower.io import tick_axis
from hydro_core.spark.lower.items import (
    at,
    convert,
    key_fields,
    key_of,
    make_row,
    make_tuple,
    named,
    type_at,
)
from hydro_core.spark.lower.itemwise import evaluated
from hydro_core.spark.lower.registry import Step, lowers, per_tick
from hydro_core.spark.relation import ITEM, ORD, TICK, Relation
from hydro_core.types.common import type_of
from hydro_core.types.item import Field, ItemType, Row

ACC = "acc"


@lowers("unique")
def unique(step: Step) -> Relation:
    """Each distinct item once at each tick, where it stands first."""
    if step.ordered:
        return _first_of_each(step.as_events())
    found = cover(step.input, [F.col(ITEM)])
    item = F.col(ITEM).getField("k0").alias(ITEM)
    return step.relation(found.kind, found.frame.select(item, *found.times))


def _first_of_each(step: Step) -> Relation:
    firsts = step.input.frame.groupBy(ITEM, TICK).agg(F.min(ORD).alias(ORD))
    return step.relation(Kind.E, firsts, ordered=True)


@lowers("fold")
@per_tick
def fold(step: Step) -> Relation:
    """One item each tick: `init` if nothing came."""

    def columns(step: Step) -> list[Column]:
        item = step.input.item
        acc = fold_column(step, step.arg("init"), step.item, F.col(ITEM), item)
        return [acc.alias(ITEM)]

    rows = at_every_tick(step, step.input.frame, columns)
    return step.relation(Kind.E, rows.select(ITEM, TICK))


@lowers("reduce")
@per_tick
def reduce_(step: Step) -> Relation:
    """One item, none if nothing came."""
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
@per_tick
def aggregate(step: Step) -> Relation:
    """A row for each key, or one of all: the key columns, then the aggregates."""
    item, by = step.input.item, step.arg("by") or ()
    fields = {f.name: f.type for f in fields_of(step.item)}
    found = [
        aggregate_column(a, item, fields[name], ordered=step.input.ordered).alias(f"a{i}")
        for i, (name, a) in enumerate(step.arg("aggregates"))
    ]
    made = [(name, F.col(f"a{i}")) for i, (name, _) in enumerate(step.arg("aggregates"))]
    if not by:
        rows = at_every_tick(step, step.input.frame, lambda _: found)
        return step.relation(Kind.E, rows.select(make_row(made).alias(ITEM), TICK))
    keys = [k.alias(f"k{i}") for i, k in enumerate(key_of(F.col(ITEM), item, by))]
    grouped = step.input.frame.groupBy(TICK, *keys)
    rows = grouped.agg(*found) if found else grouped.agg(F.lit(0))
    keyed = [(name, F.col(f"k{i}")) for i, name in enumerate(by)]
    return step.relation(Kind.E, rows.select(make_row([*keyed, *made]).alias(ITEM), TICK))


@lowers("latest")
@per_tick
def latest(step: Step) -> Relation:
    """Of each key the row with the greatest order, ties by the greatest row."""
    item, order = step.input.item, step.arg("order")
    if isinstance(order, Fn):
        places = [evaluated(order, item)]
    else:
        places = [named(F.col(ITEM), item, name)[0] for name in order]
    rank = F.struct(*(p.alias(f"o{i}") for i, p in enumerate(places)), F.col(ITEM).alias("x"))
    keys = [k.alias(f"k{i}") for i, k in enumerate(key_of(F.col(ITEM), item, step.arg("by")))]
    rows = step.input.frame.groupBy(TICK, *keys).agg(F.max(rank).alias("best"))
    return step.relation(Kind.E, rows.select(F.col("best.x").alias(ITEM), TICK))


@lowers("fold_keyed")
@per_tick
def fold_keyed(step: Step) -> Relation:
    """One item for each key."""
    value, of = keyed_value(step)
    acc_type = accumulator_type(step)
    acc = fold_column(step, step.arg("init"), acc_type, value, of)
    return _by_key(step, acc, acc_type)


@lowers("reduce_keyed")
@per_tick
def reduce_keyed(step: Step) -> Relation:
    """One item for each key; of rows, the key columns stay the key."""
    value, of = keyed_value(step)
    acc_type = accumulator_type(step)
    return _by_key(step, reduce_column(step, acc_type, value, of), acc_type)


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
    """Groups by tick and key, the output's items made of key and accumulator."""
    item, by = step.input.item, step.arg("by")
    fields = key_fields(item, by)
    keys = [k.alias(f"k{i}") for i, k in enumerate(key_of(F.col(ITEM), item, by))]
    grouped = step.input.frame.groupBy(TICK, *keys).agg(acc.alias(ACC))
    made = keyed_item(step, fields, acc_type)
    return step.relation(Kind.E, grouped.select(made.alias(ITEM), TICK))


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
