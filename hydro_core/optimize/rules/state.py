"""Rules about time: what `persist`, `old`, `prev`, `delta` and `chain` are to each other.

They are directed. A split of a history into "before" and "now" is made once and pushed outwards,
where the induction rule closes it again; nothing pushes `prev` inwards, which would unroll time
without end. `chain` is a split that rules make; the sums of the program are `union`s, the only ones
whose parts are collected: collecting splits would unroll time, too.
"""

from __future__ import annotations

from hydro_core.catalog.state import OLD, PERSIST, PREV
from hydro_core.optimize.rule import lines
from hydro_core.optimize.shape import CHAIN

BY_HAND = frozenset({PERSIST.name, OLD.name, PREV.name, CHAIN})
"""What has its rules here, and none that follow from its columns."""
STATE = lines("""
delta-persist: (delta (persist ?a)) => ?a
    what a history has more than the tick before is the batch
persist-split: (persist ?a) => (chain (old ?a) ?a)
    the history is what was there before, then the batch
old-is-prev: (old ?a) <=> (prev (persist ?a))
    what was there before is the history of the tick before
persist-before: (persist (prev ?a)) => (old ?a)
    the history of what comes a tick later is what was there before
induction: ?x => (persist ?b)
    when ?x = (chain (prev ?x) ?b)
    by induction over ticks: what starts empty and grows by b in each is the history of b
persist-injective: ?a => ?b
    when ?x = (persist ?a)
    when ?x = (persist ?b)
    equal histories grow by equal batches
chain-assoc: (chain (chain (prev ?a) ?b) ?c) => (chain (prev ?a) (chain ?b ?c))
    chain is associative; what was before moves to the front
interchange: (union (chain (prev ?a) ?b) (chain (prev ?c) ?d))
    => (chain (prev (union ?a ?c)) (union ?b ?d))
    in a union, what was before and what is new are collected apart
union-prev-left: (union (prev ?a) ?b) => (chain (prev ?a) ?b)
    a union is its parts one after the other
union-prev-right: (union ?b (prev ?a)) => (chain (prev ?a) ?b)
    the order of a union's parts does not matter
""")
GROWING = lines("""
growing-persist: ?x => (growing ?x)
    when ?x = (persist ?a)
    a history never loses an item
growing-old: ?x => (growing ?x)
    when ?x = (old ?a)
    a history never loses an item
growing-prev: ?x => (growing ?x)
    when ?x = (prev ?a)
    when (growing ?a)
    what grows has grown a tick later
growing-chain: ?x => (growing ?x)
    when ?x = (chain ?a ?b)
    when (growing ?a)
    when (growing ?b)
    a sum of what grows grows
""")
