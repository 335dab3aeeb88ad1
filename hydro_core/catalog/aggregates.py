"""The named aggregates: Spark's, each once, with what analyses and rules may rely on.

All skip nulls but `count()`, `first` and `last`. They are deterministic: `collect_set`, and
`collect_list` of an unordered stream, give their elements in ascending order, and `any_value`
gives the smallest.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from hydro_core.catalog.spec import Aggregate, TypeProblem
from hydro_core.catalog.type_rules import Types, columns_of, given_by
from hydro_core.errors import beginning
from hydro_core.functions.fn import Fn
from hydro_core.functions.read import read_function
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

EXACT_DIGITS = 19
"""Of longer decimals no engine has the digits that it takes to divide a total once."""


def _is_exact(item: ItemType | None) -> bool:
    """Whether sums of such numbers are not rounded."""
    return item is not None and (is_integer(item) or isinstance(item, Decimal))


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of rows in the place of all their values, so that the result goes on.

    That is the result itself, if results are merged, or the results of other aggregates over the
    same arguments, its parts. Where there are both, the parts serve where rows go again, or where
    the result of some rows may be beyond its type though that of all is not.
    """

    merge: str = ""
    """The aggregate that makes one result of several."""
    companion: str = ""
    """The aggregate of the last argument without which results are not merged."""
    parts: tuple[str, ...] = ()
    of_parts: str = ""
    """The result of those of the parts, a function of them in their order.

    Empty where the engines have one that rounds and fails as the aggregate does.
    """
    digits: int | None = None
    """Of decimals that are longer it is not made of parts: it could not be rounded once."""
    invertible: Callable[[ItemType | None], bool] = lambda _: False
    """Whether the result without some rows is told by theirs, for a first argument of the type;
    None: there is none.
    """

    def in_parts(self, item: ItemType | None) -> bool:
        """Whether it is made of parts, for a first argument of the type."""
        if self.digits is not None and isinstance(item, Decimal) and item.precision > self.digits:
            return False
        return bool(self.parts)

    @property
    def function(self) -> Fn | None:
        """What makes the result of those of the parts, where that is written."""
        if not self.of_parts:
            return None
        return read_function(ast.parse(self.of_parts, mode="eval").body, {})


@dataclass(frozen=True, slots=True)
class AllValues:
    """Nothing smaller than all values can be kept; why that is, for people."""

    why: str


@dataclass(frozen=True, slots=True)
class AggregateSpec:
    """An aggregate function; its result over nothing is `empty`."""

    name: str
    summary: str
    result: Callable[[Types], ItemType]
    kept: Kept | AllValues
    """What goes on from tick to tick."""
    least: int = 1
    most: int | None = 1
    needs_order: bool = False
    follows_order: bool = False
    idempotent: bool = False
    """The result over x + x is that over x."""
    empty: object = None
    """The result over nothing."""
    aliases: tuple[str, ...] = ()
    fails: bool = False
    """Its result may be beyond its type."""
    over_distinct: str = ""
    """Of what counts different values: the aggregate that gives as much over distinct rows, of
    whether all its arguments are there.
    """
    internal: bool = False
    """Plans may have it, programs cannot name it."""
    extreme: Literal["", "least", "greatest"] = ""
    """It is this one of the non-null values."""

    def takes(self, count: int) -> bool:
        """Whether it may be given so many arguments."""
        return self.least <= count and (self.most is None or count <= self.most)

    @property
    def may_fail(self) -> bool:
        """Whether a tick may fail on its result, or on what makes that of its parts."""
        return self.fails or (isinstance(self.kept, Kept) and bool(self.kept.of_parts))


def aggregate_type(aggregate: Aggregate, row: ItemType) -> ItemType:
    spec = AGGREGATES[aggregate.function]
    types = tuple(argument_type(argument, row) for argument in aggregate.arguments)
    try:
        return spec.result(types)
    except TypeProblem as problem:
        places = [beginning(a.span) for a in aggregate.arguments if isinstance(a, Fn)]
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


_COUNTED = Kept("sum", invertible=lambda _: True)
_ITSELF = AllValues("gives the values themselves, so nothing smaller can be stored of them")
_DIFFERENT = AllValues("needs all values: no few numbers made of them can be merged")
_SQUARES = AllValues("squares differences from a mean that every tick moves")

