"""Results that are made of the parts of a row."""

from __future__ import annotations

from pyspark.sql import Column

from hydro_core.catalog.parts import ITSELF
from hydro_core.catalog.spec import Aggregate
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, Relation
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.lower.aggregates.named import argument_of
from hydro_core.spark.lower.aggregates.of_parts import made_of
from hydro_core.spark.lower.items.columns import make_row, named
from hydro_core.spark.lower.items.keyed import fields_of
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.types.item import ItemType


@lowers("aggregate_result")
def aggregate_result(step: Step) -> Relation:
    """The results that the parts of a row make."""
    item = step.input.item
    keys = [(name, named(F.col(ITEM), item, name)[0]) for name in step.arg("by") or ()]
    types = {f.name: f.type for f in fields_of(step.item)}
    made = [(name, _made(step, a, types[name])) for name, a in step.arg("aggregates")]
    row = make_row([*keys, *made]).alias(ITEM)
    other_columns = [F.col(name) for name in step.input.other_columns]
    return step.input.with_(frame=step.input.frame.select(row, *other_columns), item=step.item)


def _made(step: Step, aggregate: Aggregate, result: ItemType) -> Column:
    parts = [argument_of(argument, step.input.item) for argument in aggregate.arguments]
    if aggregate.function == ITSELF:
        return parts[0][0].cast(spark_type(result))
    return made_of(aggregate.function, parts, result, step.node)
