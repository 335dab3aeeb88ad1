"""Definitions of aggregates, over all items of a tick or by key."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import reduce as fold_left
from typing import Any

from hydro_core.catalog.spec import Aggregate, digits_beyond, sum_beyond
from hydro_core.functions.tree import Fn
from hydro_core.reference.bag import Bag
from hydro_core.reference.definitions.registry import SemiNaive, defines
from hydro_core.reference.site import Columns, Site, field, key_of, keyed_result
from hydro_core.types.item import LONG, UNKNOWN, ItemType, Order, Row
from hydro_core.types.item import Decimal as DecimalType
from hydro_core.types.values import (
    LONG_MAX,
    LONG_MIN,
    RowItem,
    Struct,
    ValueProblem,
    canonical,
    conform,
    sort_key,
)

# The named aggregates: Spark's, over the values of a group in the stream's order.
#
# All skip nulls except `count()`, `first` and `last`, and give null if no value is left, unless
# another result is defined. Where Spark's result is arbitrary it is fixed here: `collect_list` of
# an unordered stream and `collect_set` ascend, `any_value` is the smallest. Sums of doubles are
# rounded once (`math.fsum`), so they do not depend on the order.


DIGITS = 120
"""Digits of decimal arithmetic: enough for the exact sum of as many decimals as fit in memory."""

Values = list[Any]


@dataclass(frozen=True, slots=True)
class GroupValues:
    """The input of an aggregate: the values of its arguments over the rows of a group."""

    site: Site
    size: int
    columns: Sequence[Values]
    result: ItemType
    is_ordered: bool
    """True if the order of the values may be observed."""

    @property
    def values(self) -> Values:
        """The non-null values of the first argument, in the stream's order."""
        return [value for value in self.columns[0] if value is not None]


def aggregated(site: Site, rows: Sequence[Any]) -> dict[str, Any]:
    """The aggregates of a group of rows, by their names."""
    ordered = site.inputs[0].order is Order.TOTAL
    return {
        name: aggregate_of_rows(site, one, rows, _column(site.output, name), ordered=ordered)
        for name, one in site.args["aggregates"]
    }


def aggregate_of_rows(
    site: Site, aggregate: Aggregate, rows: Sequence[Any], result: ItemType, *, ordered: bool
) -> Any:
    """An aggregate of some rows, of the given result type; `ordered`: the rows have an order."""
    columns = [[value_of(site, a, row) for row in rows] for a in aggregate.arguments]
    return AGGREGATES[aggregate.function](GroupValues(site, len(rows), columns, result, ordered))


def _column(row: ItemType, name: str) -> ItemType:
    found = row.column(name) if isinstance(row, Row) else None
    return found or UNKNOWN


def value_of(site: Site, argument: str | Fn, row: Any) -> Any:
    """The value of an aggregate's argument for a row."""
    return site.call(argument, row) if isinstance(argument, Fn) else field(row, argument)


def _count_distinct(group: GroupValues) -> int:
    """A row with a null in any of the columns does not count."""
    kept = (values for values in zip(*group.columns, strict=True) if None not in values)
    return len({canonical(Struct(values)) for values in kept})


def _extreme(choose: Callable[..., Any]) -> Callable[[GroupValues], Any]:
    """The value at the least or greatest order; of several the greatest value."""

    def found(group: GroupValues) -> Any:
        values, orders = group.columns
        pairs = [(sort_key(o), v) for v, o in zip(values, orders, strict=True) if o is not None]
        if not pairs:
            return None
        extreme = choose(order for order, _ in pairs)
        return max((value for order, value in pairs if order == extreme), key=sort_key)

    return found


def _sum(group: GroupValues) -> Any:
    values = group.values
    if not values:
        return None
    if isinstance(group.result, DecimalType):
        with localcontext(prec=DIGITS):
            return _fitting(group, "sum", sum(values, Decimal(0)), group.result)
    if group.result != LONG:
        return _float_sum(values)
    return long_sum(group.site, sum(values))


def _fitting(group: GroupValues, what: str, found: Decimal, to: ItemType) -> Decimal:
    """The sum or mean of decimals, which must fit its type."""
    try:
        conform(found, to)
    except ValueProblem:
        group.site.fail(*digits_beyond(what, to))
    return found


def long_sum(site: Site, total: int) -> int:
    """The sum of integers, which must fit 64 bits."""
    if not LONG_MIN <= total <= LONG_MAX:
        site.fail(*sum_beyond(total))
    return total


def _total(group: GroupValues) -> Any:
    """The sum in a type that has room for it."""
    if not isinstance(group.result, DecimalType):
        return _float_sum(group.values)
    with localcontext(prec=DIGITS):
        return sum(group.values, Decimal(0))


def _float_sum(values: Sequence[Any]) -> float:
    floats = [float(value) for value in values]
    try:
        return math.fsum(floats)
    except (OverflowError, ValueError):
        # Beyond the largest double, or with infinities of both signs: the result of plain addition.
        return sum(floats)


def _average(group: GroupValues) -> Any:
    values = group.values
    if not values:
        return None
    if isinstance(group.result, DecimalType):
        with localcontext(prec=DIGITS):
            total = sum(values, Decimal(0))
            _fitting(group, "sum", total, DecimalType(38, max(0, -int(total.as_tuple().exponent))))
            mean = mean_of(total, len(values), group.result)
            return _fitting(group, "mean", mean, group.result)
    return _mean(values)


