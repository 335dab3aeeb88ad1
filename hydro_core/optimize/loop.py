"""Cycles inside a tick, as one thing with inputs and outputs.

Their form is the same for two cycles that are the same equations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.spec import OrderRule
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


@dataclass(slots=True)
class _Walk:
    typed: Typed
    inside: frozenset[NodeId]
    places: dict[NodeId, int] = field(default_factory=dict)
    reads: dict[Endpoint, int] = field(default_factory=dict)


def loop_form(typed: Typed, loop: Loop, end: Endpoint) -> tuple[Any, tuple[int, ...]]:
    """The equations behind a stream of a loop, whatever its nodes are called.

    Also the order in which they read what comes from outside: positions in `loop.reads`. The
    functions of `typed` are in normal form.
    """
    walk = _Walk(typed, frozenset(loop.nodes))
    todo = [end.node]
    equations = []
    while todo:
        name = todo.pop()
        if name in walk.places:
            continue
        walk.places[name] = len(walk.places)
        todo += [e.node for e in reversed(_inputs(walk, name)) if e.node in walk.inside]
    for name in walk.places:
        node = typed.graph[name]
        item = typed.of(name).item
        inputs = tuple(_read(walk, endpoint) for endpoint in _inputs(walk, name))
        equations.append((node.op.name, node.args, item, inputs))
    order = tuple(loop.reads.index(endpoint) for endpoint in walk.reads)
    return (end.port, tuple(equations)), order


def _inputs(walk: _Walk, name: NodeId) -> tuple[Endpoint, ...]:
    """What a node reads; the parts of a sum in an order that does not depend on the text's."""
    graph = walk.typed.graph
    node = graph[name]
    if not node.op.variadic or node.spec.order is not OrderRule.LOSES:
        return node.inputs

    def place(endpoint: Endpoint) -> tuple[bool, str, str, str]:
        other = graph[endpoint.node]
        return (endpoint.node in walk.inside, other.op.name, repr(other.args), endpoint.port)

    return tuple(sorted(node.inputs, key=place))


def _read(walk: _Walk, endpoint: Endpoint) -> tuple[str, int, str]:
    if endpoint.node in walk.inside:
        return "within", walk.places[endpoint.node], endpoint.port
    return "from outside", walk.reads.setdefault(endpoint, len(walk.reads)), ""
