"""Rules about distinct items, orders, and operators that change nothing."""

from __future__ import annotations

from hydro_core.optimize.rule import lines

UNIQUE = lines("""
unique-split: (unique (chain (prev ?a) ?b))
    => (chain (unique (prev ?a)) (difference (unique ?b) (prev ?a)))
    an item is new if it is in the new part and was not there before
unique-of-history: (unique (persist ?a)) => (unique ?a)
    when (growing ?a)
    what grows has all its history's items in it
""")
IDENTITIES = lines("""
identity: (identity ?a) => ?a
    identity changes nothing
identity-ordered: (identity! ?a) => ?a
    identity changes nothing
stratum: (next_stratum ?a) => ?a
    the end of a stratum changes no item
stratum-ordered: (next_stratum! ?a) => ?a
    the end of a stratum changes no item
""")
BAGS = lines("""
bag-sort: (bag (sort! ?a)) => ?a
    sorting changes the order alone
bag-sort-by: (bag (sort_by_key! ?f ?a)) => ?a
    sorting changes the order alone
bag-chain: (bag (chain! ?a ?b)) => (union (bag ?a) (bag ?b))
    the items of both, in whatever order
""")
ORDERS = lines("""
join-order: ?x => (select ?s (join ?j ?a ?b))
    when (joined ?x ?j ?s ?a ?b)
    a tree of joins gives the same along its keys in every order
""")
