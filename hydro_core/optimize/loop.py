"""Cycles inside a tick, as one thing with inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hydro_core.ir.graph import Endpoint, Graph, NodeId
from hydro_core.ir.walk import components, is_cycle, predecessors, same_tick


@dataclass(frozen=True, slots=True)
class Loop:
    """A cycle inside a tick: its nodes, what it reads from outside, and its streams that are read
    outside.
    """

    nodes: tuple[NodeId, ...]
    reads: tuple[Endpoint, ...]
    gives: tuple[Endpoint, ...]


def loops_of(graph: Graph) -> Iterator[Loop]:
    """The cycles inside a tick, in the order of the text."""
    within = predecessors(graph, same_tick)
    for members in components(within):
        if not is_cycle(members, within):
            continue
        inside = set(members)
        nodes = tuple(n.id for n in graph if n.id in inside)
        reads: dict[Endpoint, None] = {}
        for name in nodes:
            for endpoint in graph[name].inputs:
                if endpoint.node not in inside:
                    reads.setdefault(endpoint)
        gives: dict[Endpoint, None] = {}
        for node in graph:
            for endpoint in node.inputs if node.id not in inside else ():
                if endpoint.node in inside:
                    gives.setdefault(endpoint)
        yield Loop(nodes, tuple(reads), tuple(gives))
