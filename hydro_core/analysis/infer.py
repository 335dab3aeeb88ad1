"""Types: item type, order and nullability of every stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import assert_never

from hydro_core.catalog.classes import (
    AsOf,
    ByKey,
    Commands,
    DistinctItems,
    EmptyStream,
    ItemEffect,
    KeyMatch,
    OrderedByKey,
    Ordering,
    OverTime,
    PassedItems,
    PerItem,
    Places,
    PositionalOrder,
    Product,
    Projection,
    RunningResult,
    StreamEnd,
    Sum,
    Summary,
    TickDifference,
)
from hydro_core.catalog.itemwise import SOURCE
from hydro_core.catalog.spec import OrderRule, Port, TypeProblem, functions_of
from hydro_core.errors import Diagnostic, ProgramError, Span, beginning
from hydro_core.functions.totality import certainty
from hydro_core.functions.tree import SameTree
from hydro_core.ir.graph import (
    Endpoint,
    Graph,
    Node,
    NodeId,
    components,
    is_cycle,
    is_generated,
    outputs,
    predecessors,
    same_tick,
)
from hydro_core.lang.source import RULES, did_you_mean
from hydro_core.types.common import common_type
from hydro_core.types.item import OPEN, UNKNOWN, ItemType, Order, StreamType, is_large, nullable
from hydro_core.types.records import NAME

# Diagnostics of the analyses, each with its location and its help in the program's own words.


def of_type(node: Node, problem: TypeProblem, inputs: Sequence[ItemType]) -> Diagnostic:
    """A type problem of a node, at its place within a function if it has one."""
    message = problem.message
    if not message.startswith("`"):
        message = f"`{node.op.name}`: {message}"
    help_ = problem.help or f"what flows in is {' and '.join(map(str, inputs))}"
    return Diagnostic(problem.code, message, _place(node, problem.place), node.op.name, help=help_)


def _place(node: Node, place: tuple[int, int]) -> Span | None:
    if place == (0, 0):
        return node.span
    for fn in functions_of(node.args):
        if fn.span is not None and fn.span.line <= place[0] <= fn.span.end_line:
            begins = place == (fn.span.line, fn.span.column)
            return fn.span if begins else fn.span.at(*place)
    return node.span


def of_schema(graph: Graph, node: Node) -> Diagnostic:
    """An input without a type: neither the program nor the caller nor data gives one."""
    name = node.args["name"]
    others = [n.id for n in graph if n is not node] + [*graph.sinks]
    meant = did_you_mean(name, others)
    declare = f'declare it: `{name} = source("…")`, or give its schema or data'
    if node.span is not None and node.span.file.endswith(RULES):
        declare = (
            f"say what it has: `.input {name}(column: type, …)`, or `schemas` in `asset.yaml`; "
            "`hydrotick run` also takes the types of its data"
        )
    return Diagnostic(
        "input",
        f"`{name}` is never defined, so it is an input, but nothing says what its items are",
        node.span,
        node.op.name,
        help=f"{meant} If it is an input, {declare}" if meant else declare,
    )


def of_order(graph: Graph, node: Node, port: Port, endpoint: Endpoint) -> Diagnostic:
    """An operator whose input lacks the order that it needs."""
    reader = f"`{node.op.name}`"
    several = len(node.op.inputs) > 1
    wants = f"{reader} needs an ordered input" + (f" at `[{port.name}]`" if several else "")
    before = graph[endpoint.node]
    stream = "… " if is_generated(before) else f"{endpoint} "
    help_ = f"impose one first: `{stream}-> sort() -> {_written(node)}`"
    if several and is_generated(node) and port.keyword:
        help_ = f"impose one first: `ordered = {stream}-> sort()`, then `{port.keyword}=ordered`"
    elif several:
        entry = f"[{port.name}]" + (f"{node.op.name}()" if is_generated(node) else node.id)
        help_ = f"impose one first: `{stream}-> sort() -> {entry}`"
    if port.cure:
        help_ += f"; or {port.cure}"
    return Diagnostic(
        "ordering",
        f"{wants}, but {_said(before, endpoint)} has no order",
        node.span,
        node.op.name,
        help=help_,
    )


def _written(node: Node) -> str:
    """The call as the program writes it, if that is short."""
    span = node.span
    if span is not None and span.text and span.line == span.end_line:
        text = span.text[span.column - 1 : span.end_column - 1]
        if text.startswith(node.op.name) and len(text) <= 40:
            return text
    return f"{node.op.name}({'…' if node.op.args else ''})"


def _said(node: Node, endpoint: Endpoint) -> str:
    return f"what `{node.op.name}` gives" if is_generated(node) else f"`{endpoint}`"


# Types: the items of every stream, and their order.
#
# Item types are the least fixpoint from "no item" upwards: a stream of a cycle has the common type
# of its entry and its feedback. Orders are the greatest fixpoint from "ordered" downwards across
# ticks; within a cycle of one tick there is no order, since items come round as they are found.


MOST_WIDENINGS = 60
"""Largest number of times that a stream's type may grow before the program is refused as endless.
"""


@dataclass(frozen=True)
class Typed:
    """A graph with the type of every stream in it."""

    graph: Graph
    types: Mapping[Endpoint, StreamType] = field(metadata={NAME: "streams"})

    def of(self, node: NodeId) -> StreamType:
        """The type of a node's output, on its first port; for a sink, the type of its input."""
        reader = self.graph[node]
        ports = [port for port in outputs(reader) if port in self.types]
        return self.types[ports[0] if ports else reader.inputs[0]]

    @cached_property
    def inputs(self) -> Mapping[str, StreamType]:
        """The type of every input, by its name."""
        return {name: self.types[Endpoint(n.id)] for name, n in self.graph.sources.items()}

    @cached_property
    def schemas(self) -> Mapping[str, ItemType]:
        """The item type of every input, by its name: the schemas that `infer` uses."""
        return {name: stream.item for name, stream in self.inputs.items()}

    @cached_property
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

    One with neither is a problem, or if `partial` its items are open.
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
        raise ProgramError(*sorted(problems, key=lambda p: beginning(p.span)))
    types = {
        endpoint: StreamType(items.of[node.id], orders[node.id], singles[node.id])
        for node in graph
        for endpoint in outputs(node)
    }
    return Typed(graph, MappingProxyType(types))


