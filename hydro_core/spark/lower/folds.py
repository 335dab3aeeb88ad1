"""Folds with functions of the program, as aggregate columns.

A fold that Spark has an aggregate for is that aggregate. Any other one gathers its items into an array, in their order
where the function depends on it, and folds the array: as columns where the function compiles, else in Python, an array
at a time.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from hydro_core.functions.fn import Fn
from hydro_core.plan.kinds import is_in_order
from hydro_core.spark.array_udf import folded_in_python, scanned_in_python
from hydro_core.spark.columns import NotCompilable, to_column
from hydro_core.spark.lower.items import at, convert, literal, type_at
from hydro_core.spark.lower.registry import Step
from hydro_core.spark.relation import ORD, TICK
from hydro_core.spark.types import spark_type
from hydro_core.types.item import ItemType, Row, Tuple

Argument = tuple[Column, ItemType]


def fold_column(step: Step, init: Any, acc: ItemType, value: Column, item: ItemType) -> Column:
    """The fold of a group's values, from `init`."""
    return _folded(step.arg("f"), literal(init, acc), acc, gathered(step, value), item, spread=True)


def reduce_column(step: Step, acc: ItemType, value: Column, item: ItemType) -> Column:
    """The reduction of a group's values; a group has at least one."""
    fn, values = step.arg("f"), gathered(step, value)
    first = convert(F.get(values, F.lit(0)), item, acc)
    rest = F.slice(values, F.lit(2), F.greatest(F.size(values) - 1, F.lit(0)))
    return _folded(fn, first, acc, rest, item, spread=False)


def gathered(step: Step, value: Column) -> Column:
    """A group's values as an array, nulls among them; in their order where the function depends on it."""
    if not is_in_order(step.node, step.input.ordered):
        wrapped = F.collect_list(F.struct(value.alias("x")))
    else:
        wrapped = F.sort_array(F.collect_list(F.struct(F.col(ORD).alias("o"), value.alias("x"))))
    return F.transform(wrapped, lambda each: each.getField("x"))


def _folded(
    fn: Fn, start: Column, acc: ItemType, values: Column, item: ItemType, *, spread: bool
) -> Column:
    try:
        return F.aggregate(
            values,
            start.cast(spark_type(acc)),
            lambda a, x: to_column(
                fn, arguments(fn, (a, acc), (x, item), spread=spread), result=acc, tick=F.col(TICK)
            ).cast(spark_type(acc)),
        )
    except NotCompilable:
        return folded_in_python(fn, acc, item, values, start, pairwise=not spread)


def scanned(fn: Fn, start: Column, acc: ItemType, values: Column, item: ItemType) -> Column:
    """The accumulators after each of the values of an array."""
    return scanned_in_python(fn, acc, item, values, start)


def arguments(
    fn: Fn, acc: Argument, x: Argument, *, spread: bool
) -> tuple[Argument, ...]:
    """What the function gets: the accumulator, then the item, or its fields where it has more parameters."""
    count, (column, item) = len(fn.params) - 1, x
    if count == 1 or not spread or not isinstance(item, Tuple | Row):
        return (acc, x)
    return (acc, *((at(column, item, i), type_at(item, i)) for i in range(count)))
