"""Strata: blocking inputs come from an earlier stratum, and there are as few strata as that allows.

The number of a component is the largest, over its inputs of this tick, of the producer's number,
plus one if the input blocks. What is read of the tick before is there from the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hydro_core.analysis.cycles import blocked_cycle
from hydro_core.analysis.infer import Typed
from hydro_core.catalog.spec import Barrier
from hydro_core.errors import ProgramError
from hydro_core.ir.graph import Endpoint, Graph, NodeId
from hydro_core.ir.walk import components, is_cycle, predecessors, same_tick


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
    problems = [found for cycle in cycles if (found := blocked_cycle(graph, cycle)) is not None]
    if problems:
        raise ProgramError(*problems)
    numbers: dict[NodeId, int] = {}
    for group in groups:
        number = _number(graph, group, numbers)
        # A component is numbered as a whole: its members see each other within one fixpoint.
        numbers.update(dict.fromkeys(group, number))
    of = {node.id: numbers[node.id] for node in graph}
    return Strata(MappingProxyType(of), tuple(cycles), _handoffs(graph, of))


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


def _handoffs(graph: Graph, of: Mapping[NodeId, int]) -> tuple[tuple[Endpoint, int, int], ...]:
    found = {
        (endpoint, of[endpoint.node], of[node.id]): None
        for node in graph
        for port, endpoint in node.reads()
        if same_tick(port) and of[endpoint.node] < of[node.id]
    }
    return tuple(found)
