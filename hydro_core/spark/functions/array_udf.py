"""Folds of arrays by Python functions, whole Arrow batches at a time.

Workers load this module, so it imports little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from hydro_core.functions.evaluate import call_accumulate, call_pair
from hydro_core.functions.fn import Fn
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.python_columns import python_function
from hydro_core.spark.functions.udf import guarded, pack, unpack
from hydro_core.types.arrow import from_arrow, to_arrow
from hydro_core.types.item import Array, ItemType
from hydro_core.types.values import conform

Accumulate = Callable[[Fn, Any, Any], Any]
Choose = Callable[[Iterator[Any]], Any]


def folded_in_python(  # noqa: PLR0913 - what there is to know of a fold
    fn: Fn,
    acc: ItemType,
    item: ItemType,
    values: Column,
    start: Column,
    *,
    pairwise: bool,
    tick: Column | None = None,
) -> Column:
    """The fold of each array from its start; `pairwise`: the function takes two whole items."""
    call = call_pair if pairwise else call_accumulate
    return _run(fn, (acc, item, acc), call, _last)(values, start, _known(tick))


def scanned_in_python(  # noqa: PLR0913 - what there is to know of a scan
    fn: Fn,
    acc: ItemType,
    item: ItemType,
    values: Column,
    start: Column,
    *,
    pairwise: bool = False,
    tick: Column | None = None,
) -> Column:
    """The accumulators after each element of each array; `pairwise` as for folds."""
    call = call_pair if pairwise else call_accumulate
    run = _run(fn, (acc, item, Array(acc)), call, _all_but_first)
    return run(values, start.cast(spark_type(acc)), _known(tick))


def _known(tick: Column | None) -> Column:
    return (F.lit(None) if tick is None else tick).cast("long")


def _last(accumulators: Iterator[Any]) -> Any:
    last = None
    for last in accumulators:  # noqa: B007 - one at a time: they may be as large as what is folded
        pass
    return last


def _all_but_first(accumulators: Iterator[Any]) -> list[Any]:
    return list(accumulators)[1:]


def _run(
    fn: Fn, types: tuple[ItemType, ItemType, ItemType], call: Accumulate, choose: Choose
) -> Callable[[Column, Column, Column], Column]:
    acc, item, result = types
    packed = pack(fn)

    # Spark evaluates these annotations, and at run time an Array takes no parameter.
    def batch(arrays: pa.Array, starts: pa.Array, ticks: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        function = unpack(packed)
        groups = zip(
            from_arrow(arrays, Array(item)), from_arrow(starts, acc), ticks.to_pylist(), strict=True
        )
        found = [
            choose(_accumulators(function, start, xs or (), (acc, call, tick)))
            for xs, start, tick in groups
        ]
        return to_arrow(found, result)

    # The name is what plans and Spark's own drawings show.
    batch.__name__ = fn.name
    return python_function(batch, spark_type(result))


def _accumulators(
    fn: Fn, start: Any, values: Iterable[Any], how: tuple[ItemType, Accumulate, int | None]
) -> Iterator[Any]:
    """The start, and the accumulator after each value."""
    acc, call, tick = how
    yield start
    for x in values:
        start = guarded(fn, tick, lambda a, b: conform(call(fn, a, b), acc), start, x)
        yield start
