"""The part of a stream that one of several shards has: Spark's hash of the fields, or Python's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Column

from hydro_core.functions.evaluate import router
from hydro_core.functions.fn import Fn
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM, Relation
from hydro_core.spark.functions.udf import udf_predicate
from hydro_core.spark.lower.items.columns import at, type_at
from hydro_core.spark.lower.registry import Step, lowers
from hydro_core.spark.lower.relations.keys import guarded
from hydro_core.types.item import (
    BOOLEAN,
    DATE,
    Array,
    FieldPath,
    ItemType,
    Row,
    Tuple,
    Unknown,
    is_integer,
    is_numeric,
)
from hydro_core.types.item import Decimal as DecimalType


@lowers("of_shard")
def of_shard(step: Step) -> Relation:
    """The items that are routed to one shard."""
    shard, shards = step.arg("shard"), step.arg("shards")
    relation = step.input
    if step.arg("f") is not None:
        mine = _by_function(step, shard, shards)
        return relation.with_(frame=relation.frame.where(guarded(mine)))
    item = relation.item
    parts = [c for path in step.arg("by") for c in _hashed(*_field(F.col(ITEM), item, path))]
    routed = F.pmod(F.xxhash64(*parts), F.lit(shards)) if parts else F.lit(0)
    return relation.with_(frame=relation.frame.where(routed == shard))


def _by_function(step: Step, shard: int, shards: int) -> Column:
    """A function that fails decides too, which only Python can tell."""
    fn, item = step.arg("f"), step.input.item
    routed = router((), fn, item, shards)

    def is_mine(x: Any) -> bool:
        return routed(x) == shard

    asked = Fn(f"of_shard {fn.name}", f"function#{step.node.id}", ("x",), is_mine, returns=BOOLEAN)
    return udf_predicate(asked, F.col(ITEM), item)


def _field(column: Column, item: ItemType, path: FieldPath) -> tuple[Column, ItemType]:
    for name in path:
        position = item.names.index(name) if isinstance(item, Row) else int(name)
        column, item = at(column, item, position), type_at(item, position)
    return column, item


def _hashed(column: Column, item: ItemType) -> Iterator[Column]:
    """The columns of which Spark's hash is that of `hydro_core.types.routing`."""
    match item:
        case Tuple() | Row():
            for i in range(len(item.fields)):
                yield from _hashed(at(column, item, i), type_at(item, i))
        case Array(element):
            yield F.transform(column, lambda x: _as_one(x, element))
        case Unknown():
            yield F.lit(None).cast("long")
        case _:
            yield _leaf(column, item)


def _as_one(column: Column, item: ItemType) -> Column:
    parts = list(_hashed(column, item))
    return parts[0] if len(parts) == 1 else F.struct(*parts)


def _leaf(column: Column, item: ItemType) -> Column:
    if item == BOOLEAN or is_integer(item):
        return column.cast("long")
    if item == DATE:
        return F.unix_date(column).cast("long")
    if is_numeric(item) and not isinstance(item, DecimalType):
        return column.cast("double")
    return column
