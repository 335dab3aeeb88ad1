"""Where a match may be asked for before rows are brought together with a single item.

What is compared with one item that changes, a mean of all, is compared anew in each tick. Which of
the rows have a match does not depend on it, and what has one is kept from tick to tick: so only
rows that pass the match are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from hydro_core.catalog.classes import (
    ByKey,
    Ends,
    Linear,
    Matching,
    OverTime,
    PerItem,
    PerKey,
    PerPosition,
    Product,
    Projection,
)
from hydro_core.catalog.parts import COUNT
from hydro_core.catalog.spec import Args
from hydro_core.catalog.variants import Gives, Meets
from hydro_core.functions.fn import Fn
from hydro_core.functions.tree import Op, Param, Part, column_of
from hydro_core.ir.graph import Endpoint, Node
from hydro_core.optimize.load import Loaded
from hydro_core.types.item import FLOATS, Decimal, ItemType, Row, Scalar

KeySet = frozenset[str]


def first_of_pairs(node: Node) -> bool:
    """Whether a node gives the first part of each pair as it is."""
    if node.cls != PerItem(Gives.ONE):
        return False
    fn = node.args["f"]
    return len(fn.params) == 2 and fn.tree == Param(fn.params[0])


def kept_rows(loaded: Loaded) -> Iterator[tuple[str, Args, Args]]:
    """Streams of rows, each there once, that are compared with a single item.

    Each with the aggregate that keeps its rows as they are, and the columns that give them back.
    """
    typed, graph = loaded.typed, loaded.typed.graph
    for node in loaded.origins.values():
        cls = node.cls
        if not (isinstance(cls, Product) and cls.meets is Meets.SINGLE):
            continue
        stream = node.inputs[0]
        item, name = typed.types[stream].item, loaded.names.get(str(stream))
        if name is None or not isinstance(item, Row) or _keys(loaded, graph[stream.node]) is None:
            continue
        count = next(n for n in ("rows", *(f"rows_{i}" for i in range(99))) if n not in item.names)
        kept = Args((("by", item.names), ("aggregates", ((count, COUNT),))))
        yield name, kept, Args((("columns", item.names), ("computed", ())))


def equal_to_single(loaded: Loaded) -> Iterator[tuple[Args, ...]]:
    """Filters of what is brought together with a single item, where a column of both is equal.

    Each with the join that keeps the same rows, and where the columns have other names the new ones
    of the single item. What one function takes for equal the other does, too, but for NaN.
    """
    typed, graph = loaded.typed, loaded.typed.graph
    for node in loaded.origins.values():
        if node.cls != PerItem(Gives.SOME):
            continue
        pairs = graph[node.inputs[0].node]
        if not (isinstance(pairs.cls, Product) and pairs.cls.meets is Meets.SINGLE):
            continue
        columns = _equal_columns(node.args["f"])
        mine, single = (typed.types[e].item for e in pairs.inputs)
        there = all(e.node in loaded.solid for e in pairs.inputs)
        one = typed.types[pairs.inputs[1]].single
        if columns is None or not (there and one and isinstance(mine, Row)):
            continue
        own, other = columns
        if not (isinstance(single, Row) and _are_exact(mine.column(own), single.column(other))):
            continue
        join = Args((("on", (own,)), ("how", "semi"), ("suffix", None), ("where", None)))
        if own == other:
            yield node.args, join
        elif own not in single.names:
            yield node.args, join, Args((("renames", ((own, other),)),))


def _equal_columns(fn: Fn) -> tuple[str, str] | None:
    """The columns of the first and the second part of a pair that a function compares, alone."""
    match fn.tree:
        case Op("==", (Part(Param(one)) as left, Part(Param(two)) as right)):
            own, other = column_of(left), column_of(right)
            if own is None or other is None:
                return None
            if fn.params == (one, two):
                return own, other
            if fn.params == (two, one):
                return other, own
    return None


def _are_exact(one: ItemType | None, other: ItemType | None) -> bool:
    """Whether values of both types are equal to functions where they are so as keys."""
    if isinstance(one, Scalar):
        return one == other and one.name not in FLOATS
    return isinstance(one, Decimal) and one == other


def _keys(loaded: Loaded, node: Node) -> KeySet | None:
    """Columns of which no two rows of a node have the same values; None where none are known."""
    cls, item = node.cls, loaded.typed.types[Endpoint(node.id)].item
    graph = loaded.typed.graph
    match cls:
        case ByKey(keyed=True):
            by = node.args.get("by") or ()
            return (
                frozenset(by) if by and isinstance(item, Row) and {*by} <= {*item.names} else None
            )
        case PerItem(Gives.SAME | Gives.SOME) | Matching():
            return _keys(loaded, graph[node.inputs[0].node])
        case Projection():
            before = _keys(loaded, graph[node.inputs[0].node])
            of = loaded.typed.types[node.inputs[0]].item
            if before is None or not isinstance(of, Row):
                return None
            made = {
                c: name
                for name, c in cls.columns(node.args, of.names).items()
                if isinstance(c, str)
            }
            return frozenset(made[key] for key in before) if before <= made.keys() else None
        case Ends() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return None
        case _:
            assert_never(cls)
