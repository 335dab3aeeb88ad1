"""`sum` of integers on Spark."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column

from hydro_core.functions.tree import Call, Comprehension
from hydro_core.spark.frames.dry import F
from hydro_core.spark.functions.columns import arrays, integers
from hydro_core.spark.functions.columns.scope import ColumnScope
from hydro_core.spark.functions.columns.value import ColumnValue, NotCompilable, strict
from hydro_core.types.item import LONG


def total(scope: ColumnScope, node: Call) -> ColumnValue:
    """`sum(…)` of integers: of an array, a tuple or a loop."""
    start = dict(node.keywords).get("start") or (node.args[1] if len(node.args) == 2 else None)
    if start is not None:
        raise NotCompilable("`sum` with a start")
    argument = node.args[0]
    if not isinstance(argument, Comprehension):
        array = arrays.array_of(scope, argument)
        return _total(array, lambda e: arrays.item(array, e), lambda _: None)
    loop = arrays.ComprehensionLoop(scope, argument)
    if loop.numbered:
        raise NotCompilable("`sum` over `enumerate`")

    def element(e: Column) -> ColumnValue:
        body = scope.inner(loop.names(e))
        return body.guarded(body.doubtfully(argument.element))

    return _total(loop.array, element, loop.condition if argument.conditions else lambda _: None)


def _total(
    array: ColumnValue,
    element: Callable[[Column], ColumnValue],
    kept: Callable[[Column], Column | None],
) -> ColumnValue:
    parts: list[ColumnValue] = []

    def step(total: Column, e: Column) -> Column:
        value = element(e)
        if not integers.is_int(value):
            raise NotCompilable(f"`sum` of {value.type}")
        parts.append(value)
        # Null as soon as a partial sum passes 64 bits or an element is None.
        added, test = F.try_add(total, integers.as_long(value).column), kept(e)
        return added if test is None else F.when(test, added).otherwise(total)

    column = F.aggregate(array.column, integers.literal(0), step)
    return strict(column, LONG, array, *parts, doubtful=True)
