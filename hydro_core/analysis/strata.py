"""Strata: blocking inputs come from an earlier stratum, and there are as few strata as possible.

The number of a component is the largest, over its inputs of this tick, of the producer's number,
plus one if the input blocks. Streams of the tick before are complete from the beginning. A cycle
whose operator depends, within the tick, on its own complete output cannot run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.spec import Barrier, Port
from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.ir.graph import (
    Endpoint,
    Graph,
    Node,
    NodeId,
    Successors,
    components,
    is_cycle,
    is_generated,
    predecessors,
    same_tick,
    shortest_path,
)


@dataclass(frozen=True, slots=True)
class Strata:
    """The stratum of every node, the cycles that run to a fixpoint, and the handoffs."""

    of: Mapping[NodeId, int]
    recursive: tuple[frozenset[NodeId], ...]
    handoffs: tuple[tuple[Endpoint, int, int], ...]

    @property
    def count(self) -> int:
        return max(self.of.values(), default=-1) + 1

    def members(self, stratum: int) -> tuple[NodeId, ...]:
        """The nodes of a stratum, in the order of the text."""
        return tuple(node for node, number in self.of.items() if number == stratum)


def stratify(typed: Typed) -> Strata:
    """The smallest stratum of every node such that blocking inputs come from earlier ones."""
    graph = typed.graph
    within = predecessors(graph, same_tick)
    groups = components(within)
    cycles = [frozenset(group) for group in groups if is_cycle(group, within)]
    problems = [found for cycle in cycles if (found := _blocked(graph, within, cycle)) is not None]
    if problems:
        raise ProgramError(*problems)
    numbers: dict[NodeId, int] = {}
    for group in groups:
        number = _number(graph, group, numbers)
        # A component is numbered as a whole: its members see each other within one fixpoint.
        numbers.update(dict.fromkeys(group, number))
    of = {node.id: numbers[node.id] for node in graph}
    handoffs = {
        (endpoint, of[endpoint.node], of[node.id]): None
        for node in graph
        for port, endpoint in node.reads()
        if same_tick(port) and of[endpoint.node] < of[node.id]
    }
    return Strata(MappingProxyType(of), tuple(cycles), tuple(handoffs))


def _number(graph: Graph, group: tuple[NodeId, ...], numbers: Mapping[NodeId, int]) -> int:
    members = set(group)
    return max(
        (
            numbers[endpoint.node] + (port.barrier is Barrier.STRATUM)
            for name in group
            for port, endpoint in graph[name].reads()
            if same_tick(port) and endpoint.node not in members
        ),
        default=0,
    )


def _blocked(graph: Graph, before: Successors, cycle: frozenset[NodeId]) -> Diagnostic | None:
    """The diagnostic of a cycle within one tick; None if no input in it blocks."""
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
    """`way` is the path from the blocked node to the node whose output must be complete first."""
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
    """The text of a node in a diagnostic of a cycle: its operator, and its name if the program gave
    it one.
    """
    plain = is_generated(node) or node.id == node.op.name
    return f"{node.op.name}()" if plain else f"{node.id}: {node.op.name}()"
