"""Folds with functions of the program, as aggregate columns.

A fold that Spark has an aggregate for is that aggregate. Any other one gathers its items into an array, in their order
where the function depends on it, and folds the array: as columns where the function compiles, else in Python, an array
at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.functions import ArrowUDFType, arrow_udf

from hydro_core.functions.evaluate import call_accumulate, call_pair
from hydro_core.functions.fn import Fn
from hydro_core.functions.result_type import result_type
from hydro_core.plan.kinds import is_in_order
from hydro_core.spark.arrow import from_arrow, to_arrow
from hydro_core.spark.columns import NotCompilable, literal, to_column
from hydro_core.spark.lower.items import at, convert, type_at
from hydro_core.spark.lower.registry import Step
from hydro_core.spark.relation import ORD
from hydro_core.spark.types import spark_type
from hydro_core.spark.udf import guarded, pack, unpack
from hydro_core.types.item import Array, ItemType, Row, Tuple
from hydro_core.types.values import conform

Accumulate = Callable[[Fn, Any, Any], Any]


def fold_column(step: Step, init: Any, acc: ItemType, value: Column, item: ItemType) -> Column:
    """The fold of a group's values, from `init`."""
    return _folded(step.arg("f"), literal(init, acc), acc, gathered(step, value), item)


def reduce_column(step: Step, acc: ItemType, value: Column, item: ItemType) -> Column:
    """The reduction of a group's values; a group has at least one."""
    fn, values = step.arg("f"), gathered(step, value)
    first = convert(F.get(values, F.lit(0)), item, acc)
    rest = F.slice(values, F.lit(2), F.greatest(F.size(values) - 1, F.lit(0)))
    return _folded(fn, first, acc, rest, item, call=call_pair)


def gathered(step: Step, value: Column) -> Column:
    """A group's values as an array, nulls among them; in their order where the function depends on it."""
    if not is_in_order(step.node, step.input.ordered):
        wrapped = F.collect_list(F.struct(value.alias("x")))
    else:
        wrapped = F.sort_array(F.collect_list(F.struct(F.col(ORD).alias("o"), value.alias("x"))))
    return F.transform(wrapped, lambda each: each.getField("x"))


def _folded(
    fn: Fn, start: Column, acc: ItemType, values: Column, item: ItemType, call: Accumulate = call_accumulate
) -> Column:
    spread = call is call_accumulate
    try:
        result = result_type(fn, (acc, item), spread=False)
        return F.aggregate(
            values,
            start.cast(spark_type(acc)),
            lambda a, x: convert(to_column(fn, arguments(fn, a, acc, x, item, spread=spread)), result, acc).cast(
                spark_type(acc)
            ),
        )
    except NotCompilable:
        return _in_python(fn, acc, item, call, last_only=True)(values, start)


def scanned(fn: Fn, start: Column, acc: ItemType, values: Column, item: ItemType) -> Column:
    """The accumulators after each of the values of an array."""
    return _in_python(fn, acc, item, call_accumulate, last_only=False)(values, start)


def arguments(
    fn: Fn, acc: Column, acc_type: ItemType, x: Column, item: ItemType, *, spread: bool
) -> list[tuple[Column, ItemType]]:
    """What the function gets: the accumulator, then the item, or its fields where it has more parameters."""
    count = len(fn.params) - 1
    if count == 1 or not spread or not isinstance(item, Tuple | Row):
        return [(acc, acc_type), (x, item)]
    return [(acc, acc_type), *((at(x, item, i), type_at(item, i)) for i in range(count))]


def _in_python(
    fn: Fn, acc: ItemType, item: ItemType, call: Accumulate, *, last_only: bool
) -> Callable[[Column, Column], Column]:
    packed, result = pack(fn), acc if last_only else Array(acc)

    def batch(arrays: pa.Array, starts: pa.Array) -> pa.Array:
        function = unpack(packed)
        pairs = zip(from_arrow(arrays, Array(item)), from_arrow(starts, acc), strict=True)
        found = [_accumulators(function, start, xs or (), acc, call) for xs, start in pairs]
        return to_arrow([a[-1] if last_only else a[1:] for a in found], result)

    run = arrow_udf(batch, spark_type(result), ArrowUDFType.SCALAR)
    run.__name__ = fn.name
    return lambda values, start: run(values, start.cast(spark_type(acc)))


def _accumulators(
    fn: Fn, start: Any, values: Iterable[Any], acc: ItemType, call: Accumulate
) -> list[Any]:
    """The start, and the accumulator after each value."""
    found = [start]
    for x in values:
        before = found[-1]
        after = guarded(fn, None, partial(_next, fn, before, x, acc, call), before, x)
        found.append(after)
    return found


def _next(fn: Fn, before: Any, x: Any, acc: ItemType, call: Accumulate) -> Any:
    return conform(call(fn, before, x), acc)
