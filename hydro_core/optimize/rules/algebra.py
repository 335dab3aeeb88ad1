"""Rules about distinct items, negation and running results: what carries over to the next tick."""

from __future__ import annotations

from collections.abc import Iterator

from hydro_core.catalog.group import AGGREGATE, FOLD, FOLD_KEYED, LATEST, REDUCE, REDUCE_KEYED
from hydro_core.catalog.internal import MOVING_AGGREGATE, running
from hydro_core.catalog.itemwise import IDENTITY
from hydro_core.catalog.spec import OpSpec
from hydro_core.optimize.rule import Line


def _running(op: OpSpec, because: str, when: str = "", variant: str = "") -> Iterator[Line]:
    """A result over a history goes on by what is new."""
    over_all = running(op)
    assert over_all is not None, f"{op.name} has no running result"
    yield (
        f"{_title(op, variant)}-running",
        f"({op.name}{variant} ?f (persist ?b)) => ({over_all.name}{variant} ?f ?b)",
        because,
        *([when] if when else []),
    )


def _by_hand(op: OpSpec, variant: str = "") -> Line:
    """A result that takes the one of the tick before for one more item."""
    over_all = running(op)
    assert over_all is not None, f"{op.name} has no running result"
    return (
        f"{_title(op, variant)}-by-hand",
        f"?x => ({over_all.name}{variant} ?f ?d)",
        "by induction over ticks: a result counts for the items that it was made of",
        f"?x = ({op.name}{variant} ?f (chain (prev ?x) ?d))",
        "(absorbs ?f)",
    )


def _title(op: OpSpec, variant: str) -> str:
    return f"{op.name}{variant}".replace("_", "-").replace(":", "-")


def _of_aggregates(variant: str = "") -> Iterator[Line]:
    """Aggregates of a history, with keys or without."""
    op, name = f"{AGGREGATE.name}{variant}", _title(AGGREGATE, variant)
    because = "the aggregates are merged with those of the batch"
    yield from _running(AGGREGATE, because, "(mergeable ?f)", variant)
    yield (
        f"{name}-parts",
        f"({op} ?f (persist ?b)) => (aggregate_result ?h ({op} ?g (persist ?b)))",
        "the aggregates are made of parts that can be merged",
        "(parts ?f ?g ?h)",
    )
    yield (
        f"{name}-distinct",
        f"({op} ?f (persist ?b)) => ({op} ?g (unique (select ?s (persist ?b))))",
        "how often a value is there does not matter to these aggregates",
        "(distinct_of ?f ?g ?s)",
    )


def _of_changes(variant: str = "") -> Iterator[Line]:
    """Aggregates of what is told by its changes, with keys or without."""
    op, name = f"{AGGREGATE.name}{variant}", _title(AGGREGATE, variant)
    yield (
        f"{name}-moving-parts",
        f"({op} ?f ?x) => (aggregate_result ?h ({op} ?g ?x))",
        "the aggregates are made of counts and exact totals",
        "(moving ?f ?g ?h)",
    )
    yield (
        f"{name}-moving",
        f"({op} ?f ?x) => ({MOVING_AGGREGATE.name}{variant} ?f ?x)",
        "counts and totals go on by changes: what comes is added, what goes is taken away",
        "(moves ?f)",
    )


UNIQUE = (
    (
        "unique-split",
        (
            "(unique (chain (prev ?a) ?b))"
            " => (chain (unique (prev ?a)) (difference (unique ?b) (prev ?a)))"
        ),
        "an item is new if it is in the new part and was not there before",
    ),
    (
        "unique-of-history",
        "(unique (persist ?a)) => (unique ?a)",
        "what grows has all its history's items in it",
        "(growing ?a)",
    ),
)

IDENTITIES = (
    (IDENTITY.name, "(identity ?a) => ?a", "identity changes nothing"),
    ("identity-ordered", "(identity! ?a) => ?a", "identity changes nothing"),
    ("stratum", "(next_stratum ?a) => ?a", "the end of a stratum changes no item"),
    ("stratum-ordered", "(next_stratum! ?a) => ?a", "the end of a stratum changes no item"),
)

BAGS = (
    ("bag-sort", "(bag (sort! ?a)) => ?a", "sorting changes the order alone"),
    ("bag-sort-by", "(bag (sort_by_key! ?f ?a)) => ?a", "sorting changes the order alone"),
    (
        "bag-chain",
        "(bag (chain! ?a ?b)) => (union (bag ?a) (bag ?b))",
        "the items of both, in whatever order",
    ),
)

_RESUMES = "(resumable ?f)"
_OF_ALL = ":global"
"""What tells an aggregate without keys from one with keys."""
RUNNING = (
    *_running(FOLD, "a fold goes on from where it was", _RESUMES),
    *_running(REDUCE, "a reduction goes on from where it was", _RESUMES),
    *_running(FOLD_KEYED, "every key's fold goes on from where it was", _RESUMES),
    *_running(REDUCE_KEYED, "every key's reduction goes on from where it was", _RESUMES),
    *_running(LATEST, "a row that was not the latest of its key will not become it"),
    *_of_aggregates(),
    *_of_aggregates(_OF_ALL),
    (
        "aggregate-apart",
        (
            "(aggregate ?f (persist ?b)) => (select ?p (join ?j"
            " (aggregate ?g (persist ?b)) (aggregate ?h (persist ?b))))"
        ),
        "aggregates of one key may be computed apart",
        "(apart ?f ?g ?h ?j ?p)",
    ),
)
BY_HAND = (
    *(_by_hand(op) for op in (REDUCE, REDUCE_KEYED, LATEST, AGGREGATE)),
    _by_hand(AGGREGATE, _OF_ALL),
)
MOVING = (*_of_changes(), *_of_changes(_OF_ALL))

ORDERS = (
    (
        "join-order",
        "?x => (select ?s (join ?j ?a ?b))",
        "a tree of joins gives the same along its keys in every order",
        "(joined ?x ?j ?s ?a ?b)",
    ),
)
