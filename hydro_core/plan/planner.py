"""From a typed program to a plan: kinds, what must be kept, and which parts need more than one pass.

Operators that depend on each other form a component. Without a reading of the tick before inside it, a component is a
fixpoint within each tick, and all ticks reach theirs together. With one, tick t + 1 needs the result of tick t: it is
run tick by tick, that component alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.strata import Strata
from hydro_core.catalog.spec import Barrier, State
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.plan.components import strongly_connected
from hydro_core.plan.kinds import Kind, kinds_of
from hydro_core.plan.meaning import meaning_of, meanings
from hydro_core.plan.tick_plan import Component, Mode, StateSlot, TickPlan
from hydro_core.types.stream import Order


def plan(typed: Typed, strata: Strata) -> TickPlan:
    """The plan of a program, for every range of ticks."""
    graph = typed.graph
    groups = strongly_connected(graph.nodes, lambda n: [e.node for e in graph[n].inputs])
    components = tuple(_component(group, graph) for group in groups)
    feedback = {n for c in components if c.how == "tick by tick" for n in _readers_of_before(c, graph)}
    kinds = kinds_of(typed, feedback)
    slots = _slots(typed, kinds, feedback, meanings(typed, groups))
    reads = {reader: slot.id for slot in slots for reader in slot.readers}
    notes = tuple(_note(c, graph) for c in components if c.how == "tick by tick")
    return TickPlan(graph, typed, strata, kinds, slots, components, reads, notes)


def _component(nodes: Sequence[NodeId], graph: Graph) -> Component:
    members = frozenset(nodes)
    if not any(e.node in members for n in nodes for e in graph[n].inputs):
        return Component(tuple(nodes), "once")
    if not _within_tick(nodes, graph, members):
        return Component(tuple(nodes), "fixpoint")
    inside: Callable[[NodeId], list[NodeId]] = lambda n: [
        e.node for e, is_before in _inputs(graph[n]) if e.node in members and not is_before
    ]
    parts = []
    for group in strongly_connected(nodes, inside):
        loops = any(e in group for n in group for e in inside(n))
        parts.append(Component(tuple(group), "fixpoint" if loops else "once"))
    return Component(tuple(n for p in parts for n in p.nodes), "tick by tick", tuple(parts))


def _within_tick(nodes: Iterable[NodeId], graph: Graph, members: frozenset[NodeId]) -> bool:
    """Whether some member reads another one's tick before."""
    return any(b and e.node in members for n in nodes for e, b in _inputs(graph[n]))


def _readers_of_before(component: Component, graph: Graph) -> list[NodeId]:
    """The `prev`s inside a cycle; `old` reads stored additions, whatever its input is."""
    members = set(component.nodes)
    return [
        n
        for n in component.nodes
        if graph[n].op.state is State.LAST and any(b and e.node in members for e, b in _inputs(graph[n]))
    ]


def _inputs(node: Node) -> list[tuple[Endpoint, bool]]:
    """The inputs of a node, and whether it reads the tick before of them."""
    ports = node.op.inputs
    return [(e, ports[min(i, len(ports) - 1)].barrier is Barrier.TICK) for i, e in enumerate(node.inputs)]


def _slots(
    typed: Typed, kinds: Mapping[NodeId, Kind], feedback: Iterable[NodeId], found: Mapping[NodeId, str]
) -> tuple[StateSlot, ...]:
    """One slot for each stream that is stored: additions serve those, too, who want the last tick only."""
    slots: dict[str, StateSlot] = {}
    for node in typed.graph:
        needed = _need(node, kinds, feedback)
        if needed is None:
            continue
        stream, mode, keep = needed
        kind = typed.types[stream]
        key = meaning_of(stream, found, str(kind))
        new = StateSlot(
            str(stream), stream, (node.id,), kind.item, kind.order is Order.TOTAL, mode, key, keep
        )
        slots[key] = _shared(slots[key], new) if key in slots else new
    return tuple(replace(s, meaning=meaning_of(s.stream, found, str(typed.types[s.stream]), s.mode.value)) for s in slots.values())


def _need(
    node: Node, kinds: Mapping[NodeId, Kind], feedback: Iterable[NodeId]
) -> tuple[Endpoint, Mode, int | None] | None:
    """The stream of which the node needs the past, and how much of it."""
    match node.op.state:
        case State.NONE:
            return None
        case State.HISTORY:
            return node.inputs[0], Mode.APPEND, None
        case State.WINDOW:
            return node.inputs[0], Mode.APPEND, node.args["n"] - 1
        case State.LAST:
            # The rows of a history carry their ticks: it has its tick before in itself.
            told = kinds[node.inputs[0].node] is Kind.H and node.id not in feedback
            return None if told else (node.inputs[0], Mode.LAST, 1)
        case State.COMMANDS:
            return Endpoint(node.id), Mode.LAST, 1


def _shared(one: StateSlot, other: StateSlot) -> StateSlot:
    mode = Mode.APPEND if Mode.APPEND in (one.mode, other.mode) else Mode.LAST
    keep = None if None in (one.keep, other.keep) else max(one.keep or 0, other.keep or 0)
    return replace(one, readers=one.readers + other.readers, mode=mode, keep=keep)


def _note(component: Component, graph: Graph) -> str:
    readers = ", ".join(f"`{n}`" for n in _readers_of_before_all(component, graph))
    return (
        f"{_listing(component.nodes)} run tick by tick, also in a range: they read their own tick before through {readers}"
    )


def _readers_of_before_all(component: Component, graph: Graph) -> list[NodeId]:
    members = set(component.nodes)
    return [n for n in component.nodes if any(b and e.node in members for e, b in _inputs(graph[n]))]


def _listing(nodes: Sequence[NodeId]) -> str:
    return ", ".join(f"`{n}`" for n in sorted(nodes))
