"""Rules about order: sorted streams, `over` without a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hydro_core.analysis.identity import mapped
from hydro_core.catalog.classes import Ordering, Places, PositionalOrder
from hydro_core.catalog.group import FOLD_KEYED, REDUCE_KEYED, UNIQUE_KEYED
from hydro_core.catalog.internal import RUNNING_OVER, SORTED
from hydro_core.catalog.itemwise import SELECT, WITH_COLUMNS
from hydro_core.catalog.ordered import LIMIT, OVER, SCAN_KEYED, SORT, SORT_BY_KEY, TOP, with_tails
from hydro_core.catalog.spec import Args, OpSpec, functions_of
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.tree import Const, Fn, Param
from hydro_core.functions.views import ITEM
from hydro_core.ir.graph import Node
from hydro_core.optimize.columns import columns_of
from hydro_core.optimize.load import LoadedProblem
from hydro_core.optimize.rule import GLOBAL, SINGLE, Line, lines
from hydro_core.optimize.rules.aggregates import Found
from hydro_core.types.item import LONG, Field, ItemType, Row

# Operators on sorted streams, as operators that use the order of a key's rows themselves.
#
# A sort reads all items in each tick. The first items, of all or of each key, are also those of
# `top`, by the same order and with the same tie-break; only these need to be sorted. A fold or scan
# over the items of a key reads only the keys that change, if it has the order as an argument.


_ORDERED = ((SORT.name, "", "(itself ?g)"), (SORT_BY_KEY.name, " ?g", ""))
"""Sorts: the shape's name, its arguments, and the condition on these."""
_FIRST = (
    (LIMIT.name, TOP.name, "first_of_key"),
    (LIMIT.name, f"{TOP.name}{GLOBAL}", "first_of_all"),
    (f"{LIMIT.name}{SINGLE}", f"{TOP.name}{GLOBAL}", "first_of_all"),
    (UNIQUE_KEYED.name, TOP.name, "first_of_key"),
)
"""Operators that give the first items: the shapes on a sorted stream and on a bag, and the fact."""
_STEPS = (FOLD_KEYED, REDUCE_KEYED)
"""Folds over the items of a key that give only the last result."""


def _lines() -> Iterator[Line]:
    for sort, by, itself in _ORDERED:
        for first, top, fact in _FIRST:
            name = f"{first}-of-{sort}{'' if fact == 'first_of_key' else '-all'}"
            yield (
                name.replace("_", "-").replace(":", "-"),
                f"({first}! ?f ({sort}!{by} ?a)) => ({sort}!{by} ({top} ?h ?a))",
                "the first items in an order are found without sorting all of them",
                f"({fact} ?f ?g ?h)",
                *((itself,) if itself else ()),
            )
        yield (
            f"filter-before-{sort}".replace("_", "-"),
            f"(filter! ?p ({sort}!{by} ?a)) => ({sort}!{by} (filter ?p ?a))",
            "what is left of sorted items stands in the same order",
        )
        for op in _STEPS:
            yield _of_steps(op, f"({op.name}! ?f ({sort}!{by} ?a))", sort, itself)
        scan = f"(bag ({SCAN_KEYED.name}! ?f ({sort}!{by} ?a)))"
        yield _of_steps(SCAN_KEYED, scan, sort, itself)


def _of_steps(op: OpSpec, sorted_steps: str, sort: str, itself: str) -> Line:
    return (
        f"{op.name}-of-{sort}".replace("_", "-"),
        f"{sorted_steps} => (sorted_{op.name} ?h ?a)",
        "what goes through the items of a key in an order needs no order of all",
        "(steps_in_order ?f ?g ?h)",
        *((itself,) if itself else ()),
    )


IN_ORDER: tuple[Line, ...] = tuple(_lines())
INTRODUCED: tuple[tuple[OpSpec, Mapping[str, object]], ...] = tuple(
    (TOP, {"n": 1, "by": by, "order": ("v",)}) for by in (("k",), None)
) + tuple((op, {"order": ("v",)}) for op in SORTED)
"""The operators that these rules introduce, with arguments that select their shapes."""


