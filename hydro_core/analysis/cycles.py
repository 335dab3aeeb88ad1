"""Cycles that cannot run: an operator that waits, within the tick, for its own output to be complete."""

from __future__ import annotations

from hydro_core.catalog.spec import Barrier, Port
from hydro_core.errors import Diagnostic
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.ir.walk import predecessors, same_tick, shortest_path


def blocked_cycle(graph: Graph, cycle: frozenset[NodeId]) -> Diagnostic | None:
    """What is wrong with a cycle of one tick: None if no input in it blocks."""
    before = predecessors(graph, same_tick)
    ways = [
        (shortest_path(before, endpoint.node, node.id, cycle), node, port, endpoint)
        for node in graph
        if node.id in cycle
        for port, endpoint in node.reads()
        if port.barrier is Barrier.STRATUM and endpoint.node in cycle
    ]
    if not ways:
        return None
    way, node, port, endpoint = min(ways, key=lambda found: len(found[0]))
    return _complaint(graph, list(reversed(way)), node, port, endpoint)


def _complaint(
    graph: Graph, way: list[NodeId], node: Node, port: Port, endpoint: Endpoint
) -> Diagnostic:
    """`way` leads with the stream from the blocked node to the one whose output it waits for."""
    several = len(node.op.inputs) > 1
    entry = f"[{port.name}]{shown(node)}" if several else shown(node)
    steps = " -> ".join([*(shown(graph[name]) for name in way), entry])
    which = f"its input `[{port.name}]`" if several else "its input"
    again = f"[{port.name}]{node.id}" if several else node.id
    return Diagnostic(
        "cycle",
        f"`{node.op.name}` waits for {which} to be complete, which depends on its own output in the "
        f"same tick: {steps}",
        node.span,
        node.op.name,
        f"let the next tick read it: `{endpoint} -> prev() -> {again}`",
    )


def shown(node: Node) -> str:
    """A node as a cycle prints it: its operator, and its name if the program gave it one.

    A generated id says the operator already.
    """
    generated = node.id.startswith(f"{node.op.name}_") or node.id == node.op.name
    return f"{node.op.name}()" if generated else f"{node.id}: {node.op.name}()"
