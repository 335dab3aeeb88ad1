"""From a typed program to a plan.

Kinds, what must be kept, and which parts need more than one pass.

Operators that depend on each other form a component. Without a reading of the tick before inside
it, a component is a fixpoint within each tick, and all ticks reach theirs together. With one,
tick t + 1 needs the result of tick t: `feedback.py` says how a range gets there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from hydro_core.analysis.conditions import without_conditions
from hydro_core.analysis.infer import Typed, infer
from hydro_core.analysis.strata import stratify
from hydro_core.catalog.classes import History
from hydro_core.catalog.forms import Form
from hydro_core.catalog.internal import operator
from hydro_core.catalog.spec import State
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.ir.walk import Successors, components, is_cycle, predecessors, same_tick
from hydro_core.plan.bound import TimeBound, longer
from hydro_core.plan.changes import changes_suffice, given_as_changes, lacks_changes
from hydro_core.plan.feedback import (
    component_with_feedback,
    note,
    readers_of_before,
    settled_execution,
)
from hydro_core.plan.kinds import Kind, kinds_of
from hydro_core.plan.semantic_hash import NO_HASHES, hash_of, hashes, program_hashes
from hydro_core.plan.tick_plan import Component, StateSlot, TickPlan
from hydro_core.types.stream import Order


def plan_of(
    program: Typed,
    optimized: Typed,
    streams: Mapping[NodeId, NodeId],
    known: Mapping[NodeId, str] = NO_HASHES,
) -> TickPlan:
    """The plan of an optimized program: a stream of the program is known by what it is there.

    Args:
        program: the program as it is written.
        optimized: the same optimized.
        streams: the nodes of it that compute a stream of the program, and their names there.
        known: the hashes of further nodes.
    """
    own = program_hashes(program)
    return plan(optimized, {**{node: own[stream] for node, stream in streams.items()}, **known})


def plan(typed: Typed, known: Mapping[NodeId, str] = NO_HASHES) -> TickPlan:
    """The plan of a program, for every range of ticks.

    Args:
        typed: the program, or an optimized plan of it.
        known: of an optimized plan, the hashes of nodes that compute streams of the program.
    """
    typed = without_conditions(typed)
    graph = typed.graph
    reading = predecessors(graph)
    groups = components(reading)
    parts = tuple(_component(group, typed, reading) for group in groups)
    feedback = {n for c in parts if c.parts for n in readers_of_before(c, graph)}
    last_only = {n for n in feedback if graph[n].spec.state is State.LAST}
    events = last_only | {c.nodes[0] for c in parts if c.how == "first seen"}
    kinds = kinds_of(typed, events)
    parts = tuple(replace(c, how=settled_execution(c, typed, kinds)) for c in parts)
    in_changes = given_as_changes(typed, groups, kinds)
    without_changes = {n.id for n in graph if lacks_changes(n, in_changes, kinds)}
    if without_changes:
        return plan(_by_values(typed, without_changes), known)
    found = hashes(typed, groups, known)
    alone = changes_suffice(graph, in_changes, kinds)
    slots = _slots(typed, _Kept(kinds, last_only, in_changes, alone), found)
    reads = {reader: slot.id for slot in slots for reader in slot.readers}
    notes = tuple(note(c, typed) for c in parts if c.how == "tick by tick")
    strata = stratify(typed)
    return TickPlan(typed, strata, kinds, slots, parts, reads, in_changes, notes, found)


def _by_values(typed: Typed, nodes: Collection[NodeId]) -> Typed:
    """The program with these operators, which read changes, as those that read values.

    What depends on itself through the tick before is given by its values alone.
    """
    graph = typed.graph
    made = (n.with_(op=operator(n.op.stands_for)) if n.id in nodes else n for n in graph)
    return infer(Graph.of(made, graph.name, graph.warnings), typed.schemas)


def _component(nodes: tuple[NodeId, ...], typed: Typed, reading: Successors) -> Component:
    graph = typed.graph
    if not is_cycle(nodes, reading):
        return Component(nodes, "once")
    within = {
        n: [e.node for port, e in graph[n].reads() if e.node in nodes and same_tick(port)]
        for n in nodes
    }
    groups, inside = components(within), {n: [m for m in reading[n] if m in nodes] for n in nodes}
    if len(groups) == 1 and is_cycle(groups[0], within) and within == inside:
        return Component(nodes, "fixpoint")
    parts = tuple(Component(g, "fixpoint" if is_cycle(g, within) else "once") for g in groups)
    return component_with_feedback(nodes, parts, typed)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What decides how much of a stream is stored."""

    kinds: Mapping[NodeId, Kind]
    feedback: Collection[NodeId]
    in_changes: Collection[NodeId]
    changes_suffice: Collection[NodeId]
    """The streams of which nobody needs more than the changes."""


