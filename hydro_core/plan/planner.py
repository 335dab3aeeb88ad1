"""From a typed program to a plan, to plans that fill new tables, and to parts of long ranges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from hydro_core.analysis.conditions import without_conditions
from hydro_core.analysis.infer import Typed, infer
from hydro_core.analysis.strata import stratify
from hydro_core.catalog.classes import History
from hydro_core.catalog.forms import Form
from hydro_core.catalog.internal import operator
from hydro_core.catalog.itemwise import SOURCE
from hydro_core.catalog.spec import Args, State
from hydro_core.catalog.state import PERSIST
from hydro_core.errors import DataError, EngineEndedError, HydroError
from hydro_core.ir.graph import (
    Endpoint,
    Graph,
    Node,
    NodeId,
    Successors,
    components,
    free_name,
    is_cycle,
    predecessors,
    same_tick,
)
from hydro_core.plan.cycles import (
    component_with_feedback,
    note,
    readers_of_before,
    settled_execution,
)
from hydro_core.plan.semantic_hash import NO_HASHES, hash_of, hashes, program_hashes
from hydro_core.plan.streams import changes_suffice, given_as_changes, lacks_changes, repeated
from hydro_core.plan.tick_plan import (
    Component,
    Kind,
    StateSlot,
    TickPlan,
    TimeBound,
    kinds_of,
    longer,
)
from hydro_core.settings import Settings
from hydro_core.types.item import Order

# From a typed program to a plan: stream kinds, state tables, and execution of components.
#
# Operators that depend on each other form a component. A component in which no operator reads the
# tick before is a fixpoint within each tick, and all ticks of a range reach theirs together.
# Otherwise tick t + 1 needs the result of tick t; `cycles.py` decides how a range runs such a
# component.


def plan_of(
    program: Typed,
    optimized: Typed,
    streams: Mapping[NodeId, NodeId],
    known: Mapping[NodeId, str] = NO_HASHES,
) -> TickPlan:
    """The plan of an optimized program; each stream has the hash that it has in the original
    program.

    Args:
        program: the program as written.
        optimized: the optimized program.
        streams: by node of `optimized`: the node of `program` that has the same stream.
        known: the hashes of further nodes of `optimized`.
    """
    own = program_hashes(program)
    return plan(optimized, {**{node: own[stream] for node, stream in streams.items()}, **known})


def plan(typed: Typed, known: Mapping[NodeId, str] = NO_HASHES) -> TickPlan:
    """The plan of a program, for every range of ticks.

    Args:
        typed: the program, or an optimized plan of it.
        known: for an optimized plan, the hashes of nodes that compute streams of the program.
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
    slots = _slots(typed, _StorageNeeds(kinds, last_only, in_changes, alone), found)
    reads = {reader: slot.id for slot in slots for reader in slot.readers}
    notes = tuple(note(c, typed) for c in parts if c.how == "tick by tick")
    strata = stratify(typed)
    return TickPlan(typed, strata, kinds, slots, parts, reads, in_changes, notes, found)


def _by_values(typed: Typed, nodes: Collection[NodeId]) -> Typed:
    """The program with these operators, which read a changelog, replaced by those that read values.

    A stream that depends on itself through the tick before has no changelog.
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
class _StorageNeeds:
    """The facts that decide how much of a stream is stored."""

    kinds: Mapping[NodeId, Kind]
    feedback: Collection[NodeId]
    in_changes: Collection[NodeId]
    changes_suffice: Collection[NodeId]
    """The streams whose readers need only the changelog."""


def _slots(typed: Typed, kept: _StorageNeeds, found: Mapping[NodeId, str]) -> tuple[StateSlot, ...]:
    """One state table for each stream that is stored.

    A history also serves readers of the last tick; a changelog is a table of its own.
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
    """The state table with its final semantic hash: of the stored stream and its representation."""
    order = "ordered" if slot.ordered else ""
    semantic_hash = hash_of(slot.stream, found, str(slot.item), order, slot.form.stored)
    both = slot.form is Form.CHANGES and slot.id in taken
    return replace(slot, semantic_hash=semantic_hash, id=f"{slot.id} changes" if both else slot.id)


def _need(node: Node, kept: _StorageNeeds) -> tuple[Endpoint, Form, int | None] | None:
    """The stream whose past the node needs, its representation, and for how many ticks."""
    match node.spec.state:
        case State.NONE:
            return None
        case State.HISTORY:
            # Its additions in a tick are its input.
            additions = node.id in kept.changes_suffice and node.cls == History()
            return None if additions else (node.inputs[0], Form.GROWTH, None)
        case State.WINDOW:
            # The rows that it loses in a tick were added n ticks before.
            return node.inputs[0], Form.GROWTH, node.args["n"]
        case State.RECENT:
            return node.inputs[0], Form.GROWTH, None
        case State.LAST:
            # Rows of a history carry their ticks, so a history contains its tick before.
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


