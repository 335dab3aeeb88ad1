"""The three kinds of streams over a range of ticks, and which kind each operator gives.

A row of a stream is one copy of an item. An *event* (E) is there in its tick only; a row of a
*history* (H) is there from its tick on, for ever; a *general* row (G) is there from its tick
until, but not at, the tick `until`. A stream without rows has no kind (None). Kinds are static:
the least solution over the graph, cycles included.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.internal import INTERNAL, RUNNING
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
KindRule = Callable[[Node, tuple[MaybeKind, ...], bool], MaybeKind]
"""From the inputs' kinds, and whether the operator follows its input's order, to the output's."""


def kinds_of(typed: Typed, events: Collection[NodeId] = ()) -> Mapping[NodeId, Kind]:
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
            if node.id in events:
                kind: MaybeKind = Kind.E
            else:
                kind = _RULES.get(node.op.name, _same)(node, kinds, _in_order(node, typed))
            kind = merged(found[node.id], kind)
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
    return bool(node.inputs) and is_in_order(
        node, typed.of(node.inputs[0].node).order is Order.TOTAL
    )


def _same(node: Node, kinds: tuple[MaybeKind, ...], in_order: bool) -> MaybeKind:
    return merged(*kinds)


def _event(node: Node, kinds: tuple[MaybeKind, ...], in_order: bool) -> MaybeKind:
    return Kind.E


def _history(node: Node, kinds: tuple[MaybeKind, ...], in_order: bool) -> MaybeKind:
    return Kind.H


def _general(node: Node, kinds: tuple[MaybeKind, ...], in_order: bool) -> MaybeKind:
    return Kind.G


def _product(node: Node, kinds: tuple[MaybeKind, ...], in_order: bool) -> MaybeKind:
    return met(*kinds)


def _join(node: Node, kinds: tuple[MaybeKind, ...], in_order: bool) -> MaybeKind:
    left, right = kinds
    match node.args.get("how", "inner"):
        case "anti":
            return without(left, right)
        case "left":
            return merged(met(left, right), without(left, right))
        case "right":
            return merged(met(left, right), without(right, left))
        case "outer":
            return merged(met(left, right), without(left, right), without(right, left))
        case _:
            return met(left, right)


def _difference(node: Node, kinds: tuple[MaybeKind, ...], in_order: bool) -> MaybeKind:
    return without(*kinds)


def _unique(node: Node, kinds: tuple[MaybeKind, ...], in_order: bool) -> MaybeKind:
    return Kind.E if in_order and kinds[0] is not None else kinds[0]


def _fold(node: Node, kinds: tuple[MaybeKind, ...], in_order: bool) -> MaybeKind:
    if kinds[0] is None:
        return None if node.spec.zero else Kind.E
    return Kind.E if in_order or kinds[0] is Kind.E else Kind.G


_RULES: Mapping[str, KindRule] = {
    **dict.fromkeys(("source", "source_iter", "tick", "delta", "changes"), _event),
    **dict.fromkeys(
        ("enumerate", "scan", "scan_keyed", "unique_keyed", "zip", "zip_longest", "limit"), _event
    ),
    **dict.fromkeys(INTERNAL, _event),
    **dict.fromkeys(("aggregate_result", "of_shard"), _same),
    **dict.fromkeys(("persist", "old"), _history),
    **dict.fromkeys(("window", "persist_mut", "persist_mut_keyed"), _general),
    **dict.fromkeys((op.name for op in RUNNING), _general),
    **dict.fromkeys(("cross", "cross_singleton"), _product),
    "join": _join,
    **dict.fromkeys(("anti_join", "difference"), _difference),
    "unique": _unique,
    **dict.fromkeys(("fold", "reduce", "fold_keyed", "reduce_keyed", "aggregate", "latest"), _fold),
}
