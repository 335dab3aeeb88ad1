"""Sums of two products that are all new pairs of two histories.

The product rule makes two products of what `persist a × persist b` adds: `old a × b` and
`a × persist b`. They are what a tick needs, and a range upon a past. A range before which nothing
is stored of one side can do with one: all of `a` with all of `b`, each pair at the later of its
ticks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations

from hydro_core.catalog.classes import History, Meets, Product, Sum
from hydro_core.ir.graph import Graph, Node, NodeId
from hydro_core.plan.kinds import Kind
from hydro_core.plan.tick_plan import TickPlan


@dataclass(frozen=True, slots=True)
class NewPairs:
    """Two products whose sum is all new pairs."""

    product: NodeId
    """The one that can give all of them."""
    other: NodeId
    """The one that is not needed then."""
    histories: tuple[NodeId, NodeId]
    """What knows the past of the left side, and of the right one."""


def new_pairs(plan: TickPlan) -> Iterator[NewPairs]:
    """The sums of a plan that are all new pairs, outside of cycles."""
    graph = plan.graph
    alone = {c.nodes[0] for c in plan.components if c.how == "once"}
    for total in graph:
        if not isinstance(total.cls, Sum) or total.id not in alone:
            continue
        read_here = (graph[e.node] for e in total.inputs if len(graph.readers(e.node)) == 1)
        products = [n for n in read_here if _is_of_pairs(n) and plan.kinds[n.id] is Kind.E]
        for one, other in permutations(products, 2):
            histories = _histories(graph, one, other)
            if histories is not None and {one.id, other.id, *histories} <= alone:
                yield NewPairs(other.id, one.id, histories)


def not_needed(graph: Graph, chosen: Iterable[NewPairs]) -> frozenset[NodeId]:
    """What nobody reads where one product gives all pairs, for each of these."""
    products = {node for pairs in chosen for node in (pairs.product, pairs.other)}
    histories = {node for pairs in chosen for node in pairs.histories}
    unread = {n for n in histories if all(r.id in products for r in graph.readers(n))}
    return frozenset(unread | {pairs.other for pairs in chosen})


def _is_of_pairs(node: Node) -> bool:
    cls = node.cls
    return isinstance(cls, Product) and not cls.keeps and cls.meets is not Meets.SINGLE


def _histories(graph: Graph, one: Node, other: Node) -> tuple[NodeId, NodeId] | None:
    """What knows the past of both sides, if `one` has a side as it was in the tick before."""
    if (one.op, one.args) != (other.op, other.args):
        return None
    for side in (0, 1):
        before, new = one.inputs[side], one.inputs[1 - side]
        past, now = graph[before.node], graph[other.inputs[1 - side].node]
        was = past.cls == History(before=True) and past.inputs == (other.inputs[side],)
        if was and now.cls == History() and now.inputs == (new,):
            return (past.id, now.id) if side == 0 else (now.id, past.id)
    return None
