"""Rules about distinct items, negation and running results: what carries over to the next tick."""

from __future__ import annotations

from hydro_core.catalog.itemwise import IDENTITY

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

RUNNING = (
    (
        "fold-resume",
        "(fold ?f (chain (prev ?a) ?b)) => (fold_from ?f (prev (fold ?f ?a)) ?b)",
        "a fold goes on from where it was",
        "(resumable ?f)",
    ),
    (
        "reduce-resume",
        "(reduce ?f (chain (prev ?a) ?b)) => (reduce_from ?f (prev (reduce ?f ?a)) ?b)",
        "a reduction goes on from where it was",
        "(resumable ?f)",
    ),
    (
        "fold-keyed-resume",
        "(fold_keyed ?f (chain (prev ?a) ?b)) => (fold_keyed_from ?f (prev (fold_keyed ?f ?a)) ?b)",
        "every key's fold goes on from where it was",
        "(resumable ?f)",
    ),
    (
        "reduce-keyed-resume",
        (
            "(reduce_keyed ?f (chain (prev ?a) ?b))"
            " => (reduce_keyed_from ?f (prev (reduce_keyed ?f ?a)) ?b)"
        ),
        "every key's reduction goes on from where it was",
        "(resumable ?f)",
    ),
    (
        "latest-resume",
        "(latest ?f (chain (prev ?a) ?b)) => (latest_from ?f (prev (latest ?f ?a)) ?b)",
        "a row that was not the latest of its key will not become it",
    ),
    (
        "aggregate-resume",
        "(aggregate ?f (chain (prev ?a) ?b)) => (aggregate_from ?f (prev (aggregate ?f ?a)) ?b)",
        "every key's aggregates are merged with those of the batch",
        "(mergeable ?f)",
    ),
    (
        "aggregate-global-resume",
        (
            "(aggregate:global ?f (chain (prev ?a) ?b))"
            " => (aggregate_from:global ?f (prev (aggregate:global ?f ?a)) ?b)"
        ),
        "the aggregates are merged with those of the batch",
        "(mergeable ?f)",
    ),
    (
        "aggregate-parts",
        (
            "(aggregate ?f (chain (prev ?a) ?b))"
            " => (aggregate_result ?h (aggregate ?g (chain (prev ?a) ?b)))"
        ),
        "the aggregates are made of parts that can be merged",
        "(parts ?f ?g ?h)",
    ),
    (
        "aggregate-global-parts",
        (
            "(aggregate:global ?f (chain (prev ?a) ?b))"
            " => (aggregate_result ?h (aggregate:global ?g (chain (prev ?a) ?b)))"
        ),
        "the aggregates are made of parts that can be merged",
        "(parts ?f ?g ?h)",
    ),
    (
        "aggregate-distinct",
        (
            "(aggregate ?f (chain (prev ?a) ?b))"
            " => (aggregate ?g (unique (select ?s (chain (prev ?a) ?b))))"
        ),
        "how often a value is there does not matter to these aggregates",
        "(distinct_of ?f ?g ?s)",
    ),
    (
        "aggregate-global-distinct",
        (
            "(aggregate:global ?f (chain (prev ?a) ?b))"
            " => (aggregate:global ?g (unique (select ?s (chain (prev ?a) ?b))))"
        ),
        "how often a value is there does not matter to these aggregates",
        "(distinct_of ?f ?g ?s)",
    ),
    (
        "aggregate-apart",
        (
            "(aggregate ?f (chain (prev ?a) ?b)) => (select ?p (join ?j"
            " (aggregate ?g (chain (prev ?a) ?b)) (aggregate ?h (chain (prev ?a) ?b))))"
        ),
        "aggregates of one key may be computed apart",
        "(apart ?f ?g ?h ?j ?p)",
    ),
)

_MOVES = "counts and totals move with the window: what came is added, what left is taken away"
WINDOWS = (
    (
        "aggregate-window-parts",
        ("(aggregate ?f (window ?n ?a)) => (aggregate_result ?h (aggregate ?g (window ?n ?a)))"),
        "the aggregates are made of counts and exact totals",
        "(moving ?f ?g ?h)",
    ),
    (
        "aggregate-global-window-parts",
        (
            "(aggregate:global ?f (window ?n ?a))"
            " => (aggregate_result ?h (aggregate:global ?g (window ?n ?a)))"
        ),
        "the aggregates are made of counts and exact totals",
        "(moving ?f ?g ?h)",
    ),
    (
        "aggregate-window",
        (
            "(aggregate ?f (window ?n ?a))"
            " => (aggregate_moved ?f (prev (aggregate ?f (window ?n ?a))) ?a (leaving ?n ?a))"
        ),
        _MOVES,
        "(moves ?f)",
    ),
    (
        "aggregate-global-window",
        (
            "(aggregate:global ?f (window ?n ?a)) => (aggregate_moved:global ?f"
            " (prev (aggregate:global ?f (window ?n ?a))) ?a (leaving ?n ?a))"
        ),
        _MOVES,
        "(moves ?f)",
    ),
)

ORDERS = (
    (
        "join-order",
        "?x => (select ?s (join ?j ?a ?b))",
        "a tree of joins gives the same along its keys in every order",
        "(joined ?x ?j ?s ?a ?b)",
    ),
)
