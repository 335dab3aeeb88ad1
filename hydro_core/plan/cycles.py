"""Cycles within a tick, as far as a plan tells of them: what closes them, and what news can be."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hydro_core.catalog.spec import OrderRule
from hydro_core.ir.graph import Endpoint, Node, NodeId
from hydro_core.ir.walk import components
from hydro_core.plan.kinds import Kind
from hydro_core.plan.tick_plan import Component, TickPlan
from hydro_core.types.stream import Order


@dataclass(frozen=True)
class CycleShape:
    """The operators of a recursive component."""

    members: tuple[NodeId, ...]
    plan: TickPlan

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """In the order of evaluation: after what they read, but for streams that close a cycle."""
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
        """The streams of which all that is known must be at hand in every round."""
        products = (n for n in self.nodes if len(self.inside(n)) > 1 and not self.is_additive(n))
        sets = (Endpoint(n.id) for n in self.nodes if n.spec.idempotent)
        return frozenset((*self.closing, *sets, *(e for n in products for e in self.inside(n))))

    @cached_property
    def read_outside(self) -> tuple[Endpoint, ...]:
        """The streams that others read, or that are stored."""
        read = (e for n in self.plan.graph if n.id not in self.members for e in n.inputs)
        stored = (slot.stream for slot in self.plan.slots)
        return tuple(dict.fromkeys(e for e in (*read, *stored) if self.is_inside(e)))

    def is_set(self, stream: Endpoint) -> bool:
        """Whether the stream has each item once."""
        return self.plan.graph[stream.node].spec.idempotent

    @cached_property
    def is_memoryless(self) -> bool:
        """Whether what is new depends on what was new before only, and not on all that is known."""
        return not any(map(self.is_set, self.kept)) and all(
            len(self.inside(n)) < 2 or self.is_additive(n) for n in self.nodes
        )

    def is_inside(self, stream: Endpoint) -> bool:
        return stream.node in self.members

    def inside(self, node: Node) -> list[Endpoint]:
        """The inputs of a node that come from the cycle."""
        return [e for e in node.inputs if self.is_inside(e)]

    def is_additive(self, node: Node) -> bool:
        """Whether the output for sums of all inputs is the sum of the outputs, since nothing at one
        input takes from another.
        """
        return node.spec.variadic or node.spec.order is OrderRule.KEEPS_IF_ALL

    @cached_property
    def is_semi_naive(self) -> bool:
        """Whether news can be told apart from what is known."""
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
    """Whether a tick of few rows runs the component in rounds that are planned once.

    All that is new in it are rows of the tick, in no order, and some stream has each of them once.
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
