"""`sum` on Spark: of integers, and of floats one after the other."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable

from pyspark.sql import Column

from hydro_core.functions.tree import Bind, Op
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import arrays, integers, loops, numbers
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import ColumnValue, NotCompilable, strict
from hydro_core.types.item import DOUBLE, LONG

_ADDS_PLAINLY = sys.version_info < (3, 12)
"""From 3.12 on Python carries along what the rounding of each partial sum of floats took away."""


def total(scope: ColumnScope, node: Op) -> ColumnValue:
    """`sum(…)`: of an array, a tuple or a loop."""
    written = dict(node.keywords).get("start") or (node.args[1] if len(node.args) == 2 else None)
    start = None if written is None else scope.need(scope.compile(written))
    argument = node.args[0]
    if not isinstance(argument, Bind) or not argument.is_loop:
        array = loops.array_of(scope, argument)
        return _total(array, lambda e: arrays.item(array, e), lambda _: None, start)
    loop = loops.ComprehensionLoop(scope, argument)

    def element(e: Column) -> ColumnValue:
        body = scope.inner(loop.names(e), loop.not_null)
        return body.guarded(body.doubtfully(argument.body))

    kept = loop.condition if argument.conditions else lambda _: None
    return _total(loop.array, element, kept, start)


def _total(
    array: ColumnValue,
    element: Callable[[Column], ColumnValue],
    kept: Callable[[Column], Column | None],
    start: ColumnValue | None,
) -> ColumnValue:
    """The sum; null as soon as a partial sum passes 64 bits or an element is None."""
    first = element(F.get(array.column, F.lit(0)))
    if numbers.is_float(first) and _ADDS_PLAINLY:
        zero, combine = F.lit(0.0), operator.add
    elif integers.is_int(first):
        first, zero, combine = integers.as_long(first), integers.literal(0), F.try_add
    else:
        raise NotCompilable(f"`sum` of {first.type}")
    of, parts = first.type, list[ColumnValue]()
    if start is not None:
        if not (integers.is_int(start) if of == LONG else numbers.is_float(start)):
            raise NotCompilable(f"`sum` of {of} from {start.type}")
        start = integers.as_long(start) if of == LONG else numbers.as_double(start)
        zero = start.column
        parts.append(start)

    def step(total: Column, e: Column) -> Column:
        value = element(e)
        parts.append(value)
        value = integers.as_long(value) if of == LONG else numbers.as_double(value)
        added, test = combine(total, value.column), kept(e)
        return added if test is None else F.when(test, added).otherwise(total)

    column = F.aggregate(array.column, zero, step)
    if of == LONG:
        return strict(column, LONG, array, *parts, doubtful=True)
    # Of no floats at all it is the int 0.
    return strict(column, DOUBLE, array, *parts, doubtful=True).with_(mixed=start is None)
