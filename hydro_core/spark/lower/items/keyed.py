"""Items by key: what a function gets of one, and the item that is made of a key and its result."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column

from hydro_core.catalog.classes import ByKey, Running
from hydro_core.catalog.results import made_by_key
from hydro_core.catalog.type_rules import accumulated
from hydro_core.ir.graph import Node
from hydro_core.plan.kinds import Kind
from hydro_core.plan.versions import result_key
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ITEM
from hydro_core.spark.lower.items.columns import (
    at,
    convert,
    key_fields,
    key_of,
    make_row,
    make_tuple,
    named,
    type_at,
)
from hydro_core.spark.lower.items.grouping import GroupKeys, group_keys
from hydro_core.spark.lower.registry import Step
from hydro_core.types.common import type_of
from hydro_core.types.item import Field, ItemType, Row

ACC = "acc"


def by_key_of(node: Node) -> ByKey | None:
    """What an operator makes of the items of a key, be it of all or of what is new."""
    return made_by_key(node.cls)


def rows_go(step: Step) -> bool:
    """Whether rows go again from what results are made of."""
    cls = step.node.cls
    return cls.changes if isinstance(cls, Running) else step.input.kind is Kind.G


def keys_of(step: Step) -> GroupKeys:
    """The key of the input's items; without parts for a result of all items."""
    if result_key(step.node) is None:
        return GroupKeys()
    return group_keys(step.input, step.arg("by"))


def keys_of_results(step: Step) -> GroupKeys:
    """The key of the output's items, in the types of the input's."""
    if result_key(step.node) is None:
        return GroupKeys()
    by = step.arg("by")
    given, made = key_fields(step.input.item, by), key_fields(step.item, by)
    parts = key_of(F.col(ITEM), step.item, by)
    return GroupKeys.of(
        convert(part, own.type, to.type) for part, own, to in zip(parts, made, given, strict=True)
    )


def keyed_value(step: Step) -> tuple[Column, ItemType]:
    """What a function gets of an item: rows whole, of tuples with a key the value."""
    item = step.input.item
    if _is_whole(step) or step.arg("by"):
        return F.col(ITEM), item
    return at(F.col(ITEM), item, 1), type_at(item, 1)


def accumulator_type(step: Step) -> ItemType:
    if _is_whole(step):
        return step.item
    fn, (_, item) = step.arg("f"), keyed_value(step)
    start = item if step.node.args.get("init", item) is item else type_of(step.arg("init"))
    return accumulated(start, fn, item)


def keyed_item(step: Step, acc_type: ItemType) -> Column:
    """The output's item of key columns k0, k1, … and an accumulator: it, `(k, acc)` or a row."""
    acc = F.col(ACC)
    if _is_whole(step):
        return acc
    by = step.arg("by")
    keys = key_fields(step.input.item, by)
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


def accumulator_in(step: Step, item: Column, acc: ItemType) -> Column:
    of = step.item
    if _is_whole(step):
        return item
    if not step.arg("by"):
        return convert(at(item, of, 1), type_at(of, 1), acc)
    if isinstance(acc, Row):
        return convert(item, of, acc)
    return convert(*named(item, of, "value"), acc)


def fields_of(item: ItemType) -> Sequence[Field]:
    """The columns of a row type."""
    return item.fields if isinstance(item, Row) else ()


def _is_whole(step: Step) -> bool:
    """Whether there is one result of all items, which is the accumulator itself."""
    own = by_key_of(step.node)
    return own is not None and not own.keyed
