"""The three kinds of streams over a range of ticks, and which kind each operator gives.

A row of a stream is one copy of an item. An *event* (E) is there in its tick only; a row of a
*history* (H) is there from its tick on, for ever; a *general* row (G) is there from its tick
until, but not at, the tick `until`. A stream without rows has no kind (None). Kinds are static:
the least solution over the graph, cycles included.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import assert_never

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.classes import (
    AsOf,
    Before,
    ByKey,
    Commands,
    Distinct,
    Empty,
    Given,
    Growth,
    History,
    Linear,
    Matching,
    OrderedByKey,
    Ordering,
    Output,
    Positional,
    Product,
    Running,
    Window,
)
from hydro_core.ir.graph import Node, NodeId
from hydro_core.types.stream import Order


class Kind(Enum):
    """What the rows of a stream say about the ticks at which they are there."""

    E = "event"
    H = "history"
    G = "general"

    def __repr__(self) -> str:
        return f"Kind.{self.name}"


MaybeKind = Kind | None


def kinds_of(typed: Typed, events: Collection[NodeId]) -> Mapping[NodeId, Kind]:
    """The kind of every node's output.

    `events` are the nodes that give events whatever they read: those that read the tick before of
    what depends on them, and what is first seen.
    """
    graph = typed.graph
    found: dict[NodeId, MaybeKind] = dict.fromkeys(graph.nodes)
    changed = True
    while changed:
        changed = False
        for node in graph:
            kinds = tuple(found[e.node] for e in node.inputs)
            own = Kind.E if node.id in events else _kind(node, kinds, _in_order(node, typed))
            kind = merged(found[node.id], own)
            changed = changed or kind != found[node.id]
            found[node.id] = kind
    return {node: kind or Kind.E for node, kind in found.items()}


def merged(*kinds: MaybeKind) -> MaybeKind:
    """The kind of a bag sum."""
    some = {kind for kind in kinds if kind is not None}
    return some.pop() if len(some) == 1 else Kind.G if some else None


def met(left: MaybeKind, right: MaybeKind) -> MaybeKind:
    """The kind of a product: a row is there when both of its parts are."""
    if left is None or right is None:
        return None
    return Kind.E if Kind.E in (left, right) else merged(left, right)


def without(pos: MaybeKind, neg: MaybeKind) -> MaybeKind:
    """The kind of what is left of `pos` while its key is not in `neg`."""
    return Kind.G if pos is Kind.H and neg is not None else pos


def is_in_order(node: Node, ordered: bool) -> bool:
    """Whether the result of a fold depends on the order of its input."""
    if not ordered:
        return False
    f = node.args.get("f")
    return f is None or not f.algebra.commutative


def _in_order(node: Node, typed: Typed) -> bool:
    """Whether the node follows the order of its input, and has none of its own."""
    if "order" in node.args:
        return False
    return bool(node.inputs) and is_in_order(
        node, typed.of(node.inputs[0].node).order is Order.TOTAL
    )


def _kind(node: Node, kinds: tuple[MaybeKind, ...], in_order: bool) -> MaybeKind:
    """The kind of what an operator gives, of inputs of these kinds; `in_order`: its result follows
    the order of the first one.
    """
    cls = node.cls
    match cls:
        case Empty() | Output() | Linear() | Ordering() | Before():
            return merged(*kinds)
        case Given() | Growth() | Positional():
            return Kind.E
        case History():
            return Kind.H
        case Window() | Commands() | Running():
            return Kind.G
        case Product(keeps=keeps):
            left, right = kinds
            padded = {0: without(left, right), 1: without(right, left)}
            return merged(met(left, right), *(padded[side] for side in keeps))
        case Matching() | AsOf():
            meets = isinstance(cls, Matching) and cls.wanted
            return met(*kinds) if meets else without(*kinds)
        case Distinct():
            return Kind.E if in_order and kinds[0] is not None else kinds[0]
        case ByKey() | OrderedByKey():
            return _of_results(node, kinds[0], in_order)
        case _:
            assert_never(cls)


def _of_results(node: Node, kind: MaybeKind, in_order: bool) -> MaybeKind:
    if kind is None:
        return None if node.spec.zero else Kind.E
    return Kind.E if in_order or kind is Kind.E else Kind.G
