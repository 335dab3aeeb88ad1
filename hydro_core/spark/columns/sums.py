"""`sum` of integers on Spark: exact whatever its partial sums are."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column

from hydro_core.functions.tree import Call, Comprehension
from hydro_core.spark.columns import arrays, division, integers
from hydro_core.spark.columns.dry import F
from hydro_core.spark.columns.scope import Scope
from hydro_core.spark.columns.value import NotCompilable, Value, Wide, computed
from hydro_core.types.item import LONG

_DECIMAL = "decimal(38,0)"


def total(scope: Scope, node: Call) -> Value:
    """`sum(…)` of integers: of an array, a tuple or a loop."""
    start = dict(node.keywords).get("start") or (node.args[1] if len(node.args) == 2 else None)
    if start is not None:
        raise NotCompilable("`sum` with a start")
    argument = node.args[0]
    if not isinstance(argument, Comprehension):
        array = arrays.array_of(scope, argument)
        return _total(scope, array, lambda inner, e: arrays.item(array, e), lambda _: None)
    loop = arrays.Loop(scope, argument)
    if loop.numbered:
        raise NotCompilable("`sum` over `enumerate`")

    def element(inner: Scope, e: Column) -> Value:
        body = inner.inner(loop.names(e))
        return body.guarded(body.compile(argument.element))

    kept = loop.condition if argument.conditions else lambda _: None
    return _total(scope, loop.array, element, kept)


def _total(
    scope: Scope,
    array: Value,
    element: Callable[[Scope, Column], Value],
    kept: Callable[[Column], Column | None],
) -> Value:
    parts: list[Value] = []

    def step(total: Column, e: Column, add: Callable[[Column, Value], Column]) -> Column:
        value = element(scope, e)
        if not integers.is_int(value):
            raise NotCompilable(f"`sum` of {value.type}")
        parts.append(value)
        test = kept(e)
        added = add(total, value)
        return added if test is None else F.when(test, added).otherwise(total)

    def fast(total: Column, value: Value) -> Column:
        return F.try_add(total, integers.as_long(value).column)

    # Null as soon as a partial sum passes 64 bits or an element is None.
    column = F.aggregate(array.column, integers.literal(0), lambda t, e: step(t, e, fast))
    bound = integers.bits(parts[0])
    made = integers.slow(scope, parts[0])
    if made is None or bound > 126 or (parts[0].wide and parts[0].wide.partial):
        raise NotCompilable("`sum` of integers that may pass 126 bits")

    def total_of(part: Callable[[Column], Column]) -> Column:
        def exact(total: Column, value: Value) -> Column:
            term = integers.slow(scope, value)
            return total if term is None else (total + part(term())).cast(_DECIMAL)

        zero = integers.literal(0).cast(_DECIMAL)
        return F.aggregate(array.column, zero, lambda t, e: step(t, e, exact))

    # No list has more than 2**31 elements.
    if bound + 31 <= 126:
        wide = Wide(bound + 31, lambda: total_of(lambda term: term))
    else:
        wide = Wide(bound + 31, lambda: _in_halves(scope, total_of), partial=True)
    return computed(column, LONG, array, *parts, wide=wide)


def _in_halves(scope: Scope, total_of: Callable[[Callable[[Column], Column]], Column]) -> Column:
    """A sum whose terms have up to 126 bits, if it has 64: what is above 2**64 is summed apart."""
    unit = integers.literal(2**62).cast(_DECIMAL) * integers.literal(4).cast(_DECIMAL)
    high = total_of(lambda term: division.floor_of_decimals(term, unit))
    low = total_of(lambda term: term - division.floor_of_decimals(term, unit) * unit)
    carried = division.floor_of_decimals(low, unit)
    rest, above = low - carried * unit, high + carried
    beyond = scope.fail("OverflowError", "a sum is an integer beyond 64 bits")
    whole = F.when(above == 0, rest).when(above == -1, rest - unit).otherwise(beyond)
    return whole.cast(_DECIMAL)
