"""Named aggregates: Spark's, each once, with their partial results and how these merge."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from hydro_core.catalog.spec import Aggregate, Args, TypeProblem
from hydro_core.catalog.type_rules import Types, columns_of, given_by
from hydro_core.errors import beginning
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.read import read_function
from hydro_core.functions.tree import Bind, Fn, Param
from hydro_core.functions.views import ITEM, field_of
from hydro_core.types.item import (
    BOOLEAN,
    DOUBLE,
    LONG,
    UNKNOWN,
    Array,
    Decimal,
    ItemType,
    Row,
    Unknown,
    is_integer,
    is_numeric,
)

# The named aggregates: Spark's, each once, with what analyses and rules may rely on.
#
# All skip nulls but `count()`, `first` and `last`. They are deterministic: `collect_set`, and
# `collect_list` of an unordered stream, give their elements in ascending order, and `any_value`
# gives the smallest.


EXACT_DIGITS = 19
"""Of longer decimals no engine has the digits that it takes to divide a total once."""


def _is_exact(item: ItemType | None) -> bool:
    """Whether sums of such numbers are not rounded."""
    return item is not None and (is_integer(item) or isinstance(item, Decimal))


@dataclass(frozen=True, slots=True)
class PartialState:
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
    kept: PartialState | AllValues
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
        return self.fails or (isinstance(self.kept, PartialState) and bool(self.kept.of_parts))


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


_COUNTED = PartialState("sum", invertible=lambda _: True)
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
        PartialState("sum", parts=("total", "count")),
        fails=True,
    ),
    AggregateSpec(
        "min", "the smallest", _same, PartialState("min"), idempotent=True, extreme="least"
    ),
    AggregateSpec(
        "max", "the greatest", _same, PartialState("max"), idempotent=True, extreme="greatest"
    ),
    AggregateSpec(
        "avg",
        "the mean",
        _average,
        PartialState(parts=("total", "count"), digits=EXACT_DIGITS),
        fails=True,
        aliases=("mean",),
    ),
    AggregateSpec(
        "min_by",
        "the first argument where the second is smallest; null orders do not count, "
        "ties give the greatest value",
        _same,
        PartialState("min_by", companion="min"),
        least=2,
        most=2,
        idempotent=True,
    ),
    AggregateSpec(
        "max_by",
        "the first argument where the second is greatest; null orders do not count, "
        "ties give the greatest value",
        _same,
        PartialState("max_by", companion="max"),
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
        PartialState("any_value"),
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
        PartialState("bool_and"),
        idempotent=True,
        extreme="least",
        aliases=("every",),
    ),
    AggregateSpec(
        "bool_or",
        "whether any is true",
        _boolean,
        PartialState("bool_or"),
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
        PartialState("total", invertible=_is_exact),
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


# Aggregates in parts: what is stored of them, how it is merged, and what they are made of.
#
# A mean is not made of means, but of a total and a count; of the greatest row by some order the
# order must be known. So an aggregate over a history is stored as parts, each of which can be
# merged with that of a batch. Over a window the parts must also give back what has left: counts
# and exact totals do, and the number of rows says which keys are still there. What an aggregate
# is made of stands in its entry (`PartialState`).


Named = tuple[str, Aggregate]
Split = tuple[Aggregate, ...] | None
"""The parts of an aggregate; only itself, where its own result goes on."""


def _kept(function: str) -> PartialState | None:
    kept = AGGREGATES[function].kept
    return kept if isinstance(kept, PartialState) else None


MERGES: Mapping[str, str] = MappingProxyType(
    {f: kept.merge for f in AGGREGATES if (kept := _kept(f)) and kept.merge and not kept.companion}
)
"""The aggregates that are merged from their own results, each with the aggregate that does it."""
EXTREMES: Mapping[str, str] = MappingProxyType(
    {f: kept.companion for f in AGGREGATES if (kept := _kept(f)) and kept.companion}
)
"""The aggregates that are merged with the help of their order's extreme."""
ITSELF = "any_value"
"""The aggregate of a single value: what makes a result of one part."""
ROWS = "rows"
COUNT = Aggregate("count")
"""How many rows there are."""


@dataclass(frozen=True, slots=True)
class Parts:
    """An aggregate in parts: the arguments that give them, and those that make the results."""

    given: Args
    made: Args


def merging(aggregates: Sequence[Named]) -> tuple[Named, ...] | None:
    """The aggregates that merge results of these; None where they do not tell enough."""
    found = []
    for name, aggregate in aggregates:
        kept = _kept(aggregate.function)
        if kept is None or not kept.merge:
            return None
        columns = [name]
        if kept.companion:
            order = Aggregate(kept.companion, aggregate.arguments[1:])
            columns += [column for column, one in aggregates if one == order][:1]
            if len(columns) < 2:
                return None
        found.append((name, Aggregate(kept.merge, tuple(columns))))
    return tuple(found)


def running_parts(args: Args, item: ItemType, output: ItemType) -> Parts | None:
    """The parts of an aggregate over a history; None where there are none, or it needs none."""
    if merging(args["aggregates"]) is not None:
        return None
    return _in_parts(args, item, output, running_split, ())