_ENTRIES = (
    AggregateSpec(
        "count",
        "the number of rows, or of non-null values",
        _always(LONG),
        _COUNTED,
        least=0,
        empty=0,
    ),
    AggregateSpec(
        "count_if", "the number of rows for which it is true", _count_if, _COUNTED, empty=0
    ),
    AggregateSpec(
        "count_distinct",
        "the number of different values; a null in any argument does not count",
        _always(LONG),
        _DIFFERENT,
        most=None,
        over_distinct="count_if",
        idempotent=True,
        empty=0,
    ),
    AggregateSpec(
        "sum",
        "the sum; beyond 64 bits the tick fails",
        _sum,
        Kept("sum", parts=("total", "count")),
        fails=True,
    ),
    AggregateSpec("min", "the smallest", _same, Kept("min"), idempotent=True, extreme="least"),
    AggregateSpec("max", "the greatest", _same, Kept("max"), idempotent=True, extreme="greatest"),
    AggregateSpec(
        "avg",
        "the mean",
        _average,
        Kept(parts=("total", "count"), digits=EXACT_DIGITS),
        fails=True,
        aliases=("mean",),
    ),
    AggregateSpec(
        "min_by",
        "the first argument where the second is smallest; null orders do not count, "
        "ties give the greatest value",
        _same,
        Kept("min_by", companion="min"),
        least=2,
        most=2,
        idempotent=True,
    ),
    AggregateSpec(
        "max_by",
        "the first argument where the second is greatest; null orders do not count, "
        "ties give the greatest value",
        _same,
        Kept("max_by", companion="max"),
        least=2,
        most=2,
        idempotent=True,
    ),
    AggregateSpec(
        "first",
        "the first row's, null or not",
        _same,
        _ITSELF,
        needs_order=True,
        follows_order=True,
    ),
    AggregateSpec(
        "last", "the last row's, null or not", _same, _ITSELF, needs_order=True, follows_order=True
    ),
    AggregateSpec(
        "any_value",
        "the smallest non-null value",
        _same,
        Kept("any_value"),
        idempotent=True,
        extreme="least",
    ),
    AggregateSpec(
        "collect_list",
        "all non-null values: in the stream's order, or ascending where it has none",
        _array,
        _ITSELF,
        follows_order=True,
        empty=(),
    ),
    AggregateSpec(
        "collect_set",
        "the different non-null values, ascending",
        _array,
        _ITSELF,
        idempotent=True,
        empty=(),
    ),
    AggregateSpec(
        "bool_and",
        "whether all non-null values are true",
        _boolean,
        Kept("bool_and"),
        idempotent=True,
        extreme="least",
        aliases=("every",),
    ),
    AggregateSpec(
        "bool_or",
        "whether any is true",
        _boolean,
        Kept("bool_or"),
        idempotent=True,
        extreme="greatest",
        aliases=("some",),
    ),
    AggregateSpec(
        "median", "the middle value, or the mean of the two in the middle", _double, _DIFFERENT
    ),
    AggregateSpec(
        "stddev",
        "the standard deviation of a sample, null of one value",
        _double,
        _SQUARES,
        aliases=("stddev_samp", "std"),
    ),
    AggregateSpec("stddev_pop", "the standard deviation of a population", _double, _SQUARES),
    AggregateSpec(
        "variance",
        "the variance of a sample, null of one value",
        _double,
        _SQUARES,
        aliases=("var_samp",),
    ),
    AggregateSpec("var_pop", "the variance of a population", _double, _SQUARES),
    AggregateSpec(
        "total",
        "the sum in a type that has room for it, 0 over nothing",
        _total,
        Kept("total", invertible=_is_exact),
        fails=True,
        empty=0,
        internal=True,
    ),
)

_TABLE = {entry.name: entry for entry in _ENTRIES}
AGGREGATES: Mapping[str, AggregateSpec] = MappingProxyType(_TABLE)
"""The aggregates by their names, aliases apart."""

_NAMES = {
    name: entry.name
    for entry in _ENTRIES
    if not entry.internal
    for name in (entry.name, *entry.aliases)
}
NAMES: Mapping[str, str] = MappingProxyType(_NAMES)
"""From every name and alias to the aggregate's name."""