class _Items:
    """The inferred item types, and the problems."""

    def __init__(self, graph: Graph, schemas: Mapping[str, ItemType], partial: bool) -> None:
        self.graph, self.schemas, self.partial = graph, schemas, partial
        self.of: dict[NodeId, ItemType] = {node.id: UNKNOWN for node in graph}
        self.problems: list[Diagnostic] = []
        self.cyclic = False

    def settle(self, group: tuple[NodeId, ...], cyclic: bool) -> None:
        """Finds the types of a component whose predecessors' types are known."""
        self.cyclic = cyclic
        if cyclic and not self._rise(group):
            return
        # Down again: the rise may have widened a type by a feedback type that was too wide itself.
        for _ in range(MOST_WIDENINGS if cyclic else 1):
            before = [self.of[name] for name in group]
            problems = [p for name in group if (p := self._assign(self.graph[name])) is not None]
            if problems or before == [self.of[name] for name in group] or not cyclic:
                self.problems += problems
                return
        self.problems.append(_unsettled(self.graph[group[0]], before[0], self.of[group[0]]))

    def _rise(self, group: tuple[NodeId, ...]) -> bool:
        """Raises the types of a cycle to their fixpoint; False, with a problem recorded, if there
        is none.
        """
        readers: dict[NodeId, list[NodeId]] = {name: [] for name in group}
        for name in group:
            for endpoint in self.graph[name].inputs:
                if endpoint.node in readers:
                    readers[endpoint.node].append(name)
        widenings = Counter[NodeId]()
        todo = dict.fromkeys(reversed(group))
        while todo:
            node = self.graph[todo.popitem()[0]]
            before = self.of[node.id]
            try:
                found = self._type(node)
            except TypeProblem:
                # An operator that has no type yet may have one once more of its inputs are known.
                continue
            both = common_type(before, found)
            if both == before:
                continue
            if both is None:
                self.problems.append(_unlike(node, before, found))
                return False
            self.of[node.id] = both
            widenings[node.id] += 1
            if widenings[node.id] > MOST_WIDENINGS or is_large(both):
                self.problems.append(_endless(node, both))
                return False
            todo |= dict.fromkeys(readers[node.id])
        return True

    def _assign(self, node: Node) -> Diagnostic | None:
        try:
            self.of[node.id] = self._type(node)
        except TypeProblem as problem:
            return of_type(node, problem, self._inputs(node))
        return None

    def _type(self, node: Node) -> ItemType:
        if node.op is SOURCE and node.args["schema"] is None:
            return self._schema(node)
        found = node.op.result(node.args, self._inputs(node))
        # Items of a feedback may be null: type equality in the loop must not depend on it.
        return nullable(found) if self.cyclic else found

    def _inputs(self, node: Node) -> tuple[ItemType, ...]:
        return tuple(self.of[e.node] for e in node.inputs)

    def _schema(self, node: Node) -> ItemType:
        name = node.args["name"]
        if name not in self.schemas and not self.partial:
            self.problems.append(of_schema(self.graph, node))
        return self.schemas.get(name, OPEN)


