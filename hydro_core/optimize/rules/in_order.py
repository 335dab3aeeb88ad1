"""What is made of a sorted stream, as what goes by the order of a key's rows itself.

A sort goes through all items in each tick. The first of them, or of each key, are those that `top`
finds, by the same order and with the same ties; they alone are then sorted. What goes from one item
of a key to the next looks at the items of the keys that change, if it knows their order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from hydro_core.catalog.classes import Ordering, Positional
from hydro_core.catalog.group import FOLD_KEYED, REDUCE_KEYED, UNIQUE_KEYED
from hydro_core.catalog.internal import SORTED
from hydro_core.catalog.order import LIMIT, SCAN_KEYED, SORT, SORT_BY_KEY
from hydro_core.catalog.ordered import TOP
from hydro_core.catalog.spec import Args, OpSpec
from hydro_core.catalog.variants import Places
from hydro_core.functions.fn import Fn
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.tree import Param
from hydro_core.functions.views import ITEM
from hydro_core.ir.graph import Node
from hydro_core.optimize.load import Loaded
from hydro_core.optimize.rule import Line
from hydro_core.optimize.rules.aggregates import Found
from hydro_core.optimize.shape import GLOBAL, SINGLE
from hydro_core.types.item import ItemType, Row

_ORDERED = ((SORT.name, "", "(itself ?g)"), (SORT_BY_KEY.name, " ?g", ""))
"""What gives an order: the shape's name, its arguments, and what is known of these."""
_FIRST = (
    (LIMIT.name, TOP.name, "first_of_key"),
    (LIMIT.name, f"{TOP.name}{GLOBAL}", "first_of_all"),
    (f"{LIMIT.name}{SINGLE}", f"{TOP.name}{GLOBAL}", "first_of_all"),
    (UNIQUE_KEYED.name, TOP.name, "first_of_key"),
)
"""What takes the first items: the shapes' names, sorted and not, and what is known of it."""
_STEPS = (FOLD_KEYED, REDUCE_KEYED)
"""What goes from one item of a key to the next, and gives the last result alone."""


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
"""What these rules bring in, as it is with these arguments."""


def made_of_sorted(loaded: Loaded) -> Iterator[Found]:
    """What is known of operators that go by the order of a sorted stream."""
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
    """Whether it takes the first items, of all or of keys that are columns."""
    cls = node.cls
    if not isinstance(cls, Positional):
        return False
    of_columns = cls.gives is Places.FIRST_OF_KEY and node.args["by"] is not None
    return cls.gives is Places.FIRST or of_columns


def _order(sort: Node, item: ItemType) -> tuple[str, ...] | Fn:
    """What a sort goes by: a function, or the items themselves."""
    if sort.args:
        given: Fn = sort.args["f"]
        return given
    if isinstance(item, Row) and item.names:
        return item.names
    return replace(function_of(Param(ITEM), (ITEM,)), over=(item,))
