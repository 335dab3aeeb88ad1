"""Cycles: within a tick, and between operators that read each other's tick before."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.classes import (
    DistinctItems,
    History,
    KeyMatch,
    MatchCondition,
    OpClass,
    passes_on,
)
from hydro_core.catalog.spec import Barrier, OrderRule, State
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId, components, first_inputs, same_tick
from hydro_core.plan.tick_plan import Component, Execution, Key, Kind, TickPlan, keeps_key
from hydro_core.types.item import Order

# Cycles within a tick, as far as the plan determines them: closing streams and new rows of rounds.


@dataclass(frozen=True)
class CycleShape:
    """The operators of a recursive component."""

    members: tuple[NodeId, ...]
    plan: TickPlan

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The operators in the order of evaluation: after their inputs, except for those that close
        a cycle.
        """
        graph = self.plan.graph

        def read_now(node: NodeId) -> list[NodeId]:
            inside = (e.node for e in graph[node].inputs if e.node in self.members)
            return [n for n in inside if not graph[n].spec.idempotent]

        groups = components({node: read_now(node) for node in self.members})
        return tuple(graph[n] for group in groups for n in group)

    @cached_property
    def closing(self) -> tuple[Endpoint, ...]:
        """The streams that are read before they are computed."""
        seen: set[NodeId] = set()
        found: dict[Endpoint, None] = {}
        for node in self.nodes:
            found.update({e: None for e in node.inputs if self.is_inside(e) and e.node not in seen})
            seen.add(node.id)
        return tuple(found)

    @cached_property
    def kept(self) -> frozenset[Endpoint]:
        """The streams whose rows of all rounds so far are cached for the next round."""
        products = (n for n in self.nodes if len(self.inside(n)) > 1 and not self.is_additive(n))
        sets = (Endpoint(n.id) for n in self.nodes if n.spec.idempotent)
        return frozenset((*self.closing, *sets, *(e for n in products for e in self.inside(n))))

    @cached_property
    def read_outside(self) -> tuple[Endpoint, ...]:
        """The streams that have readers outside of the cycle or a state table."""
        read = (e for n in self.plan.graph if n.id not in self.members for e in n.inputs)
        stored = (slot.stream for slot in self.plan.slots)
        return tuple(dict.fromkeys(e for e in (*read, *stored) if self.is_inside(e)))

    def is_set(self, stream: Endpoint) -> bool:
        """True if the stream has each item once."""
        return self.plan.graph[stream.node].spec.idempotent

    @cached_property
    def is_memoryless(self) -> bool:
        """True if new rows of a round depend on new rows of the round before only, not on all rows
        so far.
        """
        return not any(map(self.is_set, self.kept)) and all(
            len(self.inside(n)) < 2 or self.is_additive(n) for n in self.nodes
        )

    def is_inside(self, stream: Endpoint) -> bool:
        return stream.node in self.members

    def inside(self, node: Node) -> list[Endpoint]:
        """The inputs of a node that come from the cycle."""
        return [e for e in node.inputs if self.is_inside(e)]

    def is_additive(self, node: Node) -> bool:
        """True if the output for sums of all inputs is the sum of the outputs: no input restricts
        another.
        """
        return node.spec.variadic or node.spec.order is OrderRule.KEEPS_IF_ALL

    @cached_property
    def is_semi_naive(self) -> bool:
        """True if rounds can distinguish new rows from known ones."""
        kinds = {self.plan.kinds[n.id] for n in self.nodes}
        if Kind.G in kinds and any(n.spec.idempotent for n in self.nodes):
            return False
        if Kind.H in kinds and not all(self.plan.graph[e.node].spec.idempotent for e in self.kept):
            return False
        return all(
            n.spec.idempotent or all(port.linear for port, e in n.reads() if self.is_inside(e))
            for n in self.nodes
        )

    @property
    def path(self) -> str:
        """The cycle, operator by operator."""
        names = [f"{n.id} ({n.op.name})" for n in self.nodes]
        return " -> ".join((*names, names[0]))


def in_planned_rounds(plan: TickPlan, component: Component) -> bool:
    """True if a tick of few rows runs the component in rounds that are planned once.

    All its new rows are unordered rows of the tick, and some stream has each of them once.
    """
    if component.how != "fixpoint":
        return False
    cycle = CycleShape(component.nodes, plan)
    return (
        all(_gives_rows_of_the_tick(plan, node) for node in cycle.nodes)
        and cycle.is_semi_naive
        and not cycle.is_memoryless
    )


def _gives_rows_of_the_tick(plan: TickPlan, node: Node) -> bool:
    return (
        plan.kinds[node.id] is Kind.E
        and node.id not in plan.reads
        and node.spec.outputs == "one"
        and plan.typed.of(node.id).order is not Order.TOTAL
    )


def cycles_within_ticks(plan: TickPlan) -> tuple[Component, ...]:
    parts = (part for c in plan.components for part in (c.parts or (c,)))
    return tuple(part for part in parts if part.how == "fixpoint")


