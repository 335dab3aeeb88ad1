"""What is known of aggregates: which go on from their results, and what others are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hydro_core.catalog.aggregates import AGGREGATES
from hydro_core.catalog.parts import (
    Named,
    has_inverse,
    merging,
    moving_parts,
    moving_split,
    running_parts,
)
from hydro_core.catalog.spec import Aggregate, Args
from hydro_core.functions.fn import Fn
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.tree import Const, Expr, Op, Param
from hydro_core.functions.views import ITEM, field_of
from hydro_core.types.item import ItemType, Row

Found = tuple[str, tuple[Args, ...]]
"""A fact of arguments, which are to be numbered."""


def facts_of(args: Args, item: ItemType, output: ItemType) -> Iterator[Found]:
    """What is known of an aggregate with these arguments, over items of a type."""
    yield from _alone(args, item)
    if not isinstance(item, Row) or not isinstance(output, Row):
        return
    parts = running_parts(args, item, output)
    if parts is not None:
        yield "parts", (args, parts.given, parts.made)
        yield from _alone(parts.given, item)
    moving = moving_parts(args, item, output)
    if moving is not None:
        yield "moving", (args, moving.given, moving.made)
        yield from _alone(moving.given, item)
    if parts is None and merging(args["aggregates"]) is None:
        yield from _distinct(args, item, output)


def _alone(args: Args, item: ItemType) -> Iterator[Found]:
    """Whether the aggregates go on as they are: over a history, and where rows go again."""
    if merging(args["aggregates"]) is not None:
        yield "mergeable", (args,)
    if has_inverse(args["aggregates"]) and isinstance(item, Row) and _is_exact(args, item):
        yield "moves", (args,)


def _is_exact(args: Args, item: Row) -> bool:
    """Whether what is left of such rows is told by what has gone: sums of doubles are rounded."""
    return all(moving_split(a, item) == (a,) for _, a in args["aggregates"])


def _distinct(args: Args, item: Row, output: Row) -> Iterator[Found]:
    """Aggregates that see distinct values: alone, or apart from the others of the key."""
    named: tuple[Named, ...] = args["aggregates"]
    counts = [a for _, a in named if AGGREGATES[a.function].over_distinct]
    if not counts or any(isinstance(c, Fn) for a in counts for c in a.arguments):
        return
    first = counts[0].arguments
    alike = [(n, a) for n, a in named if _is_over(a, first)]
    if len(alike) == len(named):
        yield from _of_distinct_rows(args, tuple(c for c in first if isinstance(c, str)), item)
        return
    if not args["by"]:
        return
    rest = tuple(x for x in named if x not in alike)
    one, other = (args.with_(aggregates=part) for part in (rest, tuple(alike)))
    join = Args((("on", args["by"]), ("how", "inner"), ("suffix", None), ("where", None)))
    order = Args((("columns", output.names), ("computed", ())))
    yield "apart", (args, one, other, join, order)
    for part in (one, other):
        names = {*args["by"], *(n for n, _ in part["aggregates"])}
        kept = Row(tuple(f for f in output.fields if f.name in names))
        yield from facts_of(part, item, kept)


def _is_over(aggregate: Aggregate, columns: tuple[str | Fn, ...]) -> bool:
    """Whether it is the same over the distinct rows of these columns."""
    spec = AGGREGATES[aggregate.function]
    if spec.over_distinct:
        return set(aggregate.arguments) == set(columns)
    return spec.idempotent and set(aggregate.arguments) <= set(columns)


def _of_distinct_rows(args: Args, columns: tuple[str, ...], item: Row) -> Iterator[Found]:
    kept = tuple(dict.fromkeys((*(args["by"] or ()), *columns)))
    rows = Args((("columns", kept), ("computed", ())))
    types = {f.name: f for f in item.fields}
    there = _all_there(columns, Row(tuple(types[n] for n in kept)))
    made = tuple((name, _over_rows(a, there)) for name, a in args["aggregates"])
    counted = args.with_(aggregates=made)
    yield "distinct_of", (args, counted, rows)
    yield from _alone(counted, item)


def _over_rows(aggregate: Aggregate, there: Fn) -> Aggregate:
    """What gives as much over distinct rows; `there`: whether all that is counted is there."""
    counted = AGGREGATES[aggregate.function].over_distinct
    return Aggregate(counted, (there,)) if counted else aggregate


def _all_there(columns: tuple[str, ...], item: Row) -> Fn:
    tests: tuple[Expr, ...] = tuple(
        Op("is not", (field_of(Param(ITEM), c), Const(None))) for c in columns
    )
    tree = tests[0] if len(tests) == 1 else Op("and", tests)
    return replace(function_of(tree, (ITEM,)), name="all_there", over=(item,))