def mean_of(total: Any, count: int, result: ItemType) -> Any:
    """A total divided once; an exact total of integers is a decimal without a fraction."""
    if isinstance(result, DecimalType):
        with localcontext(prec=DIGITS):
            digits = Decimal(1).scaleb(-result.scale)
            return (total / count).quantize(digits, ROUND_HALF_UP)
    return (int(total) if isinstance(total, Decimal) else total) / count


def _mean(values: Values) -> float:
    if all(isinstance(value, int) for value in values):
        return sum(values) / len(values)
    return _float_sum(values) / len(values)


def _least(group: GroupValues) -> Any:
    return min(group.values, key=sort_key, default=None)


def _median(group: GroupValues) -> float | None:
    ordered = sorted(group.values, key=sort_key)
    if not ordered:
        return None
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return 0.5 * float(low) + 0.5 * float(high)


def _variance(group: GroupValues, sample: bool) -> float | None:
    values = group.values
    freedom = len(values) - 1 if sample else len(values)
    if freedom < 1:
        return None
    mean = _mean(values)
    return _float_sum([(float(value) - mean) ** 2 for value in values]) / freedom


def _deviation(group: GroupValues, sample: bool) -> float | None:
    variance = _variance(group, sample)
    return None if variance is None else math.sqrt(variance)


AGGREGATES: Mapping[str, Callable[[GroupValues], Any]] = {
    "count": lambda group: len(group.values) if group.columns else group.size,
    "count_if": lambda group: sum(1 for value in group.values if value),
    "count_distinct": _count_distinct,
    "sum": _sum,
    "total": _total,
    "avg": _average,
    "min": _least,
    "max": lambda group: max(group.values, key=sort_key, default=None),
    "min_by": _extreme(min),
    "max_by": _extreme(max),
    "first": lambda group: group.columns[0][0] if group.size else None,
    "last": lambda group: group.columns[0][-1] if group.size else None,
    "any_value": _least,
    "collect_list": lambda group: (
        group.values if group.is_ordered else sorted(group.values, key=sort_key)
    ),
    "collect_set": lambda group: sorted(Bag(group.values).distinct(), key=sort_key),
    "bool_and": lambda group: all(group.values) if group.values else None,
    "bool_or": lambda group: any(group.values) if group.values else None,
    "median": _median,
    "stddev": lambda group: _deviation(group, sample=True),
    "stddev_pop": lambda group: _deviation(group, sample=False),
    "variance": lambda group: _variance(group, sample=True),
    "var_pop": lambda group: _variance(group, sample=False),
}


# Groups of items: operators on all items of a tick, or of a key.


@defines("unique", growth=SemiNaive.ONCE, exact=True)
def unique(site: Site, a: Bag) -> Bag:
    """Each distinct item once, at its first position."""
    return a.distinct()


@defines("fold")
def fold(site: Site, a: Bag) -> Bag:
    """One item each tick: `init` for an empty input."""
    return Bag([_folded(site, a)])


@defines("fold_keyed")
def fold_keyed(site: Site, a: Bag) -> Bag:
    """One item for each key."""
    key = key_of(site)
    return Bag(
        keyed_result(key, items[0], _folded(site, _values(key, items)))
        for items in a.by(key).values()
    )


def _folded(site: Site, items: Iterable[Any]) -> Any:
    fn = site.args["f"]
    return fold_left(lambda acc, x: site.accumulate(fn, acc, x), items, site.args["init"])


@defines("reduce")
def reduce(site: Site, a: Bag) -> Bag:
    """One item; none for an empty input."""
    return Bag([_reduced(site, a)]) if a.items else Bag()


@defines("reduce_keyed")
def reduce_keyed(site: Site, a: Bag) -> Bag:
    """One item for each key; the key columns of rows are unchanged."""
    key, found = key_of(site), []
    for items in a.by(key).values():
        result = _reduced(site, _values(key, items))
        kept = {name: field(items[0], name) for name in key.names}
        found.append(
            RowItem({**(result or {}), **kept})
            if key.names
            else Struct((field(items[0], 0), result))
        )
    return Bag(found)


def _reduced(site: Site, items: Iterable[Any]) -> Any:
    fn = site.args["f"]
    return fold_left(lambda x, y: site.combine(fn, x, y), items)


def _values(key: Columns, items: list[Any]) -> list[Any]:
    """The arguments of a keyed function for the items of a key: whole rows, the values of
    tuples.
    """
    return items if key.names else [field(x, 1) for x in items]


@defines("latest", exact=True)
def latest(site: Site, a: Bag) -> Bag:
    """Of each key the row with the greatest order, ties by the greatest row."""
    order = site.args["order"]

    def rank(row: Any) -> Any:
        if isinstance(order, tuple):
            return [sort_key(field(row, name)) for name in order], sort_key(row)
        return sort_key(site.call(order, row)), sort_key(row)

    return Bag(max(rows, key=rank) for rows in a.by(key_of(site)).values())


@defines("aggregate")
def aggregate(site: Site, a: Bag) -> Bag:
    """A row for each key, or one of all; the key columns, then the aggregates."""
    key = key_of(site)
    if not key.names:
        return Bag([aggregated(site, a.items)])
    return Bag(
        RowItem({**{name: field(rows[0], name) for name in key.names}, **aggregated(site, rows)})
        for rows in a.by(key).values()
    )
