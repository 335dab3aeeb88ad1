"""The named aggregates: Spark's, each once, with what analyses and rules may rely on.

All skip nulls but `count()`, `first` and `last`. They are deterministic: `collect_set`, and
`collect_list` of an unordered stream, give their elements in ascending order, and `any_value`
gives the smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hydro_core.catalog.spec import Aggregate, TypeProblem
from hydro_core.catalog.type_rules import columns_of, given_by, place_of
from hydro_core.functions.fn import Fn
from hydro_core.types.item import (
    BOOLEAN,
    DOUBLE,
    LONG,
    UNKNOWN,
    Array,
    Decimal,
    ItemType,
    Unknown,
    is_integer,
    is_numeric,
)

Types = tuple[ItemType, ...]


@dataclass(frozen=True, slots=True)
class AggregateSpec:
    """An aggregate function; its result over nothing is `empty`."""

    name: str
    meaning: str
    result: Callable[[Types], ItemType]
    least: int = 1
    most: int | None = 1
    needs_order: bool = False
    follows_order: bool = False
    mergeable: bool = True
    """The result over x + y is a function of the results over x and over y."""
    invertible: bool = False
    """The result over x is a function of those over x + y and over y, for numbers of every type."""
    idempotent: bool = False
    """The result over x + x is that over x."""
    empty: object = None
    """The result over nothing."""
    aliases: tuple[str, ...] = ()
    internal: bool = False
    """Plans may have it, programs cannot name it."""


def aggregate_type(aggregate: Aggregate, row: ItemType) -> ItemType:
    """The type of an aggregate over rows of this type."""
    spec = AGGREGATES[aggregate.function]
    types = tuple(argument_type(argument, row) for argument in aggregate.arguments)
    try:
        return spec.result(types)
    except TypeProblem as problem:
        places = [place_of(a) for a in aggregate.arguments if isinstance(a, Fn)]
        place = places[0] if places else (0, 0)
        raise TypeProblem(
            f"`{aggregate.function}` {problem.message}", problem.help, place=place
        ) from None


def argument_type(argument: str | Fn, row: ItemType) -> ItemType:
    """The type of what an aggregate is over."""
    if isinstance(argument, Fn):
        return given_by(argument, (row,))
    return columns_of(row, (argument,))[0].type


def _always(item: ItemType) -> Callable[[Types], ItemType]:
    return lambda types: item


def _same(types: Types) -> ItemType:
    return types[0]


def _array(types: Types) -> ItemType:
    return Array(types[0])


def _sum(types: Types) -> ItemType:
    """Spark's: integers give long, floats double, a decimal ten digits more."""
    match types[0]:
        case item if is_integer(item) or item == UNKNOWN:
            return LONG
        case Decimal(precision, scale):
            return Decimal(min(38, precision + 10), scale)
        case item:
            return _double((item,))


def _total(types: Types) -> ItemType:
    """Room for the sum of any number of values."""
    match types[0]:
        case item if is_integer(item):
            return Decimal(38, 0)
        case Decimal(_, scale):
            return Decimal(38, scale)
        case item:
            return _double((item,))


def _average(types: Types) -> ItemType:
    """Spark's: double, a decimal four digits more on either side of the point."""
    match types[0]:
        case Decimal(precision, scale):
            return Decimal(min(38, precision + 4), min(38, scale + 4))
        case item:
            return _double((item,))


def _double(types: Types) -> ItemType:
    if isinstance(types[0], Unknown) or is_numeric(types[0]):
        return DOUBLE
    raise TypeProblem(
        f"needs numbers, but is given {types[0]}", "booleans are counted by `count_if`"
    )


def _boolean(types: Types) -> ItemType:
    if isinstance(types[0], Unknown) or types[0] == BOOLEAN:
        return BOOLEAN
    raise TypeProblem(f"needs booleans, but is given {types[0]}", "give it a comparison")


def _count_if(types: Types) -> ItemType:
    _boolean(types)
    return LONG


_ENTRIES = (
    AggregateSpec(
        "count",
        "the number of rows, or of non-null values",
        _always(LONG),
        least=0,
        invertible=True,
        empty=0,
    ),
    AggregateSpec(
        "count_if", "the number of rows for which it is true", _count_if, invertible=True, empty=0
    ),
    AggregateSpec(
        "count_distinct",
        "the number of different values; a null in any argument does not count",
        _always(LONG),
        most=None,
        mergeable=False,
        idempotent=True,
        empty=0,
    ),
    AggregateSpec("sum", "the sum; beyond 64 bits the tick fails", _sum),
    AggregateSpec("min", "the smallest", _same, idempotent=True),
    AggregateSpec("max", "the greatest", _same, idempotent=True),
    AggregateSpec("avg", "the mean", _average, mergeable=False, aliases=("mean",)),
    AggregateSpec(
        "min_by",
        "the first argument where the second is smallest; null orders do not count, "
        "ties give the greatest value",
        _same,
        least=2,
        most=2,
        mergeable=False,
        idempotent=True,
    ),
    AggregateSpec(
        "max_by",
        "the first argument where the second is greatest; null orders do not count, "
        "ties give the greatest value",
        _same,
        least=2,
        most=2,
        mergeable=False,
        idempotent=True,
    ),
    AggregateSpec(
        "first", "the first row's, null or not", _same, needs_order=True, follows_order=True
    ),
    AggregateSpec(
        "last", "the last row's, null or not", _same, needs_order=True, follows_order=True
    ),
    AggregateSpec("any_value", "the smallest non-null value", _same, idempotent=True),
    AggregateSpec(
        "collect_list",
        "all non-null values: in the stream's order, or ascending where it has none",
        _array,
        follows_order=True,
        empty=(),
    ),
    AggregateSpec(
        "collect_set", "the different non-null values, ascending", _array, idempotent=True, empty=()
    ),
    AggregateSpec(
        "bool_and",
        "whether all non-null values are true",
        _boolean,
        idempotent=True,
        aliases=("every",),
    ),
    AggregateSpec("bool_or", "whether any is true", _boolean, idempotent=True, aliases=("some",)),
    AggregateSpec(
        "median", "the middle value, or the mean of the two in the middle", _double, mergeable=False
    ),
    AggregateSpec(
        "stddev",
        "the standard deviation of a sample, null of one value",
        _double,
        mergeable=False,
        aliases=("stddev_samp", "std"),
    ),
    AggregateSpec("stddev_pop", "the standard deviation of a population", _double, mergeable=False),
    AggregateSpec(
        "variance",
        "the variance of a sample, null of one value",
        _double,
        mergeable=False,
        aliases=("var_samp",),
    ),
    AggregateSpec("var_pop", "the variance of a population", _double, mergeable=False),
    AggregateSpec(
        "total",
        "the sum in a type that has room for it, 0 over nothing",
        _total,
        invertible=True,
        empty=0,
        internal=True,
    ),
)

AGGREGATES: Mapping[str, AggregateSpec] = MappingProxyType(
    {entry.name: entry for entry in _ENTRIES}
)
"""The aggregates by their names, aliases apart."""

NAMES: Mapping[str, str] = MappingProxyType(
    {
        name: entry.name
        for entry in _ENTRIES
        if not entry.internal
        for name in (entry.name, *entry.aliases)
    }
)
"""From every name and alias to the aggregate's name."""
