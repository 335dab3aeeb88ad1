"""Folds of arrays by Python functions, whole Arrow batches at a time.

Workers load this module, so it imports little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.functions import arrow_udf  # type: ignore[attr-defined]

from hydro_core.functions.evaluate import call_accumulate, call_pair
from hydro_core.functions.fn import Fn
from hydro_core.spark.arrow import from_arrow, to_arrow
from hydro_core.spark.types import spark_type
from hydro_core.spark.udf import guarded, pack, unpack
from hydro_core.types.item import Array, ItemType
from hydro_core.types.values import conform

Accumulate = Callable[[Fn, Any, Any], Any]
Choose = Callable[[list[Any]], Any]


def folded_in_python(
    fn: Fn, acc: ItemType, item: ItemType, values: Column, start: Column, *, pairwise: bool
) -> Column:
    """The fold of each array from its start; `pairwise`: the function takes two whole items."""
    call = call_pair if pairwise else call_accumulate
    return _run(fn, (acc, item, acc), call, lambda accs: accs[-1])(values, start)


def scanned_in_python(
    fn: Fn,
    acc: ItemType,
    item: ItemType,
    values: Column,
    start: Column,
    *,
    pairwise: bool = False,
) -> Column:
    """The accumulators after each element of each array; `pairwise` as for folds."""
    call = call_pair if pairwise else call_accumulate
    return _run(fn, (acc, item, Array(acc)), call, lambda accs: accs[1:])(values, start)


def _run(
    fn: Fn, types: tuple[ItemType, ItemType, ItemType], call: Accumulate, choose: Choose
) -> Callable[[Column, Column], Column]:
    acc, item, result = types
    packed = pack(fn)

    # Spark evaluates these annotations, and at run time an Array takes no parameter.
    def batch(arrays: pa.Array, starts: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        function = unpack(packed)
        pairs = zip(from_arrow(arrays, Array(item)), from_arrow(starts, acc), strict=True)
        found = [_accumulators(function, start, xs or (), acc, call) for xs, start in pairs]
        return to_arrow([choose(accs) for accs in found], result)

    # The name is what plans and Spark's own drawings show.
    batch.__name__ = fn.name
    made: Callable[[Column, Column], Column] = arrow_udf(batch, spark_type(result))
    return made


def _accumulators(
    fn: Fn, start: Any, values: Iterable[Any], acc: ItemType, call: Accumulate
) -> list[Any]:
    """The start, and the accumulator after each value."""
    found = [start]
    for x in values:
        found.append(guarded(fn, None, lambda a, b: conform(call(fn, a, b), acc), found[-1], x))
    return found