def made_of_sorted(loaded: LoadedProblem) -> Iterator[Found]:
    """Facts about operators that use the order of a sorted stream."""
    nodes = tuple(loaded.origins.values())
    takers = [n for n in nodes if _takes_first(n)]
    steps = [n for n in nodes if n.op in (*_STEPS, SCAN_KEYED)]
    sorts = [n for n in nodes if n.cls == Ordering()] if takers or steps else []
    for sort in sorts:
        item = loaded.typed.types[sort.inputs[0]].item
        order = _order(sort, item)
        by = sort.args or Args((("f", order), ("descending", False)))
        if not sort.args:
            yield "itself", (by,)
        for taker in takers:
            if loaded.typed.types[taker.inputs[0]].item == item:
                top = (
                    ("n", taker.args.get("n", 1)),
                    ("by", taker.args["by"]),
                    ("order", order),
                    ("descending", by["descending"]),
                    ("ties", False),
                )
                fact = "first_of_all" if taker.args["by"] is None else "first_of_key"
                yield fact, (taker.args, by, Args(top))
        for step in steps:
            if loaded.typed.types[step.inputs[0]].item == item:
                in_order = (("order", order), ("descending", by["descending"]))
                yield "steps_in_order", (step.args, by, Args((*step.args.entries, *in_order)))


def _takes_first(node: Node) -> bool:
    """True if the node gives the first items, of all or of keys that are columns."""
    cls = node.cls
    if not isinstance(cls, PositionalOrder):
        return False
    of_columns = cls.gives is Places.FIRST_OF_KEY and node.args["by"] is not None
    return cls.gives is Places.FIRST or of_columns


def _order(sort: Node, item: ItemType) -> tuple[str, ...] | Fn:
    """The order of a sort: a function, the columns of rows, or the items themselves."""
    if sort.args:
        given: Fn = sort.args["f"]
        return given
    if isinstance(item, Row) and item.names:
        return item.names
    return replace(function_of(Param(ITEM), (ITEM,)), over=(item,))


# `over` without a key, as `over` by one key that all rows have.
#
# It is then updated from the last rows of a key, as with many keys. The key is a column that is 0
# in each row, so lookups by key match all rows.


ONE_KEY = lines(f"""
over-global-running: ({OVER.name}{GLOBAL} ?f (persist ?b))
    => ({SELECT.name} ?h ({RUNNING_OVER.name} ?g ({WITH_COLUMNS.name} ?c ?b)))
    when (one_key ?f ?c ?g ?h)
    rows without a key have the same one
""")
INTRODUCED_FOR_ONE_KEY: tuple[tuple[OpSpec, dict[str, object]], ...] = ((WITH_COLUMNS, {}),)


def of_one_key(args: Args, item: ItemType, output: ItemType) -> Sequence[Args] | None:
    """The arguments of `over`, of the projection that adds a key, of `over` by it, and of the
    `select` without it.

    None if `over` has a key, or if a function needs more than the rows before, or whole rows.
    """
    if args["by"] is not None or not isinstance(item, Row) or not isinstance(output, Row):
        return None
    if any(columns_of(fn) is None for fn in functions_of(args)):
        return None
    name = next(n for n in ("one", *(f"one_{i}" for i in range(99))) if n not in output.names)
    key = replace(function_of(Const(0), (ITEM,)), over=(item,))
    wider = Row((*item.fields, Field(name, LONG)))

    def over_wider(fn: Fn) -> Fn:
        return replace(fn, over=(wider,))

    given: list[tuple[str, Any]] = [(n, mapped(v, over_wider)) for n, v in args.entries]
    keyed = Args(tuple(given)).with_(by=(name,))
    found = with_tails(keyed, wider, OVER.result(keyed, (wider,)))
    if found is None:
        return None
    shown = Args((("columns", output.names), ("computed", ())))
    return args, Args((("computed", ((name, key),)),)), found[0], shown
