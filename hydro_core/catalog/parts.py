"""Aggregates in parts: what is stored of them, how it is merged, and what they are made of.

A mean is not made of means, but of a total and a count; of the greatest row by some order the order
must be known. So an aggregate over a history is stored as parts, each of which can be merged with
that of a batch. Over a window the parts must also give back what has left: counts and exact totals
do, and the number of rows says which keys are still there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from hydro_core.catalog.aggregates import AGGREGATES, argument_type
from hydro_core.catalog.spec import Aggregate, Args
from hydro_core.types.item import Decimal, ItemType, Row, is_integer

Named = tuple[str, Aggregate]
Split = tuple[str, tuple[Aggregate, ...]] | None
"""What makes the result, and of which parts."""

MERGES: Mapping[str, str] = MappingProxyType(
    {
        "count": "sum",
        "count_if": "sum",
        "sum": "sum",
        "total": "total",
        "min": "min",
        "max": "max",
        "any_value": "any_value",
        "bool_and": "bool_and",
        "bool_or": "bool_or",
    }
)
"""The aggregates that are merged from their own results, each with the aggregate that does it."""
EXTREMES: Mapping[str, str] = MappingProxyType({"min_by": "min", "max_by": "max"})
"""The aggregates that are merged with the help of their order's extreme."""
EXACT_DIGITS = 14
"""A mean of longer decimals might be rounded twice."""
ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Parts:
    """An aggregate in parts: the arguments that give them, and those that make the results."""

    given: Args
    made: Args


def merging(aggregates: Sequence[Named]) -> tuple[Named, ...] | None:
    """The aggregates that merge results of these; None where they do not tell enough."""
    found = []
    for name, aggregate in aggregates:
        merges = _merge(name, aggregate, aggregates)
        if merges is None:
            return None
        found.append((name, merges))
    return tuple(found)


def _merge(name: str, aggregate: Aggregate, among: Sequence[Named]) -> Aggregate | None:
    if aggregate.function in MERGES:
        return Aggregate(MERGES[aggregate.function], (name,))
    if aggregate.function not in EXTREMES:
        return None
    wanted = Aggregate(EXTREMES[aggregate.function], aggregate.arguments[1:])
    order = next((n for n, a in among if a == wanted), None)
    return None if order is None else Aggregate(aggregate.function, (name, order))


def running_parts(args: Args, item: ItemType, output: ItemType) -> Parts | None:
    """The parts of an aggregate over a history; None where there are none, or it needs none."""
    if merging(args["aggregates"]) is not None:
        return None
    return _in_parts(args, item, output, _running, ())


def moving_parts(args: Args, item: ItemType, output: ItemType) -> Parts | None:
    """The parts of an aggregate over a window; None where what leaves cannot be taken back."""
    return _in_parts(args, item, output, _moving, (Aggregate("count"),))


def shard_parts(args: Args, item: ItemType, output: ItemType) -> Parts | None:
    """The parts of an aggregate over shards; None where no few numbers of each can be merged.

    Sums of integers and decimals are totals: that of one shard may be beyond the result's type.
    """
    return _in_parts(args, item, output, _of_shards, ())


def has_inverse(aggregates: Sequence[Named]) -> bool:
    """Whether what left can be taken out of these parts, which begin with the number of rows."""
    first = next(iter(aggregates), None)
    return (
        first is not None
        and first[1] == Aggregate("count")
        and all(AGGREGATES[a.function].invertible for _, a in aggregates)
    )


def can_go_on(function: str) -> bool:
    """Whether the aggregate over a history is stored in parts, of most numbers."""
    return function in MERGES or function in EXTREMES or function == "avg"


def why_no_parts(function: str) -> str:
    """Why an aggregate over a history is not stored in parts."""
    if function in {"collect_list", "collect_set", "first", "last"}:
        return f"`{function}` gives the values themselves, so nothing smaller can be stored of them"
    if function in {"median", "count_distinct"}:
        return f"`{function}` needs all values: no few numbers made of them can be merged"
    return f"`{function}` squares differences from a mean that every tick moves"


def why_not_moving(function: str, *, exact: bool) -> str:
    """Why an aggregate over a window reads all of it."""
    if function in {"sum", "avg"} and not exact:
        return f"`{function}` of these numbers is rounded, so what leaves cannot be taken out again"
    return f"`{function}` has no inverse: it cannot be told what it was without what leaves"


def _in_parts(
    args: Args,
    item: ItemType,
    output: ItemType,
    split: Callable[[Aggregate, Row], Split],
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
        found = split(aggregate, item)
        if found is None:
            return None
        function, needed = found
        names = tuple(part(a, f"{name}_{a.function}") for a in needed)
        made.append((name, Aggregate(function, names)))
    given = args.with_(aggregates=tuple((name, a) for a, name in parts.items()))
    entries = (("by", args["by"]), ("aggregates", tuple(made)), ("schema", output))
    return Parts(given, Args(entries))


def _running(aggregate: Aggregate, item: Row) -> Split:
    function, arguments = aggregate.function, aggregate.arguments
    if function in MERGES:
        return "any_value", (aggregate,)
    if function in EXTREMES:
        return "any_value", (aggregate, Aggregate(EXTREMES[function], arguments[1:]))
    if function == "avg" and _is_mean_of_parts(argument_type(arguments[0], item)):
        return "avg", (Aggregate("total", arguments), Aggregate("count", arguments))
    return None


def _of_shards(aggregate: Aggregate, item: Row) -> Split:
    exact = aggregate.function == "sum" and is_exact(aggregate, item)
    return (_moving if exact else _running)(aggregate, item)


def _moving(aggregate: Aggregate, item: Row) -> Split:
    function, arguments = aggregate.function, aggregate.arguments
    if function in {"count", "count_if"}:
        return "any_value", (aggregate,)
    if function not in {"sum", "avg"} or not is_exact(aggregate, item):
        return None
    return function, (Aggregate("total", arguments), Aggregate("count", arguments))


def is_exact(aggregate: Aggregate, item: ItemType) -> bool:
    """Whether sums of what the aggregate is over are not rounded."""
    of = argument_type(aggregate.arguments[0], item)
    if aggregate.function == "avg":
        return is_integer(of) or (isinstance(of, Decimal) and of.precision <= EXACT_DIGITS)
    return is_integer(of) or isinstance(of, Decimal)


def _is_mean_of_parts(of: ItemType) -> bool:
    return not isinstance(of, Decimal) or of.precision <= EXACT_DIGITS
