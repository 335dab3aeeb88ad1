"""How tables that a plan wants come to be when the ticks before are over: a plan of their own.

A new deployment wants states and outputs that nobody has kept. What computes them is a part of its
plan, from the inputs on, run over the past as ranges. Where a stream of it is stored already, as a
state or an output of the deployment before, that part begins with the table instead, and neither
the inputs behind it nor their landed past are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hydro_core.analysis.infer import infer
from hydro_core.catalog.io import SOURCE
from hydro_core.catalog.spec import Args
from hydro_core.catalog.state import PERSIST
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.plan.kinds import Kind
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import StateSlot, TickPlan
from hydro_core.types.stream import Order


@dataclass(frozen=True, slots=True)
class WantedTables:
    """The tables that have to be made: state slots by their ids, outputs by their names."""

    slots: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.slots or self.outputs)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A stored table that has a stream's items of every tick."""

    table: str
    """Its name in the ledger."""
    grows: bool = False
    """Its rows are what each tick adds to the stream; else they are the stream at each tick."""


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """What makes the wanted tables."""

    plan: TickPlan
    tables: Mapping[str, Leaf]
    """The tables that it reads, by the names of the inputs in whose place they stand."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The program's own inputs of which the landed past is read."""
        return tuple(name for name in self.plan.graph.sources if name not in self.tables)


def bootstrap(target: TickPlan, wanted: WantedTables, leaves: Mapping[Endpoint, Leaf]) -> Bootstrap:
    """The part of a plan that makes the wanted tables, cut where streams are stored.

    `leaves` are the stored streams, as the plan `target` names them. The slots and outputs have in
    it the ids and names that they have in `target`, and are stored in the same way; where a cut
    would change that, less is cut.
    """
    for cuts in (leaves, {}) if leaves else ({},):
        found = _part(target, wanted, cuts)
        if _makes(found.plan, target, wanted):
            return found
    return Bootstrap(target, {})


def _part(target: TickPlan, wanted: WantedTables, leaves: Mapping[Endpoint, Leaf]) -> Bootstrap:
    graph = target.graph
    # Tables tell no order, and a node with several outputs is no input.
    unordered = {e for e, of in target.typed.types.items() if of.order is Order.NONE and not e.port}
    usable = {e: leaf for e, leaf in leaves.items() if e in unordered}
    nodes: dict[NodeId, Node] = {}
    tables: dict[str, Leaf] = {}
    todo = list(_ends(target, wanted))
    while todo:
        name = todo.pop()
        if name in nodes:
            continue
        node = graph[name]
        leaf = usable.get(Endpoint(name))
        if leaf is None:
            nodes[name] = node
            todo += [e.node for e in node.inputs]
            continue
        tables[leaf.table] = leaf
        for made in _in_its_place(node, leaf, target):
            nodes[made.id] = made
    part = Graph.of((nodes[n] for n in _in_order(graph, nodes)), graph.name)
    return Bootstrap(plan(infer(part, target.typed.schemas)), tables)


def _ends(target: TickPlan, wanted: WantedTables) -> Iterable[NodeId]:
    """The nodes that read the wanted slots, and the sinks of the wanted outputs."""
    for slot in target.slots:
        if slot.id in wanted.slots:
            yield from slot.readers
    for name in wanted.outputs:
        yield from (sink.id for sink in target.graph.sinks[name])


def _in_its_place(node: Node, leaf: Leaf, target: TickPlan) -> tuple[Node, ...]:
    """The input that stands for a stored stream, under the name of the node that computes it."""
    item = target.typed.types[Endpoint(node.id)].item
    args = Args().with_(schema=item, name=leaf.table, fds=())
    if not leaf.grows:
        return (Node(node.id, SOURCE, args, (), node.span),)
    rows = f"{node.id}_added"
    return (
        Node(rows, SOURCE, args, (), node.span),
        Node(node.id, PERSIST, Args(), (Endpoint(rows),), node.span),
    )


def _in_order(graph: Graph, nodes: Mapping[NodeId, Node]) -> Iterable[NodeId]:
    """The order of the program's text, what is new before all of it."""
    yield from (name for name in nodes if name not in graph.nodes)
    yield from (name for name in graph.nodes if name in nodes)


def _makes(part: TickPlan, target: TickPlan, wanted: WantedTables) -> bool:
    """Whether the plan keeps the wanted slots, and gives the wanted outputs, as the target does."""
    made = {slot.id: _stored_as(slot) for slot in part.slots}
    slots = all(made.get(s.id) == _stored_as(s) for s in target.slots if s.id in wanted.slots)
    return slots and all(
        _given_as(part, name) == _given_as(target, name) for name in wanted.outputs
    )


def _stored_as(slot: StateSlot) -> tuple[object, ...]:
    return (slot.stream, slot.item, slot.ordered, slot.form, slot.keep, slot.bound)


def _given_as(plan: TickPlan, output: str) -> tuple[object, ...]:
    sinks = plan.graph.sinks.get(output, ())
    streams = [sink.inputs[0] for sink in sinks]
    kinds: list[Kind] = [plan.kinds[s.node] for s in streams]
    return (plan.typed.outputs.get(output), kinds, [s.node in plan.in_changes for s in streams])
