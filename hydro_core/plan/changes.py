"""Which streams are told by their changes, and by what of them alone.

A history is told by what it adds. A running result needs, in tick t + 1, its rows of tick t whose
keys are in what is new, and changes no others, so what changes is known by its construction; so it
is for results by key of a history, for a window, and for rows of histories without a match. What
goes item by item hands changes on.
Where somebody wants no more than the changes, the rows that stay are never looked at, and what is
stored of such a stream is a log of its changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.classes import Output
from hydro_core.catalog.forms import Form, given, needed
from hydro_core.catalog.spec import State
from hydro_core.ir.graph import Graph, Node, NodeId
from hydro_core.plan.kinds import Kind
from hydro_core.types.stream import Order


def given_as_changes(
    typed: Typed,
    order: Iterable[Collection[NodeId]],
    kinds: Mapping[NodeId, Kind],
) -> frozenset[NodeId]:
    """The general streams that tell their changes to somebody.

    `order` has all components, what is read before what reads it.
    """
    graph, known = typed.graph, {n: Form.GROWTH for n, kind in kinds.items() if kind is Kind.H}
    for nodes in order:
        for name in nodes if len(nodes) == 1 else ():
            node = graph[name]
            form = given(node.cls, (known.get(e.node, Form.VALUES) for e in node.inputs))
            cyclic = name in (e.node for e in node.inputs)
            if form is Form.CHANGES and not cyclic and _is_general(typed, name, kinds):
                known[name] = form
    could = {name for name, form in known.items() if form is Form.CHANGES}
    return frozenset(could & _wanted(graph, could))


def _is_general(typed: Typed, name: NodeId, kinds: Mapping[NodeId, Kind]) -> bool:
    return kinds[name] is Kind.G and typed.of(name).order is not Order.TOTAL


def _wanted(graph: Graph, could: Collection[NodeId]) -> set[NodeId]:
    """The streams of which somebody wants the changes: to read them, or to store a log of them."""
    found = {n for n in could if graph[n].spec.state is State.RESULT}
    found |= {n.id for n in graph if isinstance(n.cls, Output)}
    for node in graph:
        if node.cls.reads_changes or node.spec.state is State.LAST:
            found |= {e.node for e in node.inputs}
    todo = list(found)
    while todo:
        node = graph[todo.pop()]
        tells = needed(node.cls, Form.CHANGES) is Form.CHANGES
        more = {e.node for e in node.inputs if tells} - found
        found |= more
        todo += more
    return found


def changes_suffice(
    graph: Graph,
    by_changes: Collection[NodeId],
    kinds: Mapping[NodeId, Kind],
    outputs: Collection[str] = (),
) -> set[NodeId]:
    """The streams that are told by changes, of which nobody needs more.

    `outputs` are the names of those outputs of which the changes are enough.
    """
    found = {n for n in graph.nodes if n in by_changes or kinds[n] is Kind.H}

    def suffices(reader: Node) -> bool:
        return reader.cls.reads_changes or (reader.id in found and reader.cls.hands_on)

    def is_whole(name: NodeId) -> bool:
        node = graph[name]
        if isinstance(node.cls, Output):
            return node.args["name"] not in outputs
        readers = graph.readers(name)
        return not readers or not all(map(suffices, readers))

    while more := set(filter(is_whole, found)):
        found -= more
    return found


def lacks_changes(node: Node, by_changes: Collection[NodeId], kinds: Mapping[NodeId, Kind]) -> bool:
    """Whether an operator reads the changes of a stream that is not given by them."""
    if needed(node.cls, Form.VALUES) is not Form.CHANGES:
        return False
    return any(e.node not in by_changes and kinds[e.node] is not Kind.H for e in node.inputs)


def needs_the_past(node: Node, by_changes: Collection[NodeId]) -> bool:
    """Whether an operator that reads the tick before has to have it stored."""
    return not (node.cls.reads_changes and node.inputs[0].node in by_changes)
