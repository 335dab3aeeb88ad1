"""Rules about distinct items, negation and running results: what carries over to the next tick."""

from __future__ import annotations

from collections.abc import Iterator

NEGATIONS = ("difference", "anti_join", "join:anti")
"""Shapes that keep the items of their first input that have no match in the second."""
SELECTIONS = ("filter", "partition")
"""Shapes that keep an item or not, by the item alone."""

Line = tuple[str, ...]


def _running(op: str, payload: str, because: str, *when: str) -> Iterator[Line]:
    """A result over a history goes on by what is new."""
    name = op.replace("_", "-").replace(":", "-")
    yield (
        f"{name}-running",
        f"({op} {payload} (persist ?b)) => (running_{op} {payload} ?b)",
        because,
        *when,
    )


_MOVES = "counts and totals move with the window: what came is added, what left is taken away"


def _of_aggregates(op: str) -> Iterator[Line]:
    """Aggregates of a history, with keys or without."""
    name = op.replace(":", "-")
    because = "the aggregates are merged with those of the batch"
    yield from _running(op, "?f", because, "(mergeable ?f)")
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


def _of_windows(op: str) -> Iterator[Line]:
    """Aggregates of the last ticks, with keys or without."""
    name = op.replace(":", "-")
    yield (
        f"{name}-window-parts",
        f"({op} ?f (window ?n ?a)) => (aggregate_result ?h ({op} ?g (window ?n ?a)))",
        "the aggregates are made of counts and exact totals",
        "(moving ?f ?g ?h)",
    )
    moving = op.replace("aggregate", "moving_aggregate")
    yield (
        f"{name}-window",
        f"({op} ?f (window ?n ?a)) => ({moving} ?f ?a (leaving ?n ?a))",
        _MOVES,
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
    ("identity", "(identity ?a) => ?a", "identity changes nothing"),
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

RUNNING = (
    *_running("fold", "?f", "a fold goes on from where it was", "(resumable ?f)"),
    *_running("reduce", "?f", "a reduction goes on from where it was", "(resumable ?f)"),
    *_running("fold_keyed", "?f", "every key's fold goes on from where it was", "(resumable ?f)"),
    *_running("reduce_keyed", "?f", "every key's reduction goes on", "(resumable ?f)"),
    *_running("latest", "?f", "a row that was not the latest of its key will not become it"),
    *_of_aggregates("aggregate"),
    *_of_aggregates("aggregate:global"),
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
WINDOWS = (*_of_windows("aggregate"), *_of_windows("aggregate:global"))

ORDERS = (
    (
        "join-order",
        "?x => (select ?s (join ?j ?a ?b))",
        "a tree of joins gives the same along its keys in every order",
        "(joined ?x ?j ?s ?a ?b)",
    ),
)
