"""Which streams are told by their changes, and by what of them alone.

A history is told by what it adds. A running result needs, in tick t + 1, its rows of tick t whose
keys are in what is new, and changes no others, so what changes is known by its construction; so it
is for results by key of a history, for a window, and for rows of histories without a match. What
goes item by item hands changes on.
Where somebody wants no more than the changes, the rows that stay are never looked at, and what is
stored of such a stream is a log of its changes.

A history behind which only its additions are looked at (`delta`, an output that is stored as a
history) need not be computed again for the ticks before the range: a join of two histories is then
what is new on one side with all of the other, and what is new on the other with the past of the
one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.classes import Growth, Output
from hydro_core.catalog.forms import Form, given, needed
from hydro_core.catalog.spec import OrderRule, State
from hydro_core.ir.graph import Graph, Node, NodeId
from hydro_core.plan.kinds import Kind
from hydro_core.plan.tick_plan import TickPlan
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
            is_general = kinds[name] is Kind.G and typed.of(name).order is not Order.TOTAL
            if form is Form.CHANGES and not cyclic and is_general:
                known[name] = form
    could = {name for name, form in known.items() if form is Form.CHANGES}
    return frozenset(could & _wanted(graph, could))


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


def in_one_form(plan: TickPlan, outputs: Collection[str]) -> frozenset[NodeId]:
    """The nodes of whose streams nobody needs more than their form tells: the changes of those that
    are told by them, and of histories what a range adds.

    `outputs` are the names of those outputs of which that is enough.
    """
    changes = changes_suffice(plan.graph, plan.in_changes, plan.kinds, outputs)
    return additions_only(plan, outputs) | (changes & plan.in_changes)


def additions_only(plan: TickPlan, outputs: Collection[str]) -> frozenset[NodeId]:
    """The nodes that give histories of which nobody needs the rows of before a range.

    `outputs` are the names of those outputs whose additions are enough.
    """
    alone = {c.nodes[0] for c in plan.components if c.how == "once"}
    stored = {slot.stream.node for slot in plan.slots}
    found = {n for n in alone - stored if plan.kinds[n] is Kind.H}
    while whole := {n for n in found if not _suffice(plan, n, found, outputs)}:
        found -= whole
    return frozenset(found)


def _suffice(plan: TickPlan, node: NodeId, found: set[NodeId], outputs: Collection[str]) -> bool:
    """Whether additions are enough for all that read the node."""
    if isinstance(plan.graph[node].cls, Output):
        return plan.graph[node].args["name"] in outputs
    return all(
        isinstance(reader.cls, Growth)
        or (reader.id in found and (isinstance(reader.cls, Output) or _goes_row_by_row(reader)))
        for reader in plan.graph.readers(node)
    )


def _goes_row_by_row(node: Node) -> bool:
    """Whether every row comes from one row, of the same tick."""
    alone = len(node.inputs) == 1 or node.spec.variadic or node.spec.order is OrderRule.KEEPS_IF_ALL
    return node.spec.state is State.NONE and alone and all(p.linear for p, _ in node.reads())
