"""Rules that ask a function earlier than the program does, so that state stays small."""

from __future__ import annotations

from hydro_core.catalog.classes import ByKey, is_itemwise
from hydro_core.catalog.combine import ANTI_JOIN, DIFFERENCE
from hydro_core.catalog.registry import CATALOG
from hydro_core.catalog.variants import Gives

_SIDE = "the filter looks at this side only, and has a value for every item of it"

FILTERS = (
    (
        "filter-unique",
        "(filter ?p (unique ?a)) => (unique (filter ?p ?a))",
        "a filter keeps all copies of an item or none",
    ),
    (
        "filter-join-left",
        "(filter ?p (join ?j ?a ?b)) => (join ?j (filter ?q ?a) ?b)",
        _SIDE,
        "(join_left ?p ?j ?q)",
    ),
    (
        "filter-join-right",
        "(filter ?p (join ?j ?a ?b)) => (join ?j ?a (filter ?q ?b))",
        _SIDE,
        "(join_right ?p ?j ?q)",
    ),
    (
        "filter-left-join",
        "(filter ?p (join:left ?j ?a ?b)) => (join:left ?j (filter ?q ?a) ?b)",
        _SIDE,
        "(join_left ?p ?j ?q)",
    ),
    (
        "filter-right-join",
        "(filter ?p (join:right ?j ?a ?b)) => (join:right ?j ?a (filter ?q ?b))",
        _SIDE,
        "(join_right ?p ?j ?q)",
    ),
    (
        "filter-cross-left",
        "(filter ?p (cross ?a ?b)) => (cross (filter ?q ?a) ?b)",
        _SIDE,
        "(cross_left ?p ?q)",
    ),
    (
        "filter-cross-right",
        "(filter ?p (cross ?a ?b)) => (cross ?a (filter ?q ?b))",
        _SIDE,
        "(cross_right ?p ?q)",
    ),
    *(
        (
            f"filter-{op.name.replace('_', '-')}",
            f"(filter ?p ({op.name} ?f ?a)) => ({op.name} ?f (filter ?q ?a))",
            "the filter looks at the key only, and a key's rows stay together",
            "(on_keys ?p ?f ?q)",
        )
        for op in CATALOG.values()
        if isinstance(op.cls, ByKey) and op.cls.keyed
    ),
    *(
        (
            f"filter-{op.name.replace('_', '-')}",
            f"(filter ?p ({op.name} ?f ?a)) => ({op.name} ?f (filter ?q ?a))",
            "what the filter looks at is there before",
            "(composed ?p ?f ?q)",
        )
        for op in CATALOG.values()
        if is_itemwise(op.cls) and op.cls.gives is Gives.ONE
    ),
    *(
        (
            f"filter-{op.replace('join:', '').replace('_', '-')}",
            f"(filter ?p ({op}{payload} ?a ?b)) => ({op}{payload} (filter ?p ?a) ?b)",
            "both keep an item or not by itself, so either may come first",
        )
        for op, payload in (
            ("join:semi", " ?j"),
            ("join:anti", " ?j"),
            (ANTI_JOIN.name, ""),
            (DIFFERENCE.name, ""),
        )
    ),
    (
        "filter-and",
        "(filter ?p ?a) => (filter ?r (filter ?q ?a))",
        "what is true of an item if two things are",
        "(conjunct ?p ?q ?r)",
    ),
    (
        "filter-swap",
        "(filter ?p (filter ?q ?a)) => (filter ?q (filter ?p ?a))",
        "both keep an item or not by itself, and the first has a value for every item",
        "(passes ?p)",
    ),
)