# Execution of operators that read the tick before of each other, over a range.
#
# There are three ways, the best first. `first seen`: `x = difference(d, old x)`, with d independent
# of x, is each item of d at its first tick; likewise by key, with an anti-join. `across ticks`:
# where no operator needs a complete tick, a range is one fixpoint in which `prev` leads to the next
# tick. `tick by tick`: all others.


_BEFORE = History(before=True)


def component_with_feedback(
    nodes: tuple[NodeId, ...], parts: tuple[Component, ...], typed: Typed
) -> Component:
    """The component of these nodes; `parts` are its components within a tick."""
    chain = first_seen(nodes, typed.graph)
    if chain:
        return Component(chain, "first seen", parts)
    how: Execution = "tick by tick" if next(_obstacles(nodes, typed), None) else "across ticks"
    return Component(tuple(n for p in parts for n in p.nodes), how, parts)


def first_seen(nodes: Collection[NodeId], graph: Graph) -> tuple[NodeId, ...]:
    """The members: x first, then each after its inputs; () if the nodes are no `first seen`
    component.
    """
    for x in nodes:
        if not _is_without_match(graph[x].cls) or graph[x].inputs[0].node in nodes:
            continue
        way = tuple(_back(graph, graph[x].inputs[1], x))
        key = graph[x].args.get("on")
        reader = graph[_origin(graph, graph[x].inputs[1], key).node]
        if reader.cls != _BEFORE:
            continue
        if _origin(graph, reader.inputs[0], key) == Endpoint(x):
            return (x, *reversed(way)) if {x, *way} == set(nodes) else ()
    return ()


def seen_in(x: Node, typed: Typed) -> Endpoint:
    """The stream whose items at their first ticks are `x`; it may differ from the input of `x`.

    Distinct items are those of the operator's input, so the input need not be made distinct in each
    tick.
    """
    stream, cls = x.inputs[0], x.cls
    source = typed.graph[stream.node]
    by_item = isinstance(cls, KeyMatch) and cls.compares is MatchCondition.ITEMS
    if (
        by_item
        and isinstance(source.cls, DistinctItems)
        and typed.of(x.id).order is not Order.TOTAL
    ):
        return source.inputs[0]
    return stream


def _back(graph: Graph, stream: Endpoint, end: NodeId) -> Iterator[NodeId]:
    """The operators between a stream and `end`, each after its reader."""
    for passed in first_inputs(graph, stream):
        if passed.node == end or not graph[passed.node].inputs:
            return
        yield passed.node


def _is_without_match(cls: OpClass) -> bool:
    """True if items stay while no equal item, or no equal key, is on the other side."""
    return (
        isinstance(cls, KeyMatch)
        and not cls.wanted
        and cls.compares is not MatchCondition.BARE_KEYS
    )


def _origin(graph: Graph, stream: Endpoint, key: Key | None) -> Endpoint:
    """The stream behind operators that change neither the set of keys nor, without a key, the set
    of items.
    """
    for passed in first_inputs(graph, stream):
        node, stream = graph[passed.node], passed
        as_sets = passes_on(node.cls) or isinstance(node.cls, DistinctItems)
        if not (as_sets or (key and keeps_key(node, key))):
            break
    return stream


def readers_of_before(component: Component, graph: Graph) -> list[NodeId]:
    """The members that read the tick before of another one."""
    members = set(component.nodes)
    return [
        n
        for n in component.nodes
        if any(e.node in members and not same_tick(port) for port, e in graph[n].reads())
    ]


def settled_execution(
    component: Component, typed: Typed, kinds: Mapping[NodeId, Kind]
) -> Execution:
    """The execution of the component once the kinds are known.

    A stream that is read at the tick before only is stored and read as a batch stream, so `across
    ticks` needs it to be one.
    """
    if component.how != "across ticks":
        return component.how
    graph = typed.graph
    readers = [n for n in component.nodes if graph[n].spec.state is State.LAST]
    events = all(kinds[graph[n].inputs[0].node] is Kind.E for n in readers)
    return "across ticks" if events else "tick by tick"


def note(component: Component, typed: Typed) -> str:
    """The reason why the component runs tick by tick, as a message."""
    graph = typed.graph
    why = next(_obstacles(component.nodes, typed), "")
    if not why:
        why = "the whole of what was there before is read"
    readers = readers_of_before(component, graph)
    return (
        f"{_listing(component.nodes)} run tick by tick, in a range too: each tick needs the result "
        f"of the one before, through {_listing(readers)}, and {why}"
    )


def _obstacles(nodes: Collection[NodeId], typed: Typed) -> Iterator[str]:
    """The reasons why a range is not one fixpoint of these operators."""
    graph = typed.graph
    for n in nodes:
        for port, e in graph[n].reads():
            if e.node in nodes and port.barrier is Barrier.STRATUM:
                yield f"`{n}` ({graph[n].op.name}) waits for all of `{e}`"
    for n in nodes:
        if typed.of(n).order is Order.TOTAL:
            yield f"the items of `{n}` stand in an order"


def _listing(nodes: Sequence[NodeId]) -> str:
    return ", ".join(f"`{n}`" for n in nodes)
