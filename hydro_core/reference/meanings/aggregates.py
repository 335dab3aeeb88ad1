"""The named aggregates: Spark's, over the values of a group in the stream's order.

All skip nulls but `count()`, `first` and `last`, and give null if no value is left unless something else is said.
Where Spark leaves the result to chance it is fixed: `collect_list` of an unordered stream and `collect_set` ascend,
`any_value` is the smallest. Sums of doubles are rounded once (`math.fsum`), so they do not depend on the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

from hydro_core.catalog.spec import Aggregate
from hydro_core.functions.fn import Fn
from hydro_core.reference.bag import Bag
from hydro_core.reference.keys import field
from hydro_core.reference.site import Site
from hydro_core.types.item import LONG, UNKNOWN, ItemType, Row
from hydro_core.types.item import Decimal as DecimalType
from hydro_core.types.stream import Order
from hydro_core.types.values import LONG_MAX, LONG_MIN, Struct, canonical, sort_key

DIGITS = 120
"""Digits of decimal arithmetic: enough for the exact sum of as many decimals as fit in memory."""

Values = list[Any]


def aggregated(site: Site, rows: Sequence[Any]) -> dict[str, Any]:
    """The aggregates of a group of rows, by the names they are given."""
    return {
        name: _one(site, aggregate, rows, _column(site.output, name))
        for name, aggregate in site.args["aggregates"]
    }


def _column(row: ItemType, name: str) -> ItemType:
    found = row.column(name) if isinstance(row, Row) else None
    return found or UNKNOWN


def _one(site: Site, aggregate: Aggregate, rows: Sequence[Any], result: ItemType) -> Any:
    columns = [_values(site, argument, rows) for argument in aggregate.arguments]
    match aggregate.function, columns:
        case "count", []:
            return len(rows)
        case "first", [values]:
            return values[0] if values else None
        case "last", [values]:
            return values[-1] if values else None
        case "count_distinct", _:
            kept = (values for values in zip(*columns, strict=True) if None not in values)
            return len({canonical(Struct(values)) for values in kept})
        case "min_by", [values, orders]:
            return _extreme(values, orders, min)
        case "max_by", [values, orders]:
            return _extreme(values, orders, max)
        case "sum", [values]:
            return _sum(site, _present(values), result)
        case "avg", [values]:
            return _average(_present(values), result)
        case "collect_list", [values]:
            ordered = site.inputs[0].order is Order.TOTAL
            return _present(values) if ordered else sorted(_present(values), key=sort_key)
        case name, [values]:
            return SIMPLE[name](_present(values))
        case name, _:
            raise TypeError(f"`{name}` does not take {len(columns)} arguments")


def _values(site: Site, argument: str | Fn, rows: Sequence[Any]) -> Values:
    if isinstance(argument, Fn):
        return [site.call(argument, row) for row in rows]
    return [field(row, argument) for row in rows]


def _present(values: Values) -> Values:
    return [value for value in values if value is not None]


def _extreme(values: Values, orders: Values, choose: Callable[..., Any]) -> Any:
    """The value at the extreme order; of several the greatest value."""
    pairs = [(sort_key(o), v) for v, o in zip(values, orders, strict=True) if o is not None]
    if not pairs:
        return None
    extreme = choose(order for order, _ in pairs)
    return max((value for order, value in pairs if order == extreme), key=sort_key)


def _sum(site: Site, values: Values, result: ItemType) -> Any:
    if not values:
        return None
    if isinstance(result, DecimalType):
        with localcontext(prec=DIGITS):
            return sum(values, Decimal(0))
    if result != LONG:
        return _float_sum(values)
    total = sum(values)
    if not LONG_MIN <= total <= LONG_MAX:
        site.fail(f"the sum {total} is beyond 64 bits", "sum decimals or doubles instead")
    return total


def _float_sum(values: Sequence[Any]) -> float:
    floats = [float(value) for value in values]
    try:
        return math.fsum(floats)
    except (OverflowError, ValueError):
        # Beyond the largest double, or infinities of both signs: what plain addition makes of it.
        return sum(floats)


def _average(values: Values, result: ItemType) -> Any:
    if not values:
        return None
    if isinstance(result, DecimalType):
        with localcontext(prec=DIGITS):
            mean = sum(values, Decimal(0)) / len(values)
            return mean.quantize(Decimal(1).scaleb(-result.scale), ROUND_HALF_UP)
    return _mean(values)


def _mean(values: Values) -> float:
    if all(isinstance(value, int) for value in values):
        return sum(values) / len(values)
    return _float_sum(values) / len(values)


def _least(values: Values) -> Any:
    return min(values, key=sort_key, default=None)


def _greatest(values: Values) -> Any:
    return max(values, key=sort_key, default=None)


def _collect_set(values: Values) -> Values:
    return sorted(Bag(values).distinct(), key=sort_key)


def _median(values: Values) -> float | None:
    if not values:
        return None
    ordered = sorted(values, key=sort_key)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return 0.5 * float(low) + 0.5 * float(high)


def _variance(values: Values, sample: bool) -> float | None:
    freedom = len(values) - 1 if sample else len(values)
    if freedom < 1:
        return None
    mean = _mean(values)
    return _float_sum([(float(value) - mean) ** 2 for value in values]) / freedom


def _deviation(values: Values, sample: bool) -> float | None:
    variance = _variance(values, sample)
    return None if variance is None else math.sqrt(variance)


SIMPLE: Mapping[str, Callable[[Values], Any]] = {
    "count": len,
    "count_if": lambda values: sum(1 for value in values if value),
    "min": _least,
    "max": _greatest,
    "any_value": _least,
    "collect_set": _collect_set,
    "bool_and": lambda values: all(values) if values else None,
    "bool_or": lambda values: any(values) if values else None,
    "median": _median,
    "stddev": lambda values: _deviation(values, sample=True),
    "stddev_pop": lambda values: _deviation(values, sample=False),
    "variance": lambda values: _variance(values, sample=True),
    "var_pop": lambda values: _variance(values, sample=False),
}
"""The aggregates of one argument that depend on its non-null values only."""
