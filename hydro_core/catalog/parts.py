"""Aggregates in parts: what is stored of them, how it is merged, and what they are made of.

A mean is not made of means, but of a total and a count; of the greatest row by some order the order
must be known. So an aggregate over a history is stored as parts, each of which can be merged with
that of a batch. Over a window the parts must also give back what has left: counts and exact totals
do, and the number of rows says which keys are still there. What an aggregate is made of stands in
its entry (`Kept`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from hydro_core.catalog.aggregates import AGGREGATES, AllValues, Kept, argument_type
from hydro_core.catalog.spec import Aggregate, Args
from hydro_core.functions.fn import Fn
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.tree import Bind, Param
from hydro_core.functions.views import ITEM, field_of
from hydro_core.types.item import DOUBLE, LONG, ItemType, Row

Named = tuple[str, Aggregate]
Split = tuple[Aggregate, ...] | None
"""The parts of an aggregate; only itself, where its own result goes on."""


def _kept(function: str) -> Kept | None:
    kept = AGGREGATES[function].kept
    return kept if isinstance(kept, Kept) else None


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


def _split(kept: Kept, aggregate: Aggregate, of: ItemType | None) -> Split:
    if not kept.in_parts(of):
        return None
    return tuple(Aggregate(part, aggregate.arguments) for part in kept.parts)


def _inverts(function: str, of: ItemType | None) -> bool:
    kept = _kept(function)
    return kept is not None and kept.invertible(of)


def _first(aggregate: Aggregate, item: ItemType) -> ItemType | None:
    """The type of its first argument."""
    return argument_type(aggregate.arguments[0], item) if aggregate.arguments else None
