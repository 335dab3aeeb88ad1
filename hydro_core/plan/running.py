"""Results that run from tick to tick, and the streams that tell by how much they change.

A running result needs, in tick t + 1, its rows of tick t whose keys are in what is new, and changes
no others. So over a range it is one pass over what is new, and what it changes is known by its
construction: the old row of each touched key goes, the new one comes. What goes item by item hands
these changes on, and what is stored of such a stream is a log of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hydro_core.catalog.classes import (
    Growth,
    Output,
    Sum,
    is_itemwise,
)
from hydro_core.catalog.spec import OrderRule, State
from hydro_core.ir.graph import Graph, Node, NodeId
from hydro_core.plan.kinds import Kind


def telling(
    graph: Graph,
    order: Iterable[Collection[NodeId]],
    kinds: Mapping[NodeId, Kind],
) -> frozenset[NodeId]:
    """The general streams that tell their changes.

    `order` has all components, what is read before what reads it.
    """
    found: set[NodeId] = set()
    for nodes in order:
        alone = nodes if len(nodes) == 1 else ()
        found.update(n for n in alone if _hands_on(graph[n], found, kinds))
    return frozenset(found)


def _hands_on(node: Node, told: Collection[NodeId], kinds: Mapping[NodeId, Kind]) -> bool:
    inputs = [e.node for e in node.inputs]
    if node.spec.state is State.RESULT:
        return node.id not in inputs
    if isinstance(node.cls, Sum) and node.spec.order is OrderRule.LOSES:
        known = [n for n in inputs if n in told or kinds[n] is Kind.H]
        return len(known) == len(inputs) and any(n in told for n in inputs)
    passes = is_itemwise(node.cls) or isinstance(node.cls, Output)
    return passes and len(inputs) == 1 and inputs[0] in told


def needs_the_past(node: Node, told: Collection[NodeId]) -> bool:
    """Whether an operator that reads the tick before has to have it stored."""
    return not (
        node.spec.state is State.LAST
        and isinstance(node.cls, Growth)
        and node.inputs[0].node in told
    )
