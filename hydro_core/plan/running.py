"""Results that run from tick to tick, and the streams that tell by how much they change.

`x = aggregate_from(prev x, a)` needs, in tick t + 1, the rows of x at tick t whose keys are in the
new part of a, and changes no others. So such a cycle is not run tick by tick: over a range it is
one pass over what is new, and what it changes is known by its construction: the old row of each
touched key goes, the new one comes. What goes item by item hands these changes on, and what is
stored of such a stream is a log of them. Commands, too, tell what they change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from hydro_core.catalog.classes import (
    Before,
    Continues,
    Growth,
    Output,
    Sum,
    is_itemwise,
    passes_on,
)
from hydro_core.catalog.spec import OrderRule, State
from hydro_core.ir.graph import Graph, Node, NodeId
from hydro_core.plan.kinds import Kind


@dataclass(frozen=True, slots=True)
class RunningForm:
    """The cycle of a running result."""

    result: NodeId
    """The operator that goes on from its own result of the tick before."""
    before: NodeId
    """The operator that reads the tick before of it."""
    rest: tuple[NodeId, ...]
    """The members but the result, in the order of evaluation."""


def running_form(nodes: Collection[NodeId], graph: Graph) -> RunningForm | None:
    """The cycle as that of a running result; None where it is another one."""
    members = set(nodes)
    results = [n for n in nodes if isinstance(graph[n].cls, Continues)]
    before = [n for n in nodes if isinstance(graph[n].cls, Before)]
    if len(results) != 1 or len(before) != 1:
        return None
    result = results[0]
    state, *news = graph[result].inputs
    if members & {new.node for new in news}:
        return None
    rest: list[NodeId] = []
    at = state.node
    while at != result:
        node = graph[at]
        if at in rest or not (passes_on(node.cls) or at in before):
            return None
        rest.append(at)
        at = node.inputs[0].node
    if {result, *rest} != members:
        return None
    return RunningForm(result, before[0], tuple(reversed(rest)))


def telling(
    graph: Graph,
    order: Iterable[tuple[Collection[NodeId], RunningForm | None]],
    kinds: Mapping[NodeId, Kind],
) -> frozenset[NodeId]:
    """The general streams that tell their changes.

    `order` has all components, what is read before what reads it, with the form of the running.
    """
    found: set[NodeId] = set()
    for nodes, form in order:
        if form is not None:
            found.add(form.result)
            candidates: Collection[NodeId] = [n for n in form.rest if n != form.before]
        else:
            candidates = nodes if len(nodes) == 1 else ()
        found.update(n for n in candidates if _hands_on(graph[n], found, kinds))
    return frozenset(found)


def _hands_on(node: Node, told: Collection[NodeId], kinds: Mapping[NodeId, Kind]) -> bool:
    inputs = [e.node for e in node.inputs]
    if node.spec.state is State.COMMANDS:
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
