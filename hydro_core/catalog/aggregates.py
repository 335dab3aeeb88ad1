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

# Spark's aggregates, each once, with the properties that analyses and rules rely on.
#
# All skip nulls except `count()`, `first` and `last`. They are deterministic: `collect_set`, and
# `collect_list` of an unordered stream, give their elements in ascending order, and `any_value`
# gives the smallest.


EXACT_DIGITS = 19
"""The largest precision of decimals whose total is divided with one rounding; for longer ones no
engine has enough digits.
"""


def _is_exact(item: ItemType | None) -> bool:
    """True if sums of such numbers are not rounded."""
    return item is not None and (is_integer(item) or isinstance(item, Decimal))


@dataclass(frozen=True, slots=True)
class PartialState:
    """The stored state of an incremental aggregate, in place of all values.

    The state is the result itself, if results can be merged, or the results of other aggregates
    over the same arguments, its parts. If an aggregate has both, the parts are stored where rows
    are retracted, or where the result of some rows may be beyond its type though that of all is
    not.
    """

    merge: str = ""
    """The aggregate that merges several results."""
    companion: str = ""
    """The aggregate of the last argument that is needed to merge results."""
    parts: tuple[str, ...] = ()
    of_parts: str = ""
    """The result as a function of the parts in their order.

    Empty if the engines have one that rounds and fails as the aggregate does.
    """
    digits: int | None = None
    """The largest precision of decimals that have parts: the result of longer ones is not rounded
    once.
    """
    invertible: Callable[[ItemType | None], bool] = lambda _: False
    """True if the state without some rows follows from theirs, for a first argument of the type;
    None: no argument.
    """

    def in_parts(self, item: ItemType | None) -> bool:
        """True if the aggregate has parts, for a first argument of the type."""
        if self.digits is not None and isinstance(item, Decimal) and item.precision > self.digits:
            return False
        return bool(self.parts)

    @property
    def function(self) -> Fn | None:
        """The function from the parts to the result; None if the engines have one."""
        if not self.of_parts:
            return None
        return read_function(ast.parse(self.of_parts, mode="eval").body, {})


@dataclass(frozen=True, slots=True)
class AllValues:
    """An aggregate without a smaller state than all values, with the reason as a message."""

    why: str


@dataclass(frozen=True, slots=True)
class AggregateSpec:
    """An aggregate function; its result over nothing is `empty`."""

    name: str
    summary: str
    result: Callable[[Types], ItemType]
    kept: PartialState | AllValues
    """The state that is stored from tick to tick."""
    least: int = 1
    most: int | None = 1
    needs_order: bool = False
    follows_order: bool = False
    idempotent: bool = False
    """True if the result over x + x is that over x."""
    empty: object = None
    """The result over nothing."""
    aliases: tuple[str, ...] = ()
    fails: bool = False
    """True if the result may be beyond its type."""
    over_distinct: str = ""
    """For an aggregate that counts distinct values: the aggregate that gives the same over distinct
    rows, of the condition that no argument is null.
    """
    internal: bool = False
    """True if plans may have it and programs cannot name it."""
    extreme: Literal["", "least", "greatest"] = ""
    """Not empty if the result is this one of the non-null values."""

    def takes(self, count: int) -> bool:
        """True if the aggregate may have so many arguments."""
        return self.least <= count and (self.most is None or count <= self.most)

    @property
    def may_fail(self) -> bool:
        """True if a tick may fail on the result, or on the function of its parts."""
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
    """The type of an aggregate's argument."""
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
    """A type with room for the sum of any number of values."""
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
"""The aggregates by their names, without aliases."""

_NAMES = {
    name: entry.name
    for entry in _ENTRIES
    if not entry.internal
    for name in (entry.name, *entry.aliases)
}
NAMES: Mapping[str, str] = MappingProxyType(_NAMES)
"""From every name and alias to the aggregate's name."""


# Aggregates in parts: their stored state, and how it is merged.
#
# A mean cannot be computed from means, but from a total and a count; the row that is greatest by an
# order needs the value of the order. So an aggregate over a history is stored as parts, each of
# which can be merged with that of a batch. Over a window the parts must also support retractions.
# Counts and exact totals do, and the number of rows says which keys still exist. The parts of an
# aggregate are in its entry (`PartialState`).


