"""Rules about aggregates and results by key: running ones, and those built from others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from hydro_core.catalog.aggregates import (
    AGGREGATES,
    Named,
    has_inverse,
    merging,
    moving_parts,
    moving_split,
    running_parts,
)
from hydro_core.catalog.classes import ByKey, Summary
from hydro_core.catalog.group import AGGREGATE
from hydro_core.catalog.internal import MOVING_AGGREGATE, RUNNING_OVER, RUNNING_TOP, running
from hydro_core.catalog.ordered import OVER, TOP
from hydro_core.catalog.registry import CATALOG
from hydro_core.catalog.spec import Aggregate, Args, OpSpec
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.tree import Const, Expr, Fn, Op, Param
from hydro_core.functions.views import ITEM, field_of
from hydro_core.optimize.rule import GLOBAL, Line, lines
from hydro_core.types.item import ItemType, Row

# Facts about aggregates: incremental ones, and aggregates that are computed from others.


Found = tuple[str, tuple[Args, ...]]
"""A fact about arguments that have no number yet."""


def facts_of(args: Args, item: ItemType, output: ItemType) -> Iterator[Found]:
    """The facts about an aggregate with these arguments, over items of a type."""
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
    """Facts about aggregates that can be updated from their results: over a history, or with
    retractions.
    """
    if merging(args["aggregates"]) is not None:
        yield "mergeable", (args,)
    if has_inverse(args["aggregates"]) and isinstance(item, Row) and _is_exact(args, item):
        yield "moves", (args,)


def _is_exact(args: Args, item: Row) -> bool:
    """True if retractions can be applied exactly to the results for such rows: sums of doubles are
    rounded.
    """
    return all(moving_split(a, item) == (a,) for _, a in args["aggregates"])


def _distinct(args: Args, item: Row, output: Row) -> Iterator[Found]:
    """Facts about aggregates over distinct values: alone, or apart from others of the key."""
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
    """True if the result is the same over the distinct rows of these columns."""
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
    """The aggregate that gives the same over distinct rows; `there`: true if no counted column is
    null.
    """
    counted = AGGREGATES[aggregate.function].over_distinct
    return Aggregate(counted, (there,)) if counted else aggregate


def _all_there(columns: tuple[str, ...], item: Row) -> Fn:
    tests: tuple[Expr, ...] = tuple(
        Op("is not", (field_of(Param(ITEM), c), Const(None))) for c in columns
    )
    tree = tests[0] if len(tests) == 1 else Op("and", tests)
    return replace(function_of(tree, (ITEM,)), name="all_there", over=(item,))


# Rules about keyed results: their stored state, and their updates from tick to tick.


RESULTS: Mapping[OpSpec, OpSpec] = {
    op: over_all
    for op in CATALOG.values()
    if isinstance(op.cls, ByKey) and (over_all := running(op)) is not None
}
"""By keyed result: its incremental operator, if there is one."""

_GOES_ON: Mapping[Summary, Line] = {
    Summary.FOLD: ("the fold goes on from where it was", "(accumulates ?f)"),
    Summary.REDUCTION: ("the reduction goes on from where it was", "(accumulates ?f)"),
    Summary.LATEST: ("a row that was not the latest of its key will not become it",),
    Summary.AGGREGATES: ("the aggregates are merged with those of the batch", "(mergeable ?f)"),
}
"""By kind of result: why it can be updated from new items, and the condition."""


def variants(op: OpSpec) -> Mapping[str, Mapping[str, object]]:
    """By suffix of a result's shapes, keyed and global: arguments that select the shape."""
    over_all = RESULTS.get(op, op)
    defaults = Args(tuple((a.name, a.default) for a in op.args))
    if over_all.at(defaults).zero == over_all.zero:
        return {"": {}}
    return {"": {"by": ("k",)}, GLOBAL: {"by": None}}


def _title(op: OpSpec, variant: str) -> str:
    return f"{op.name}{variant}".replace("_", "-").replace(":", "-")


RUNNING: tuple[Line, ...] = (
    *(
        (
            f"{_title(op, variant)}-running",
            f"({op.name}{variant} ?f (persist ?b)) => ({over_all.name}{variant} ?f ?b)",
            *_GOES_ON[op.cls.summary],
        )
        for op, over_all in RESULTS.items()
        if isinstance(op.cls, ByKey)
        for variant in variants(op)
    ),
    *(
        (
            f"{_title(TOP, variant)}-running",
            f"({TOP.name}{variant} ?f (persist ?b)) => ({RUNNING_TOP.name}{variant} ?f ?b)",
            "a row that was not among the first of its key will not come to be",
        )
        for variant in ("", GLOBAL)
    ),
    (
        "over-running",
        f"({OVER.name} ?f (persist ?b)) => (select ?h ({RUNNING_OVER.name} ?g ?b))",
        "what a row is told of those before it follows from the last rows of its key",
        "(tails ?f ?g ?h)",
    ),
    *(
        line
        for variant in variants(AGGREGATE)
        for line in lines(f"""
{_title(AGGREGATE, variant)}-parts: (aggregate{variant} ?f (persist ?b))
    => (aggregate_result ?h (aggregate{variant} ?g (persist ?b)))
    when (parts ?f ?g ?h)
    the aggregates are made of parts that can be merged
{_title(AGGREGATE, variant)}-distinct: (aggregate{variant} ?f (persist ?b))
    => (aggregate{variant} ?g (unique (select ?s (persist ?b))))
    when (distinct_of ?f ?g ?s)
    how often a value is there does not matter to these aggregates
""")
    ),
    *lines("""
aggregate-apart: (aggregate ?f (persist ?b))
    => (select ?p (join ?j (aggregate ?g (persist ?b)) (aggregate ?h (persist ?b))))
    when (apart ?f ?g ?h ?j ?p)
    aggregates of one key may be computed apart
"""),
)
BY_HAND: tuple[Line, ...] = tuple(
    (
        f"{_title(op, variant)}-by-hand",
        f"?x => ({over_all.name}{variant} ?f ?d)",
        "by induction over ticks: a result counts for the items that it was made of",
        f"?x = ({op.name}{variant} ?f (chain (prev ?x) ?d))",
        "(absorbs ?f)",
    )
    for op, over_all in RESULTS.items()
    # the start of a fold would count again in each tick
    if isinstance(op.cls, ByKey) and op.cls.summary is not Summary.FOLD
    for variant in variants(op)
)
MOVING: tuple[Line, ...] = tuple(
    line
    for variant in variants(AGGREGATE)
    for line in lines(f"""
{_title(AGGREGATE, variant)}-moving-parts: (aggregate{variant} ?f ?x)
    => (aggregate_result ?h (aggregate{variant} ?g ?x))
    when (moving ?f ?g ?h)
    the aggregates are made of counts and exact totals
{_title(AGGREGATE, variant)}-moving: (aggregate{variant} ?f ?x)
    => ({MOVING_AGGREGATE.name}{variant} ?f ?x)
    when (moves ?f)
    counts and totals go on by changes: what comes is added, what goes is taken away
""")
)
INTRODUCED: tuple[tuple[OpSpec, Mapping[str, object]], ...] = (
    tuple(
        (result, args)
        for op, over_all in RESULTS.items()
        for args in variants(op).values()
        for result in ((op, over_all, MOVING_AGGREGATE) if op is AGGREGATE else (over_all,))
    )
    + tuple((RUNNING_TOP, {"n": 1, "by": by, "order": ("v",)}) for by in (("k",), None))
    + ((RUNNING_OVER, {"by": ("k",), "order": ("v",)}),)
)
"""The results that these rules introduce, with arguments that select their shapes."""
