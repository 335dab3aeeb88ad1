"""Types: what items every stream carries, and whether they stand in an order.

Item types are the least fixpoint from "unknown" upwards: a cycle takes the type of what flows
into it, widened by what comes back. Orders are the greatest fixpoint from "ordered" downwards
across ticks; within a cycle of one tick there is no order, since items come round as they are
found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hydro_core.analysis.complaints import of_order, of_schema, of_type
from hydro_core.catalog.spec import OrderRule, TypeProblem
from hydro_core.errors import Diagnostic, ProgramError
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.ir.walk import components, is_cycle, outputs, predecessors, same_tick
from hydro_core.types.common import common_type
from hydro_core.types.item import UNKNOWN, ItemType
from hydro_core.types.stream import Order, StreamType

MAX_ROUNDS = 60
"""A cycle's types may widen so often before they are said to grow without end."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A graph with the type of every stream in it."""

    graph: Graph
    types: Mapping[Endpoint, StreamType]

    def of(self, node: NodeId) -> StreamType:
        """What a node gives, on any of its ports; of a sink, what flows into it."""
        found = next((t for e, t in self.types.items() if e.node == node), None)
        return self.types[self.graph[node].inputs[0]] if found is None else found

    @property
    def inputs(self) -> Mapping[str, StreamType]:
        """The type of every input, by its name."""
        return {name: self.types[Endpoint(n.id)] for name, n in self.graph.sources.items()}

    @property
    def outputs(self) -> Mapping[str, StreamType]:
        """The type of every output, by its name: several sinks of one name give no order."""
        table = {}
        for name, sinks in self.graph.sinks.items():
            parts = [self.types[sink.inputs[0]] for sink in sinks]
            item = parts[0].item
            for part in parts[1:]:
                item = common_type(item, part.item) or item
            alone = len(parts) == 1
            order = parts[0].order if alone else Order.NONE
            table[name] = StreamType(item, order, alone and parts[0].single)
        return table


def infer(
    graph: Graph, schemas: Mapping[str, ItemType] | None = None, *, partial: bool = False
) -> Typed:
    """The types of a graph; an input without a declaration has its type in `schemas`.

    One with neither is a problem, or if `partial` its items are unknown.
    """
    everything = predecessors(graph)
    groups = components(everything)
    items = _Items(graph, schemas or {}, partial)
    for group in groups:
        items.settle(group, is_cycle(group, everything))
    orders = _orders(graph, groups)
    singles = _singles(graph, groups)
    problems = [*items.problems, *_disordered(graph, orders), *_mixed_sinks(graph, items.of)]
    if problems:
        raise ProgramError(*sorted(problems, key=_place))
    types = {
        endpoint: StreamType(items.of[node.id], orders[node.id], singles[node.id])
        for node in graph
        for endpoint in outputs(node)
    }
    return Typed(graph, MappingProxyType(types))


def _place(diagnostic: Diagnostic) -> tuple[int, int]:
    return (diagnostic.span.line, diagnostic.span.column) if diagnostic.span else (0, 0)


