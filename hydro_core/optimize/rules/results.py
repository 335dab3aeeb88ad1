"""Rules about results by key: what is stored of them, and how they go on from tick to tick."""

from __future__ import annotations

from collections.abc import Mapping

from hydro_core.catalog.classes import ByKey
from hydro_core.catalog.group import AGGREGATE
from hydro_core.catalog.internal import MOVING_AGGREGATE, RUNNING_OVER, RUNNING_TOP, running
from hydro_core.catalog.ordered import OVER, TOP
from hydro_core.catalog.registry import CATALOG
from hydro_core.catalog.spec import Args, OpSpec
from hydro_core.catalog.variants import Summary
from hydro_core.optimize.rule import Line, lines
from hydro_core.optimize.shape import GLOBAL

RESULTS: Mapping[OpSpec, OpSpec] = {
    op: over_all
    for op in CATALOG.values()
    if isinstance(op.cls, ByKey) and (over_all := running(op)) is not None
}
"""The results by key that have a running form, with that form."""

_GOES_ON: Mapping[Summary, Line] = {
    Summary.FOLD: ("the fold goes on from where it was", "(accumulates ?f)"),
    Summary.REDUCTION: ("the reduction goes on from where it was", "(accumulates ?f)"),
    Summary.LATEST: ("a row that was not the latest of its key will not become it",),
    Summary.AGGREGATES: ("the aggregates are merged with those of the batch", "(mergeable ?f)"),
}
"""Why a result goes on by what is new, and where."""


def variants(op: OpSpec) -> Mapping[str, Mapping[str, object]]:
    """What follows the name of a result's shapes, with arguments of such: by key, and of all."""
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
    # a fold starts from a value that would count again in each tick
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
"""The results that these rules bring in, as they are with these arguments."""
