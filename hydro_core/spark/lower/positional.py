"""Positional operators: they impose or observe the order of a tick's items."""

from __future__ import annotations

from pyspark.sql import Column, Window

from hydro_core.plan.tick_plan import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.leaf import together
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, Relation
from hydro_core.spark.lower.folds import scanned
from hydro_core.spark.lower.items import (
    accumulator_type,
    evaluated,
    fn_type,
    key_of,
    keyed_value,
    make_tuple,
    reversed_order,
)
from hydro_core.spark.lower.registry import Step, lowers, per_tick
from hydro_core.spark.lower.relations import positioned

# The order of a tick's items: imposed, observed, counted, and zipped.


@lowers("sort")
def sort(step: Step) -> Relation:
    """The items in ascending order."""
    return in_order(step, F.struct(F.col(ITEM).alias("x")))


@lowers("sort_by_key")
def sort_by_key(step: Step) -> Relation:
    """The items by `f(x)`; ties by the item, ascending in either direction."""
    fn, item = step.arg("f"), step.input.item
    key = evaluated(fn, item)
    if step.arg("descending"):
        key = reversed_order(key, fn_type(fn, item))
    return in_order(step, F.struct(key.alias("k"), F.col(ITEM).alias("x")))


def in_order(step: Step, order: Column) -> Relation:
    """The rows with a column to sort by; nothing is sorted."""
    relation = step.input
    frame = relation.frame.select(ITEM, *relation.times, order.alias(ORD))
    return step.relation(relation.kind, frame, ordered=True)


@lowers("enumerate")
@per_tick
def enumerate_(step: Step) -> Relation:
    """Each item with its position in this tick, from 0."""
    frame = positioned(step.input)
    pair = make_tuple(F.col(ORD), F.col(ITEM)).alias(ITEM)
    return step.relation(Kind.E, frame.select(pair, TICK, ORD), ordered=True)


@lowers("limit")
@per_tick
def limit(step: Step) -> Relation:
    """The first n items of the tick, or of each key."""
    return first_of(step, step.arg("n"), step.arg("by") or ())


@lowers("unique_keyed")
@per_tick
def unique_keyed(step: Step) -> Relation:
    """The first item of each key."""
    keys = key_of(F.col(ITEM), step.input.item, step.arg("by"))
    return first_of(step, 1, keys=keys)


def first_of(
    step: Step, n: int, by: tuple[str, ...] = (), keys: list[Column] | None = None
) -> Relation:
    """The first n items of each tick and key."""
    if keys is None:
        keys = key_of(F.col(ITEM), step.input.item, by) if by else []
    in_time = Window.partitionBy(TICK, *keys).orderBy(ORD)
    numbered = step.input.frame.withColumn("place", F.row_number().over(in_time))
    found = numbered.where(F.col("place") <= n).select(ITEM, TICK, ORD)
    return step.relation(Kind.E, found, ordered=True)


@lowers("scan")
@per_tick
def scan(step: Step) -> Relation:
    """The accumulator after each item."""
    return scanned(step, [], (F.col(ITEM), step.input.item), step.item)


@lowers("scan_keyed")
@per_tick
def scan_keyed(step: Step) -> Relation:
    """The accumulator of its key after each item, in the input's order."""
    item, by = step.input.item, step.arg("by")
    keys = [k.alias(f"k{i}") for i, k in enumerate(key_of(F.col(ITEM), item, by))]
    return scanned(step, keys, keyed_value(step), accumulator_type(step))


@lowers("zip")
@per_tick
def zip_(step: Step) -> Relation:
    """Pairs of items with equal positions, up to the end of the shorter side."""
    return _zipped(step, "inner")


@lowers("zip_longest")
@per_tick
def zip_longest(step: Step) -> Relation:
    """Pairs of items with equal positions, the shorter side padded with null."""
    return _zipped(step, "full")


def _zipped(step: Step, how: str) -> Relation:
    left, right = (
        positioned(r).select(F.col(ITEM).alias(name), TICK, ORD)
        for r, name in zip(step.inputs, ("x", "y"), strict=True)
    )
    pair = make_tuple(F.col("x"), F.col("y")).alias(ITEM)
    frame = together(left.join(right, [TICK, ORD], how)).select(pair, TICK, ORD)
    return step.relation(Kind.E, frame, ordered=True)
