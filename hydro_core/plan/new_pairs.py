"""Sums of two products that are all new pairs of two histories.

The product rule makes two products of what `persist a × persist b` adds: `old a × b` and
`a × persist b`. They are what a tick needs, and a range upon a past. A range before which nothing
is stored of one side can do with one: all of `a` with all of `b`, each pair at the later of its
ticks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import permutations

from hydro_core.catalog.classes import History, Product, Sum, is_itemwise
from hydro_core.catalog.variants import Meets
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.ir.walk import first_inputs
from hydro_core.plan.kinds import Kind
from hydro_core.plan.tick_plan import TickPlan

NodeWay = tuple[NodeId, ...]
"""An operator that knows the past of a stream, then those that go item by item behind it."""


@dataclass(frozen=True, slots=True)
class NewPairs:
    """Two products whose sum is all new pairs."""

    product: NodeId
    """The one that can give all of them."""
    other: NodeId
    """The one that is not needed then."""
    sides: tuple[NodeWay, NodeWay]
    """How the histories of the left side and of the right one are made."""


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
            sides = _sides(graph, one, other)
            if sides is not None and {one.id, other.id, *sides[0], *sides[1]} <= alone:
                yield NewPairs(other.id, one.id, sides)


def not_needed(plan: TickPlan, chosen: Collection[NewPairs]) -> frozenset[NodeId]:
    """What nobody reads where one product gives all pairs, for each of these."""
    stored = {slot.stream.node for slot in plan.slots}
    products = {pairs.product for pairs in chosen}
    gone = {pairs.other for pairs in chosen}
    for node in reversed(list(plan.graph)):
        readers = {reader.id for reader in plan.graph.readers(node.id)}
        if readers and readers <= gone | products and node.id not in stored:
            gone.add(node.id)
    return frozenset(gone)


def _is_of_pairs(node: Node) -> bool:
    cls = node.cls
    return isinstance(cls, Product) and not cls.keeps and cls.meets is not Meets.SINGLE


def _sides(graph: Graph, one: Node, other: Node) -> tuple[NodeWay, NodeWay] | None:
    """The histories of both sides, if `one` has a side as it was in the tick before."""
    if (one.op, one.args) != (other.op, other.args):
        return None
    for side in (0, 1):
        before = _way(graph, one.inputs[side], other.inputs[side], before=True)
        whole = _way(graph, other.inputs[1 - side], one.inputs[1 - side], before=False)
        if before and whole:
            return (before, whole) if side == 0 else (whole, before)
    return None


def _way(graph: Graph, stream: Endpoint, new: Endpoint, *, before: bool) -> NodeWay:
    """How a stream is made of the history of `new`, or of what was `before`; () if it is not."""
    behind: list[NodeId] = []
    for part, added in zip(first_inputs(graph, stream), first_inputs(graph, new), strict=False):
        node, adds = graph[part.node], graph[added.node]
        if node.cls == History(before=before) and node.inputs == (added,):
            return (node.id, *reversed(behind))
        if isinstance(node.cls, Sum) and added in node.inputs and len(node.inputs) == 2:
            ways = () if before else (_way(graph, e, added, before=True) for e in node.inputs)
            way = next(filter(None, ways), ())
            return (*way, *reversed(behind)) if way else ()
        if not is_itemwise(node.cls) or (node.op, node.args) != (adds.op, adds.args):
            return ()
        behind.append(node.id)
    return ()