# Bootstrap: a plan that computes new tables for the ticks before a deployment.
#
# A new deployment needs states and outputs that no earlier one has stored. The part of its plan
# that computes them runs over the past as ranges. Where a stream of this part is stored already, as
# a state or an output of the deployment before, the part reads that table instead; it then needs
# neither the inputs behind the stream nor their landed past.


@dataclass(frozen=True, slots=True)
class WantedTables:
    """The tables to compute: state tables by their ids, outputs by their names."""

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
    """True if its rows are those that each tick adds to the stream; else the stream's items at each
    tick.
    """


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """A plan that computes the wanted tables."""

    plan: TickPlan
    tables: Mapping[str, Leaf]
    """The tables that it reads, by the names of the inputs that stand for them."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The program's own inputs whose landed past is read."""
        return tuple(name for name in self.plan.graph.sources if name not in self.tables)


def bootstrap(target: TickPlan, wanted: WantedTables, leaves: Mapping[Endpoint, Leaf]) -> Bootstrap:
    """The part of a plan that computes the wanted tables, cut where streams are stored.

    State tables and outputs have the ids and names that they have in `target`, and are stored in
    the same way; where a cut would change that, there is no cut.

    Args:
        target: the plan of the new deployment.
        wanted: the tables to compute.
        leaves: the stored streams, as `target` names them.
    """
    for cuts in (leaves, {}) if leaves else ({},):
        found = _part(target, wanted, cuts)
        if _makes(found.plan, target, wanted):
            return found
    return Bootstrap(target, {})


def _part(target: TickPlan, wanted: WantedTables, leaves: Mapping[Endpoint, Leaf]) -> Bootstrap:
    graph = target.graph
    # Tables have no order, and an input cannot replace a node with several outputs.
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
    """The nodes that read the wanted state tables, and the sinks of the wanted outputs."""
    for slot in target.slots:
        if slot.id in wanted.slots:
            yield from slot.readers
    for name in wanted.outputs:
        yield from (sink.id for sink in target.graph.sinks[name])


def _in_its_place(node: Node, leaf: Leaf, target: TickPlan) -> tuple[Node, ...]:
    """The input that replaces a stored stream, under the id of the node that computes it."""
    item = target.typed.types[Endpoint(node.id)].item
    args = Args().with_(schema=item, name=leaf.table, fds=())
    if not leaf.grows:
        return (Node(node.id, SOURCE, args, (), node.span),)
    rows = free_name(f"{node.id}_added", target.graph.nodes)
    return (
        Node(rows, SOURCE, args, (), node.span),
        Node(node.id, PERSIST, Args(), (Endpoint(rows),), node.span),
    )


def _in_order(graph: Graph, nodes: Mapping[NodeId, Node]) -> Iterable[NodeId]:
    """The order of the program's text, with new nodes first."""
    yield from (name for name in nodes if name not in graph.nodes)
    yield from (name for name in graph.nodes if name in nodes)


def _makes(part: TickPlan, target: TickPlan, wanted: WantedTables) -> bool:
    """True if the plan stores the wanted state tables and gives the wanted outputs as the target
    does.
    """
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


# Long ranges in parts, and the ticks before one that fails.


T = TypeVar("T")


def longest_range(plan: TickPlan, settings: Settings) -> int | None:
    """The largest number of ticks in one job; None: any number."""
    return settings.repeated_ticks if repeated(plan) else None


def in_parts(
    first: int, last: int, longest: int | None, run: Callable[[int, int], T]
) -> Iterator[T]:
    """The results of `run` for consecutive ranges that together are `first` to `last`.

    If a tick fails, the ticks before it are run, then its error is raised. Only errors that fewer
    ticks may avoid start this search; others, such as bugs, are raised at once.

    >>> list(in_parts(0, 4, 2, lambda first, last: (first, last)))
    [(0, 1), (2, 3), (4, 4)]
    """
    failed: int | None = None
    while first <= last:
        end = last if longest is None else min(last, first + longest - 1)
        if failed is not None:
            # The failing tick is one of first … failed.
            end = first + (failed - first) // 2
        try:
            found = run(first, end)
        except HydroError as error:
            if first == end or not _may_fewer_do(error):
                raise
            failed = end
            continue
        yield found
        first = end + 1
        if failed is not None and failed < first:
            failed = None


def _may_fewer_do(error: HydroError) -> bool:
    """True if a part of the ticks may run where all together fail.

    A wrong state fails for every tick, and so does a fault of the machine. An engine that ended may
    have had too little memory for all ticks.
    """
    if isinstance(error, EngineEndedError):
        return True
    return isinstance(error, DataError) and error.code != "state"
