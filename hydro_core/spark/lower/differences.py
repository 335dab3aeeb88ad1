"""What came against what left: the optimizer's own operators on two streams of a tick."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from hydro_core.catalog.parts import ITSELF
from hydro_core.catalog.spec import Aggregate
from hydro_core.plan.kinds import Kind
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.log import consolidated, copies
from hydro_core.spark.frames.relation import COUNT, ITEM, TICK, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates import argument_of
from hydro_core.spark.lower.combine import united
from hydro_core.spark.lower.group import fields_of
from hydro_core.spark.lower.items import convert, make_row, make_tuple, named
from hydro_core.spark.lower.of_parts import made_of
from hydro_core.spark.lower.registry import Step, lowers, per_tick
from hydro_core.spark.lower.state import additions
from hydro_core.types.item import ItemType


@lowers("leaving")
def leaving(step: Step) -> Relation:
    """`a_{t−n}`: the additions, n ticks later, of the ticks at which they leave."""
    added = additions(step.with_(inputs=()) if step.is_tick else step)
    later = added.withColumn(TICK, F.col(TICK) + step.arg("n"))
    there = F.col(TICK).between(step.first, step.last)
    return step.relation(Kind.E, later.where(there))


@lowers("minus")
@per_tick
def minus(step: Step) -> Relation:
    """Each item as often as it is more in the first input than in the second."""
    more = _net(step).where(F.col(COUNT) > 0)
    return step.relation(Kind.E, copies(more).select(ITEM, TICK))


@lowers("changes_between", "counted")
@per_tick
def changes_between(step: Step) -> Relation:
    """`(n, x)` where there are n more copies of x in the first input than in the second."""
    pair = make_tuple(F.col(COUNT), F.col(ITEM)).alias(ITEM)
    return step.relation(Kind.E, _net(step).select(pair, TICK))


def _net(step: Step) -> DataFrame:
    """(item, t, n): how many more copies there are in the first input, of its type, n never 0."""
    item = step.input.item
    parts = [
        r.unordered().frame.select(
            convert(F.col(ITEM), r.item, item).alias(ITEM),
            TICK,
            F.lit(1 if position == 0 else -1).cast("long").alias(COUNT),
        )
        for position, r in enumerate(step.inputs)
    ]
    return consolidated(united(parts))


@lowers("aggregate_result")
def aggregate_result(step: Step) -> Relation:
    """The results that the parts of a row make."""
    item = step.input.item
    keys = [(name, named(F.col(ITEM), item, name)[0]) for name in step.arg("by") or ()]
    types = {f.name: f.type for f in fields_of(step.item)}
    made = [(name, _made(step, a, types[name])) for name, a in step.arg("aggregates")]
    row = make_row([*keys, *made]).alias(ITEM)
    beside = [F.col(name) for name in step.input.beside]
    return step.input.with_(frame=step.input.frame.select(row, *beside), item=step.item)


def _made(step: Step, aggregate: Aggregate, result: ItemType) -> Column:
    parts = [argument_of(argument, step.input.item) for argument in aggregate.arguments]
    if aggregate.function == ITSELF:
        return parts[0][0].cast(spark_type(result))
    return made_of(aggregate.function, parts, result, step.node)