Named = tuple[str, Aggregate]
Split = tuple[Aggregate, ...] | None
"""The parts of an aggregate; only itself if its own result can be updated; None if there are no
parts.
"""


def _kept(function: str) -> PartialState | None:
    kept = AGGREGATES[function].kept
    return kept if isinstance(kept, PartialState) else None


MERGES: Mapping[str, str] = MappingProxyType(
    {f: kept.merge for f in AGGREGATES if (kept := _kept(f)) and kept.merge and not kept.companion}
)
"""The aggregates whose own results are merged, each with the aggregate that merges them."""
EXTREMES: Mapping[str, str] = MappingProxyType(
    {f: kept.companion for f in AGGREGATES if (kept := _kept(f)) and kept.companion}
)
"""The aggregates whose results are merged by the minimum or maximum of their order."""
ITSELF = "any_value"
"""The aggregate of a single value, which restores a result from one part."""
ROWS = "rows"
COUNT = Aggregate("count")
"""The number of rows."""


@dataclass(frozen=True, slots=True)
class Parts:
    """An aggregate in parts: the arguments that compute them, and those that compute the
    results.
    """

    given: Args
    made: Args


def merging(aggregates: Sequence[Named]) -> tuple[Named, ...] | None:
    """The aggregates that merge results of these; None if some results cannot be merged."""
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
    """The parts of an aggregate over a history; None if there are none, or if it needs none."""
    if merging(args["aggregates"]) is not None:
        return None
    return _in_parts(args, item, output, running_split, ())


def moving_parts(args: Args, item: ItemType, output: ItemType) -> Parts | None:
    """The parts of an aggregate over a window; None if retractions cannot be applied to them."""
    return _in_parts(args, item, output, moving_split, (COUNT,))


def has_inverse(aggregates: Sequence[Named]) -> bool:
    """True if retractions can be applied to these parts, which begin with the number of rows.

    Rounded results are no parts of a window: see `moving_split`.
    """
    first = next(iter(aggregates), None)
    return (
        first is not None
        and first[1] == COUNT
        and all(_inverts(a.function, LONG) for _, a in aggregates)
    )


def resumes(function: str) -> bool:
    """True if the aggregate has a smaller state than all values, for most numbers at least."""
    return _kept(function) is not None


def moves(function: str, *, exact: bool) -> bool:
    """True if retractions can be applied to the state, of `exact` numbers, or of any."""
    return _inverted(Aggregate(function), LONG if exact else DOUBLE) is not None


def why_no_parts(function: str) -> str:
    """The reason why an aggregate over a history is not stored in parts."""
    kept = AGGREGATES[function].kept
    assert isinstance(kept, AllValues), f"{function} is stored in parts"
    return f"`{function}` {kept.why}"


def why_not_moving(function: str) -> str:
    """The reason why an aggregate over a window reads all of it."""
    if moves(function, exact=True):
        return f"`{function}` of these numbers is rounded, so what leaves cannot be taken out again"
    return f"`{function}` has no inverse: it cannot be told what it was without what leaves"


def splits_by_type(function: str) -> bool:
    """True if the aggregate has parts for some types of numbers only."""
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
    taken = {*(args["by"] or ()), *(name for name, _ in args["aggregates"]), *output.names}
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
    """The aggregate that computes the result from the columns of its parts."""
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
    """The stored state of an aggregate over a history; None if it is all values."""
    kept = _kept(aggregate.function)
    if kept is None:
        return None
    if kept.companion:
        return aggregate, Aggregate(kept.companion, aggregate.arguments[1:])
    if kept.merge:
        return (aggregate,)
    return _split(kept, aggregate, _first(aggregate, item))


def moving_split(aggregate: Aggregate, item: ItemType) -> Split:
    """The stored state of an aggregate over rows with retractions; None if it is all rows."""
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
    """The type of the first argument; None if there is none."""
    return argument_type(aggregate.arguments[0], item) if aggregate.arguments else None
