"""Python's lists on Spark: construction, elements, concatenation, order. Elements may be None."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column

from hydro_core.functions.tree import Op
from hydro_core.spark.frames.dry import F
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.functions.columns import integers, structs
from hydro_core.spark.functions.columns.value import (
    ColumnScope,
    ColumnValue,
    NotCompilable,
    computed,
    is_item,
    strict,
)
from hydro_core.types.common import common_types
from hydro_core.types.item import DOUBLE, LONG, UNKNOWN, Array, ItemType, Tuple

_COMPARED = (
    *("boolean", "byte", "short", "integer", "long", "string", "binary", "date", "timestamp"),
    *("timestamp_ntz", str(UNKNOWN)),
)
"""Types whose values Spark compares as Python does."""
_MAX_RANGE = 1_000_000
_MOST_TIMES = 10_000


def make(scope: ColumnScope, parts: Sequence[ColumnValue], *, final: bool = False) -> ColumnValue:
    types = [p.type for p in parts if is_item(p.type)]
    if len(types) < len(parts):
        raise NotCompilable("a list of what are no items")
    element = common_types(types)
    if element is None:
        raise NotCompilable("a list of several types")
    columns = [structs.cast(scope, p, element, final=final) for p in parts]
    column = F.array(*columns).cast(spark_type(Array(element)))
    return computed(column, Array(element), *parts, safe=True)


def of_tuple(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    return make(scope, structs.fields_of(scope, structs.present(scope, value)))


def item(array: ColumnValue, column: Column) -> ColumnValue:
    """An element of an array; it may be None."""
    return ColumnValue(column, element_type(array))


def element_type(array: ColumnValue) -> ItemType:
    if not isinstance(array.type, Array):
        raise NotCompilable(f"an element of {array.type}")
    return array.type.element


def element(scope: ColumnScope, value: ColumnValue, index: ColumnValue) -> ColumnValue:
    if not integers.is_int(index) or not isinstance(value.type, Array):
        raise NotCompilable(f"{value.type} is indexed by {index.type}")
    array, i = scope.need(value), integers.bound(scope, index)
    count = F.size(array.column)
    inside = (i.column < count) & (i.column >= -count)
    place = F.when(i.column < 0, i.column + count).otherwise(i.column).cast("int")
    found = F.when(inside, F.get(array.column, place)).otherwise(scope.ask())
    return computed(found, value.type.element, array, array, array, i, i, nullable=True)


def concatenate(scope: ColumnScope, a: ColumnValue, b: ColumnValue) -> ColumnValue:
    """`a + b` of two lists, or of two tuples."""
    if isinstance(a.type, Tuple) and isinstance(b.type, Tuple):
        sides = (structs.present(scope, a), structs.present(scope, b))
        return structs.make_tuple([f for side in sides for f in structs.fields_of(scope, side)])
    if not isinstance(a.type, Array) or not isinstance(b.type, Array):
        raise NotCompilable(f"`+` of {a.type} and {b.type}")
    to = common_types((a.type, b.type))
    if to is None:
        raise NotCompilable(f"`+` of {a.type} and {b.type}")
    x, y = scope.need(a), scope.need(b)
    column = F.concat(structs.cast(scope, x, to), structs.cast(scope, y, to))
    return computed(column, to, x, y, safe=True)


def repeated(scope: ColumnScope, array: ColumnValue, times: ColumnValue) -> ColumnValue:
    if not integers.is_int(times):
        raise NotCompilable(f"`*` of {array.type} and {times.type}")
    x, n = scope.need(array), integers.bound(scope, times)
    count = F.greatest(n.column, F.lit(0))
    few = F.when(count <= _MOST_TIMES, count).cast("int")
    column = F.flatten(F.array_repeat(x.column, few))
    return strict(column, Array(element_type(array)), x, n, doubtful=True)


def sequence(scope: ColumnScope, node: Op) -> ColumnValue:
    """`range(n)`, `range(low, high)`."""
    if node.keywords or len(node.args) not in (1, 2):
        raise NotCompilable("a range with a step")
    given = [scope.compile(a) for a in node.args]
    wrong = next((str(v.type) for v in given if not integers.is_int(v)), None)
    if wrong is not None:
        raise NotCompilable(f"a range of {wrong}")
    bounds = [integers.bound(scope, v) for v in given]
    low = integers.constant(0) if len(bounds) == 1 else bounds[0]
    high = bounds[-1]
    count = F.try_subtract(high.column, low.column)
    empty = F.array().cast("array<bigint>")
    column = F.when(high.column <= low.column, empty).when(
        count <= _MAX_RANGE, F.sequence(low.column, high.column - 1)
    )
    return strict(column, Array(LONG), low, high, low, high, doubtful=True)


def distinct(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """The distinct elements, as in a `set`: for `len` and `sorted` only."""
    # `array_distinct` normalizes −0 to 0, so an array with a −0 is left to Python, even of one
    # element.
    array = _compared(scope, value, nulls=True, least=1)
    return computed(F.array_distinct(array.column), array.type, array)


def ordered(scope: ColumnScope, value: ColumnValue) -> ColumnValue:
    """The array, whose elements Spark then orders as Python does."""
    return _compared(scope, value, nulls=False, least=2)


def _compared(scope: ColumnScope, value: ColumnValue, *, nulls: bool, least: int) -> ColumnValue:
    """The array; Python computes arrays of at least `least` elements that Spark compares
    differently.
    """
    of, array = element_type(value), scope.need(value)
    odd = F.exists(array.column, lambda e: _is_odd(of, e, nulls=nulls))
    column = F.when((F.size(array.column) >= least) & odd, scope.ask()).otherwise(array.column)
    return computed(column, array.type, array, array, array)


def _is_odd(item: ItemType, e: Column, *, nulls: bool) -> Column:
    """True if Spark compares an element differently from Python; `nulls`: None may be equal."""
    refused = F.lit(False) if nulls else e.isNull()
    if item == DOUBLE:
        # For Spark NaN is a number, and −0 differs from 0.
        return refused | F.isnan(e) | ((e == 0.0) & (e.cast("string") == "-0.0"))
    if isinstance(item, Tuple):
        for i, field in enumerate(item.fields, start=1):
            refused = refused | _is_odd(field, e.getField(f"_{i}"), nulls=nulls)
        return F.coalesce(refused, F.lit(False))
    if str(item) not in _COMPARED:
        raise NotCompilable(f"elements of {item} are compared")
    return refused
