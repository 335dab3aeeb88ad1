"""The aggregates for `Stream.aggregate`, by their names in the language.

>>> from hydro_core import agg
>>> agg.sum("amount").function
'sum'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hydro_core.catalog.spec import Aggregate

Over = str | Callable[..., Any]
"""A column, or a function of the row."""


def _of(function: str, *arguments: Any) -> Aggregate:
    return Aggregate(function, arguments)


def count(value: Over | None = None) -> Aggregate:
    """The number of rows, or of non-null values."""
    return _of("count") if value is None else _of("count", value)


def count_distinct(*values: Over) -> Aggregate:
    """The number of different values; a null in any of them does not count."""
    return _of("count_distinct", *values)


def min_by(value: Over, order: Over) -> Aggregate:
    """The value where the order is smallest."""
    return _of("min_by", value, order)


def max_by(value: Over, order: Over) -> Aggregate:
    """The value where the order is greatest."""
    return _of("max_by", value, order)


def sum(value: Over) -> Aggregate:  # noqa: A001 - Spark's name
    """The sum; beyond 64 bits the tick fails."""
    return _of("sum", value)


def min(value: Over) -> Aggregate:  # noqa: A001 - Spark's name
    """The smallest."""
    return _of("min", value)


def max(value: Over) -> Aggregate:  # noqa: A001 - Spark's name
    """The greatest."""
    return _of("max", value)


def avg(value: Over) -> Aggregate:
    """The mean."""
    return _of("avg", value)


def count_if(value: Over) -> Aggregate:
    """The number of rows for which it is true."""
    return _of("count_if", value)


def any_value(value: Over) -> Aggregate:
    """The smallest non-null value."""
    return _of("any_value", value)


def first(value: Over) -> Aggregate:
    """The first row's, null or not; needs an order."""
    return _of("first", value)


def last(value: Over) -> Aggregate:
    """The last row's, null or not; needs an order."""
    return _of("last", value)


def collect_list(value: Over) -> Aggregate:
    """All non-null values, in the stream's order or ascending."""
    return _of("collect_list", value)


def collect_set(value: Over) -> Aggregate:
    """The different non-null values, ascending."""
    return _of("collect_set", value)


def bool_and(value: Over) -> Aggregate:
    """Whether all non-null values are true."""
    return _of("bool_and", value)


def bool_or(value: Over) -> Aggregate:
    """Whether any is true."""
    return _of("bool_or", value)


def median(value: Over) -> Aggregate:
    """The middle value."""
    return _of("median", value)


def stddev(value: Over) -> Aggregate:
    """The standard deviation of a sample."""
    return _of("stddev", value)


def stddev_pop(value: Over) -> Aggregate:
    """The standard deviation of a population."""
    return _of("stddev_pop", value)


def variance(value: Over) -> Aggregate:
    """The variance of a sample."""
    return _of("variance", value)


def var_pop(value: Over) -> Aggregate:
    """The variance of a population."""
    return _of("var_pop", value)