_SAY = (
    "let the cycle give items of the type that it gets, or say what the function in it gives: "
    '`returns="…"`'
)


def _endless(node: Node, item: ItemType) -> Diagnostic:
    shown = _shown(item)
    message = f"the type of the cycle through `{node.id}` grows without end: {shown}"
    return Diagnostic("type", message, node.span, node.op.name, help=_SAY)


def _unlike(node: Node, before: ItemType, found: ItemType) -> Diagnostic:
    message = (
        f"the cycle through `{node.id}` has items of types that have none in common: "
        f"{_shown(before)}, and then {_shown(found)}"
    )
    return Diagnostic("type", message, node.span, node.op.name, help=_SAY)


def _unsettled(node: Node, before: ItemType, found: ItemType) -> Diagnostic:
    message = (
        f"the cycle through `{node.id}` has no type: if its items are {_shown(before)}, "
        f"they are {_shown(found)}"
    )
    return Diagnostic("type", message, node.span, node.op.name, help=_SAY)


def _shown(item: ItemType) -> str:
    text = str(item)
    return text if len(text) < 60 else f"{text[:60]}…"


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


# Streams whose items are never null.
#
# A null item is an item, but operators that build pairs, rows with computed columns, or keyed
# results never build a null, and operators that forward items have a null only where their input
# has one. So lookups of such a stream find no null in the position of a row.


def never_null(graph: Graph, given: Collection[NodeId] = ()) -> frozenset[NodeId]:
    """The nodes of whose outputs no item is null; those that are `given` are known to be such."""
    found = set(graph.nodes)
    while lost := {
        name for name in found if name not in given and not _is_never_null(graph[name], found)
    }:
        found -= lost
    return frozenset(found)


def _is_never_null(node: Node, found: set[NodeId]) -> bool:
    inputs = [e.node in found for e in node.inputs]
    match node.cls.passes:
        case PassedItems.ALL | PassedItems.SO_FAR:
            return all(inputs)
        case PassedItems.SOME | PassedItems.EARLIER:
            return inputs[0]
        case PassedItems.NONE:
            return _makes_items(node)


def _makes_items(node: Node) -> bool:
    """True if the operator builds its items itself, and none of them is null."""
    cls, found = node.cls, False
    match cls:
        case PerItem(ItemEffect.ONE):
            tree = node.args["f"].tree
            found = tree is not None and certainty(SameTree(tree)).not_null
        case PerItem(gives):
            found = gives in (ItemEffect.UP_TO_ONE, ItemEffect.RESULT)
        case ByKey(summary, keyed) | RunningResult(ByKey(summary, keyed)):
            found = keyed or summary is Summary.AGGREGATES
        case PositionalOrder(gives=place):
            found = place in (Places.PAIRS, Places.PADDED_PAIRS)
        case TickDifference(made) | Commands(made):
            found = made
        case EmptyStream() | Projection() | Product() | AsOf() | OrderedByKey() | RunningResult():
            found = True
        case StreamEnd() | Sum() | KeyMatch() | DistinctItems() | Ordering() | OverTime():
            found = False
        case _:
            assert_never(cls)
    return found