def moving_parts(args: Args, item: ItemType, output: ItemType) -> Parts | None:
    """The parts of an aggregate over a window; None where what leaves cannot be taken back."""
    return _in_parts(args, item, output, moving_split, (COUNT,))


def has_inverse(aggregates: Sequence[Named]) -> bool:
    """Whether what left can be taken out of these parts, which begin with the number of rows.

    What is rounded is no part of a window: see `moving_split`.
    """
    first = next(iter(aggregates), None)
    return (
        first is not None
        and first[1] == COUNT
        and all(_inverts(a.function, LONG) for _, a in aggregates)
    )


def resumes(function: str) -> bool:
    """Whether something smaller than the values is stored of it, of most numbers at least."""
    return _kept(function) is not None


def moves(function: str, *, exact: bool) -> bool:
    """Whether what leaves a window can be taken out, of `exact` numbers, or of any."""
    return _inverted(Aggregate(function), LONG if exact else DOUBLE) is not None


def why_no_parts(function: str) -> str:
    """Why an aggregate over a history is not stored in parts."""
    kept = AGGREGATES[function].kept
    assert isinstance(kept, AllValues), f"{function} is stored in parts"
    return f"`{function}` {kept.why}"


def why_not_moving(function: str) -> str:
    """Why an aggregate over a window reads all of it."""
    if moves(function, exact=True):
        return f"`{function}` of these numbers is rounded, so what leaves cannot be taken out again"
    return f"`{function}` has no inverse: it cannot be told what it was without what leaves"


def splits_by_type(function: str) -> bool:
    """Whether it depends on the type of the numbers whether it is made of parts."""
    kept = _kept(function)
    return kept is not None and kept.digits is not None


def _in_parts(
    args: Args,
    item: ItemType,
    output: ItemType,
    split: Callable[[Aggregate, ItemType], Split],
    always: tuple[Aggregate, ...],
) -> Parts | None:
    if not isinstance(output, Row) or not isinstance(item, Row):
        return None
    own = {a: name for name, a in reversed(args["aggregates"])}
    taken = {*(args["by"] or ()), *own.values(), *(name for name, _ in args["aggregates"])}
    parts: dict[Aggregate, str] = {}

    def part(aggregate: Aggregate, base: str) -> str:
        if aggregate not in parts:
            name = own.get(aggregate, base)
            while aggregate not in own and name in taken:
                name += "_"
            taken.add(name)
            parts[aggregate] = name
        return parts[aggregate]

    for aggregate in always:
        part(aggregate, ROWS)
    made = []
    for name, aggregate in args["aggregates"]:
        needed = split(aggregate, item)
        if needed is None:
            return None
        names = tuple(part(a, f"{name}_{a.function}") for a in needed)
        made.append((name, _made(aggregate.function, names, alone=needed[0] == aggregate)))
    given = args.with_(aggregates=tuple((name, a) for a, name in parts.items()))
    entries = (("by", args["by"]), ("aggregates", tuple(made)), ("schema", output))
    return Parts(given, Args(entries))


def _made(function: str, parts: tuple[str, ...], *, alone: bool) -> Aggregate:
    """What makes the result of the columns that its parts are."""
    if alone:
        return Aggregate(ITSELF, parts)
    kept = _kept(function)
    written = kept.function if kept else None
    if written is None:
        return Aggregate(function, parts)
    return Aggregate(ITSELF, (_of(written, parts),))


def _of(made: Fn, parts: tuple[str, ...]) -> Fn:
    """The function of a row that gives the result of the parts in its columns."""
    assert made.tree is not None, f"{made.source} cannot be read"
    tree = made.tree
    for param, column in reversed(list(zip(made.params, parts, strict=True))):
        tree = Bind("let", (param,), field_of(Param(ITEM), column), tree)
    return function_of(tree, (ITEM,))


def running_split(aggregate: Aggregate, item: ItemType) -> Split:
    """What is stored of an aggregate over a history; None where that is all values."""
    kept = _kept(aggregate.function)
    if kept is None:
        return None
    if kept.companion:
        return aggregate, Aggregate(kept.companion, aggregate.arguments[1:])
    if kept.merge:
        return (aggregate,)
    return _split(kept, aggregate, _first(aggregate, item))


def moving_split(aggregate: Aggregate, item: ItemType) -> Split:
    """What is stored of an aggregate over rows that go again; None where that is all of them."""
    return _inverted(aggregate, _first(aggregate, item))


def _inverted(aggregate: Aggregate, of: ItemType | None) -> Split:
    kept = _kept(aggregate.function)
    if kept is None:
        return None
    if kept.invertible(of):
        return (aggregate,)
    if not all(_inverts(part, of) for part in kept.parts):
        return None
    return _split(kept, aggregate, of)


def _split(kept: PartialState, aggregate: Aggregate, of: ItemType | None) -> Split:
    if not kept.in_parts(of):
        return None
    return tuple(Aggregate(part, aggregate.arguments) for part in kept.parts)


def _inverts(function: str, of: ItemType | None) -> bool:
    kept = _kept(function)
    return kept is not None and kept.invertible(of)


def _first(aggregate: Aggregate, item: ItemType) -> ItemType | None:
    """The type of its first argument."""
    return argument_type(aggregate.arguments[0], item) if aggregate.arguments else None
