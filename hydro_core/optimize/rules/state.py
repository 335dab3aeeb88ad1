"""Rules about time: what `persist`, `old`, `prev`, `delta` and `chain` are to each other.

They are directed. A split of a history into "before" and "now" is made once and pushed outwards, where the induction
rule closes it again; nothing pushes `prev` inwards, which would unroll time without end.
"""

from __future__ import annotations

STATE = (
    (
        "delta-persist",
        "(delta (persist ?a)) => ?a",
        "what a history has more than the tick before is the batch",
    ),
    (
        "persist-split",
        "(persist ?a) => (chain (old ?a) ?a)",
        "the history is what was there before, then the batch",
    ),
    (
        "old-is-prev",
        "(old ?a) <=> (prev (persist ?a))",
        "what was there before is the history of the tick before",
    ),
    (
        "persist-before",
        "(persist (prev ?a)) => (old ?a)",
        "the history of what comes a tick later is what was there before",
    ),
    (
        "induction",
        "?x => (persist ?b)",
        "by induction over ticks: what is empty before the first tick and grows by b in each is the history of b",
        "?x = (chain (prev ?x) ?b)",
    ),
    (
        "persist-injective",
        "?a => ?b",
        "equal histories grow by equal batches",
        "?x = (persist ?a)",
        "?x = (persist ?b)",
    ),
    (
        "chain-assoc",
        "(chain (chain (prev ?a) ?b) ?c) => (chain (prev ?a) (chain ?b ?c))",
        "chain is associative; what was before moves to the front",
    ),
    (
        "chain-prev-first",
        "(chain ?b (prev ?a)) => (chain (prev ?a) ?b)",
        "the order of a bag's parts does not matter",
    ),
    (
        "interchange",
        "(chain (chain (prev ?a) ?b) (chain (prev ?c) ?d))"
        " => (chain (prev (chain ?a ?c)) (chain ?b ?d))",
        "on bags, what was before and what is new are collected apart",
    ),
    (
        "prev-chain",
        "(chain (prev ?a) (prev ?b)) => (prev (chain ?a ?b))",
        "chain does the same in every tick",
    ),
)

GROWING = (
    (
        "growing-persist",
        "?x => (growing ?x)",
        "a history never loses an item",
        "?x = (persist ?a)",
    ),
    ("growing-old", "?x => (growing ?x)", "a history never loses an item", "?x = (old ?a)"),
    (
        "growing-prev",
        "?x => (growing ?x)",
        "what grows has grown a tick later",
        "?x = (prev ?a)",
        "(growing ?a)",
    ),
    (
        "growing-chain",
        "?x => (growing ?x)",
        "a sum of what grows grows",
        "?x = (chain ?a ?b)",
        "(growing ?a)",
        "(growing ?b)",
    ),
)
