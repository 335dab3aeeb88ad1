"""Cycles that cannot run: an operator waits, within the tick, for its own output."""

from __future__ import annotations

from hydro_core.catalog.spec import Barrier, Port
from hydro_core.errors import Diagnostic
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.ir.walk import is_generated, predecessors, same_tick, shortest_path


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
    name = f"{node.op.name}(…)" if is_generated(node) else node.id
    again = f"[{port.name}]{name}" if several else name
    stream = "… " if is_generated(graph[endpoint.node]) else f"{endpoint} "
    return Diagnostic(
        "cycle",
        f"`{node.op.name}` waits for {which} to be complete, which depends on its own output "
        f"in the same tick: {steps}",
        node.span,
        node.op.name,
        help=f"let the next tick read it: `{stream}-> prev() -> {again}`",
    )


def shown(node: Node) -> str:
    """A node as a cycle prints it: its operator, and its name if the program gave it one."""
    plain = is_generated(node) or node.id == node.op.name
    return f"{node.op.name}()" if plain else f"{node.id}: {node.op.name}()"
