"""Folds with functions of the program, as aggregate columns.

A fold that Spark has an aggregate for is that aggregate. Any other one gathers its items into an
array, in their order where the function depends on it, and folds the array: as columns where the
function compiles, else in Python, an array at a time.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column

from hydro_core.plan.kinds import is_in_order
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.relation import ORD
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.columns import NotCompilable, to_column
from hydro_core.spark.functions.udf import folded_in_python
from hydro_core.spark.lower.aggregates.native import native_fold, native_reduction
from hydro_core.spark.lower.items.columns import convert, literal
from hydro_core.spark.lower.registry import Step
from hydro_core.types.item import ItemType


def fold_column(step: Step, init: Any, acc: ItemType, value: Column, item: ItemType) -> Column:
    """The fold of a group's values, from `init`."""
    start, each = literal(init, acc).cast(spark_type(acc)), wrapped(value)
    found = native_fold(step, start, acc, each, item)
    if found is not None:
        return found.of_rows()
    return _over_array(step, start, acc, _gathered(step, each), item, pairwise=False)


def reduce_column(step: Step, acc: ItemType, value: Column, item: ItemType) -> Column:
    """The reduction of a group's values; a group has at least one."""
    each = wrapped(value)
    found = native_reduction(step, acc, each, item)
    if found is not None:
        return found.of_rows()
    values = _gathered(step, each)
    first = convert(F.get(values, F.lit(0)), item, acc).cast(spark_type(acc))
    rest = F.slice(values, F.lit(2), F.greatest(F.size(values) - 1, F.lit(0)))
    return _over_array(step, first, acc, rest, item, pairwise=True)


def wrapped(value: Column) -> Column:
    """The value in a struct of its own, which is null for no value only."""
    return F.struct(value.alias("x"))


def _gathered(step: Step, each: Column) -> Column:
    """A group's values as an array, nulls among them; in order where the function asks for it."""
    if not is_in_order(step.node, step.input.ordered):
        return F.transform(F.collect_list(each), lambda pair: pair.getField("x"))
    placed = F.struct(F.col(ORD).alias("o"), each.alias("w"))
    pairs = F.sort_array(F.collect_list(F.when(each.isNotNull(), placed)))
    return F.transform(pairs, lambda pair: pair.getField("w").getField("x"))


def _over_array(
    step: Step, start: Column, acc: ItemType, values: Column, item: ItemType, *, pairwise: bool
) -> Column:
    """The fold of an array; if `pairwise`, the function takes two whole items."""
    fn, wanted = step.arg("f"), spark_type(acc)
    try:
        return F.aggregate(
            values,
            start,
            lambda a, x: to_column(fn, ((a, acc), (x, item)), result=acc).cast(wanted),
        )
    except NotCompilable:
        return folded_in_python(fn, acc, item, values, start, pairwise=pairwise, tick=step.tick)