class _Items:
    """The item types found so far, and what was wrong."""

    def __init__(self, graph: Graph, schemas: Mapping[str, ItemType], partial: bool) -> None:
        self.graph, self.schemas, self.partial = graph, schemas, partial
        self.of: dict[NodeId, ItemType] = {node.id: UNKNOWN for node in graph}
        self.problems: list[Diagnostic] = []

    def settle(self, group: tuple[NodeId, ...], cyclic: bool) -> None:
        """Finds the types of a component whose predecessors' types are known."""
        rounds = 0
        changed = cyclic
        while changed and rounds < MAX_ROUNDS:
            changed = False
            rounds += 1
            for name in group:
                changed |= self._widen(self.graph[name])
        if changed:
            self.problems.append(_endless(self.graph[group[0]], self.of[group[0]]))
            return
        for name in group:
            node = self.graph[name]
            try:
                self.of[name] = self._type(node)
            except TypeProblem as problem:
                self.problems.append(of_type(node, problem, self._inputs(node)))

    def _widen(self, node: Node) -> bool:
        """One step of a cycle: what cannot be typed yet may be, once more is known."""
        try:
            found = self._type(node)
        except TypeProblem:
            return False
        both = common_type(self.of[node.id], found)
        if both is None or both == self.of[node.id]:
            return False
        self.of[node.id] = both
        return True

    def _type(self, node: Node) -> ItemType:
        if node.op.name == "source" and node.args["schema"] is None:
            return self._schema(node)
        return node.op.result(node.args, self._inputs(node))

    def _inputs(self, node: Node) -> tuple[ItemType, ...]:
        return tuple(self.of[e.node] for e in node.inputs)

    def _schema(self, node: Node) -> ItemType:
        name = node.args["name"]
        if name not in self.schemas and not self.partial:
            self.problems.append(of_schema(self.graph, node))
        return self.schemas.get(name, UNKNOWN)


def _endless(node: Node, item: ItemType) -> Diagnostic:
    shown = str(item) if len(str(item)) < 60 else f"{str(item)[:60]}…"
    return Diagnostic(
        "type",
        f"the type of the cycle through `{node.id}` grows without end: {shown}",
        node.span,
        node.op.name,
        "let the cycle give items of the type that it gets",
    )


def _orders(graph: Graph, groups: list[tuple[NodeId, ...]]) -> Mapping[NodeId, Order]:
    within = predecessors(graph, same_tick)
    round_about = {n for c in components(within) if is_cycle(c, within) for n in c}
    orders = {node.id: Order.NONE if node.id in round_about else Order.TOTAL for node in graph}
    for group in groups:
        changed = True
        while changed:
            changed = False
            for name in group:
                if orders[name] is Order.TOTAL and _order(graph[name], orders) is Order.NONE:
                    orders[name] = Order.NONE
                    changed = True
    return orders


def _order(node: Node, orders: Mapping[NodeId, Order]) -> Order:
    if not node.inputs:
        return Order.NONE
    inputs = [orders[e.node] for e in node.inputs]
    match node.spec.order:
        case OrderRule.GIVES:
            return Order.TOTAL
        case OrderRule.LOSES:
            return Order.NONE
        case OrderRule.KEEPS:
            return inputs[0]
        case OrderRule.KEEPS_IF_ALL:
            return Order.NONE if Order.NONE in inputs else Order.TOTAL


def _singles(graph: Graph, groups: list[tuple[NodeId, ...]]) -> Mapping[NodeId, bool]:
    """Which streams have at most one item each tick; a cycle may gather more."""
    single: dict[NodeId, bool] = {}
    for group in groups:
        for name in group:
            node = graph[name]
            kept = node.spec.keeps_single and bool(node.inputs)
            single[name] = node.spec.single or (
                kept and all(single.get(e.node, False) for e in node.inputs)
            )
    return single


def _disordered(graph: Graph, orders: Mapping[NodeId, Order]) -> list[Diagnostic]:
    return [
        of_order(graph, node, port, endpoint)
        for node in graph
        for port, endpoint in node.reads()
        if port.needs is Order.TOTAL and orders[endpoint.node] is Order.NONE
    ]


def _mixed_sinks(graph: Graph, items: Mapping[NodeId, ItemType]) -> list[Diagnostic]:
    problems = []
    for name, sinks in graph.sinks.items():
        item = items[sinks[0].inputs[0].node]
        for sink in sinks[1:]:
            other = items[sink.inputs[0].node]
            both = common_type(item, other)
            if both is None:
                problem = TypeProblem(
                    f"the output `{name}` gets items of different types: {item} and {other}",
                    "make them the same first, or give one of them another name",
                )
                problems.append(of_type(sink, problem, (item, other)))
            item = both or item
    return problems