def _slots(typed: Typed, kept: _Kept, found: Mapping[NodeId, str]) -> tuple[StateSlot, ...]:
    """One slot for each stream that is stored.

    Additions serve those, too, who want the last tick only; changes stand for themselves.
    """
    slots: dict[str, StateSlot] = {}
    for node in typed.graph:
        needed = _need(node, kept)
        if needed is None:
            continue
        stream, form, keep = needed
        kind = typed.types.get(stream) or typed.of(stream.node)
        changes = form.stored if form is Form.CHANGES else ""
        key = hash_of(stream, found, str(kind), changes)
        ordered, bound = kind.order is Order.TOTAL, TimeBound.of(node)
        readers = (node.id,)
        new = StateSlot(str(stream), stream, readers, kind.item, ordered, form, key, keep, bound)
        slots[key] = _shared(slots[key], new) if key in slots else new
    names = Counter(slot.id for slot in slots.values() if slot.form is not Form.CHANGES)
    return tuple(_named(slot, found, taken=names) for slot in slots.values())


def _named(slot: StateSlot, found: Mapping[NodeId, str], *, taken: Collection[str]) -> StateSlot:
    """The slot with its final semantic hash: what is stored, and in which way."""
    order = "ordered" if slot.ordered else ""
    semantic_hash = hash_of(slot.stream, found, str(slot.item), order, slot.form.stored)
    both = slot.form is Form.CHANGES and slot.id in taken
    return replace(slot, semantic_hash=semantic_hash, id=f"{slot.id} changes" if both else slot.id)


def _need(node: Node, kept: _Kept) -> tuple[Endpoint, Form, int | None] | None:
    """The stream of which the node needs the past, and how much of it."""
    match node.spec.state:
        case State.NONE:
            return None
        case State.HISTORY:
            # What it adds in a tick is what it reads.
            additions = node.id in kept.changes_suffice and node.cls == History()
            return None if additions else (node.inputs[0], Form.GROWTH, None)
        case State.WINDOW:
            # What it loses in a tick came n ticks before.
            return node.inputs[0], Form.GROWTH, node.args["n"]
        case State.RECENT:
            return node.inputs[0], Form.GROWTH, None
        case State.LAST:
            # The rows of a history carry their ticks: it has its tick before in itself.
            stream = node.inputs[0]
            if stream.node in kept.in_changes:
                return None if node.cls.reads_changes else (stream, Form.CHANGES, None)
            told = kept.kinds[stream.node] is Kind.H and node.id not in kept.feedback
            return None if told else (stream, Form.VALUES, 1)
        case State.RESULT:
            if node.id in kept.in_changes:
                return Endpoint(node.id), Form.CHANGES, None
            return Endpoint(node.id), Form.VALUES, 1


def _shared(one: StateSlot, other: StateSlot) -> StateSlot:
    forms = (one.form, other.form)
    form = Form.GROWTH if Form.GROWTH in forms else one.form
    keep = None if None in (one.keep, other.keep) else max(one.keep or 0, other.keep or 0)
    bound = longer((one.bound, other.bound))
    return replace(one, readers=one.readers + other.readers, form=form, keep=keep, bound=bound)
