"""Rules about distinct items, negation and running results: what carries over to the next tick."""

from __future__ import annotations

NEGATIONS = ("difference", "anti_join", "join:anti")
"""Shapes that keep the items of their first input that have no match in the second."""
SELECTIONS = ("filter", "partition")
"""Shapes that keep an item or not, by the item alone."""

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
)

_CHANGED = "of the keys that the batch names, the new results that differ from the old ones"
KEYED_DELTAS = (
    (
        "delta-latest",
        (
            "(delta (latest ?f (persist ?b))) => (difference"
            " (latest_from ?f (join:semi ?j (prev (latest ?f (persist ?b))) ?b) ?b)"
            " (join:semi ?j (prev (latest ?f (persist ?b))) ?b))"
        ),
        _CHANGED,
        "(semi_on ?f ?j)",
    ),
    (
        "delta-fold-keyed",
        (
            "(delta (fold_keyed ?f (persist ?b))) => (difference"
            " (fold_keyed_from ?f (join:semi ?j (prev (fold_keyed ?f (persist ?b))) ?b) ?b)"
            " (join:semi ?j (prev (fold_keyed ?f (persist ?b))) ?b))"
        ),
        _CHANGED,
        "(semi_on ?f ?j)",
        "(resumable ?f)",
    ),
    (
        "delta-reduce-keyed",
        (
            "(delta (reduce_keyed ?f (persist ?b))) => (difference"
            " (reduce_keyed_from ?f (join:semi ?j (prev (reduce_keyed ?f (persist ?b))) ?b) ?b)"
            " (join:semi ?j (prev (reduce_keyed ?f (persist ?b))) ?b))"
        ),
        _CHANGED,
        "(semi_on ?f ?j)",
        "(resumable ?f)",
    ),
    (
        "delta-aggregate",
        (
            "(delta (aggregate ?f (persist ?b))) => (difference"
            " (aggregate_from ?f (join:semi ?j (prev (aggregate ?f (persist ?b))) ?b) ?b)"
            " (join:semi ?j (prev (aggregate ?f (persist ?b))) ?b))"
        ),
        _CHANGED,
        "(semi_on ?f ?j)",
        "(mergeable ?f)",
    ),
)
