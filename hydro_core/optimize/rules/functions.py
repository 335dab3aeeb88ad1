"""Rules that ask a function earlier than the program does, so that state stays small."""

from __future__ import annotations

from hydro_core.catalog.classes import ByKey, is_itemwise
from hydro_core.catalog.combine import ANTI_JOIN, DIFFERENCE
from hydro_core.catalog.registry import CATALOG
from hydro_core.catalog.variants import Gives
from hydro_core.optimize.rule import Line, lines

FILTERS: tuple[Line, ...] = (
    (
        "filter-unique",
        "(filter ?p (unique ?a)) => (unique (filter ?p ?a))",
        "a filter keeps all copies of an item or none",
    ),
    *(
        (
            f"filter-{name}",
            f"(filter ?p {op} ?a ?b)) => {op} {sides})",
            "the filter looks at this side only, and has a value for every item of it",
            f"({fact} ?q)",
        )
        for name, op, sides, fact in (
            ("join-left", "(join ?j", "(filter ?q ?a) ?b", "join_left ?p ?j"),
            ("join-right", "(join ?j", "?a (filter ?q ?b)", "join_right ?p ?j"),
            ("left-join", "(join:left ?j", "(filter ?q ?a) ?b", "join_left ?p ?j"),
            ("right-join", "(join:right ?j", "?a (filter ?q ?b)", "join_right ?p ?j"),
            ("cross-left", "(cross", "(filter ?q ?a) ?b", "cross_left ?p"),
            ("cross-right", "(cross", "?a (filter ?q ?b)", "cross_right ?p"),
        )
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
    *lines("""
filter-and: (filter ?p ?a) => (filter ?r (filter ?q ?a))
    when (conjunct ?p ?q ?r)
    what is true of an item if two things are
filter-swap: (filter ?p (filter ?q ?a)) => (filter ?q (filter ?p ?a))
    when (passes ?p)
    both keep an item or not by itself, and the first has a value for every item
"""),
)
