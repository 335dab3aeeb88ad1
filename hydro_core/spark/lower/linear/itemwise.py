"""Item by item: ticks and order ride along."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column

from hydro_core.catalog.refusals import undeclared
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.exploded import exploded
from hydro_core.spark.frames.relation import ITEM, ORD, TICK, Relation
from hydro_core.spark.functions.apply import apply, apply_predicate
from hydro_core.spark.lower.aggregates.named import argument_of, made_of
from hydro_core.spark.lower.failure import fail
from hydro_core.spark.lower.items.columns import (
    at,
    column_types,
    convert,
    evaluated,
    fn_type,
    make_row,
    named,
    own_columns,
    type_at,
)
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.spark.lower.relations.keys import guarded
from hydro_core.types.item import Array, ItemType, Tuple


@lowers("identity", "tee", "next_stratum", "inspect")
def identity(step: Step) -> Relation:
    """The items as they are."""
    return step.input


@lowers("map")
def map_(step: Step) -> Relation:
    """`f(x)` of each item."""
    return mapped(step)


@lowers("filter")
def filter_(step: Step) -> Relation:
    """The items for which `f(x)` is true as Python sees it."""
    item = step.input.item
    return kept(step.input, apply_predicate(step.arg("f"), F.col(ITEM), item, tick=F.col(TICK)))


@lowers("filter_map")
def filter_map(step: Step) -> Relation:
    """`f(x)` of each item, unless it is None."""
    return kept(mapped(step), F.col(ITEM).isNotNull())


@lowers("flat_map")
def flat_map(step: Step) -> Relation:
    """The parts of `f(x)` of each item."""
    fn = step.arg("f")
    return spread(step, evaluated(fn, step.input.item), fn_type(fn, step.input.item))


@lowers("flatten")
def flatten(step: Step) -> Relation:
    """The parts of each item."""
    return spread(step, F.col(ITEM), step.input.item)


@lowers("select")
def select(step: Step) -> Relation:
    """The named columns, then the computed ones."""
    item = step.input.item
    columns = {name: named(F.col(ITEM), item, name)[0] for name in step.arg("columns")}
    return row_of(step, columns | computed(step))


@lowers("with_columns")
def with_columns(step: Step) -> Relation:
    """The row with columns replaced in their place, new ones last."""
    return row_of(step, own_columns(step.input.item) | computed(step))


@lowers("rename")
def rename(step: Step) -> Relation:
    """The row with other names, each column in its place."""
    new = {old: name for name, old in step.arg("renames")}
    own = own_columns(step.input.item)
    found = row_of(step, {new.get(name, name): c for name, c in own.items()})
    partitioned_by = found.partitioned_by
    return found.with_(
        partitioned_by=partitioned_by and tuple(new.get(name, name) for name in partitioned_by)
    )


@lowers("drop")
def drop(step: Step) -> Relation:
    """The row without the named columns."""
    gone = frozenset(step.arg("columns"))
    return row_of(step, {n: c for n, c in own_columns(step.input.item).items() if n not in gone})


@lowers("aggregate_result")
def aggregate_result(step: Step) -> Relation:
    """The results that the parts of a row make."""
    item, types = step.input.item, column_types(step.item)
    keys = {name: named(F.col(ITEM), item, name)[0] for name in step.arg("by") or ()}
    made = {
        name: made_of(
            a.function, [argument_of(p, item) for p in a.arguments], types[name], step.node
        )
        for name, a in step.arg("aggregates")
    }
    return row_of(step, keys | made)


@lowers("partition")
def partition(step: Step) -> Mapping[str, Relation]:
    """Each item at the port that `f` names; an undeclared one fails the tick."""
    fn, ports = step.arg("f"), step.arg("ports")
    found = evaluated(fn, step.input.item)
    port = F.coalesce(found.cast("string"), F.lit(""))
    wrong = fail(step.node, undeclared(ports), F.col(ITEM), fn=fn)
    declared = found.isNotNull() & port.isin(*ports)
    return {
        name: kept(step.input, F.when(declared, port == name).otherwise(wrong.cast("boolean")))
        for name in ports
    }


def mapped(step: Step) -> Relation:
    """`f` of each item, as an item of the output's type."""
    item = step.input.item
    return step.projected(
        apply(step.arg("f"), F.col(ITEM), item, result=step.item, tick=F.col(TICK))
    )


def kept(relation: Relation, condition: Column) -> Relation:
    """The rows for which the condition, which may fail on others, is true."""
    return relation.with_(frame=relation.frame.where(guarded(condition)))


def computed(step: Step) -> dict[str, Column]:
    """The computed columns, of the row that comes in."""
    item = step.input.item
    return {name: evaluated(fn, item) for name, fn in step.arg("computed")}


def row_of(step: Step, columns: Mapping[str, Column]) -> Relation:
    return step.projected(make_row(columns.items()))


def spread(step: Step, whole: Column, item: ItemType) -> Relation:
    """A row for each part of an array or tuple; null has no parts.

    Positions order the parts of one item.
    """
    match item:
        case Array(element):
            parts = F.transform(whole, lambda x: convert(x, element, step.item))
        case Tuple(fields):
            converted = [
                convert(at(whole, item, i), type_at(item, i), step.item) for i in range(len(fields))
            ]
            parts = F.when(whole.isNotNull(), F.array(*converted))
        case _:
            parts = F.array()
    relation, reads = step.input, (TICK, ITEM)
    other_columns = (*relation.times, *relation.carried)
    if not relation.ordered:
        one = F.explode(parts).alias(ITEM)
        frame = exploded(relation.frame, [one, *other_columns], reads=reads)
    else:
        one = F.posexplode(parts).alias("part", ITEM)
        frame = exploded(relation.frame, [one, *other_columns, ORD], reads=reads)
        order = F.struct(F.col(ORD).alias("of"), F.col("part")).alias(ORD)
        frame = frame.select(ITEM, *other_columns, order)
    return relation.with_(frame=frame, item=step.item)
