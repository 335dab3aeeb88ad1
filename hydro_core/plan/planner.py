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

# From a typed program to a plan.
#
# Kinds, what must be kept, and which parts need more than one pass.
#
# Operators that depend on each other form a component. Without a reading of the tick before
# inside it, a component is a fixpoint within each tick, and all ticks reach theirs together. With
# one, tick t + 1 needs the result of tick t: `feedback.py` says how a range gets there.


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
    slots = _slots(typed, _StorageNeeds(kinds, last_only, in_changes, alone), found)
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
class _StorageNeeds:
    """What decides how much of a stream is stored."""

    kinds: Mapping[NodeId, Kind]
    feedback: Collection[NodeId]
    in_changes: Collection[NodeId]
    changes_suffice: Collection[NodeId]
    """The streams of which nobody needs more than the changes."""


def _slots(typed: Typed, kept: _StorageNeeds, found: Mapping[NodeId, str]) -> tuple[StateSlot, ...]:
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


def _need(node: Node, kept: _StorageNeeds) -> tuple[Endpoint, Form, int | None] | None:
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


# How tables that a plan wants come to be when the ticks before are over: a plan of their own.
#
# A new deployment wants states and outputs that nobody has kept. What computes them is a part of
# its plan, from the inputs on, run over the past as ranges. Where a stream of it is stored
# already, as a state or an output of the deployment before, that part begins with the table
# instead, and neither the inputs behind it nor their landed past are needed.


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


# Long ranges in parts, and what is left of a range in which a tick fails.


T = TypeVar("T")


def longest_range(plan: TickPlan, settings: Settings) -> int | None:
    """How many ticks may be one job; None: any number."""
    return settings.repeated_ticks if repeated(plan) else None


def in_parts(
    first: int, last: int, longest: int | None, run: Callable[[int, int], T]
) -> Iterator[T]:
    """What `run` gives for ranges that are first … last together.

    If a tick fails, the ticks before it are run, then its error is raised. Only what a tick can be
    at fault for is searched for: what the machine does, and bugs, are told at once.

    >>> list(in_parts(0, 4, 2, lambda first, last: (first, last)))
    [(0, 1), (2, 3), (4, 4)]
    """
    failed: int | None = None
    while first <= last:
        end = last if longest is None else min(last, first + longest - 1)
        if failed is not None:
            # The tick that fails is one of first … failed.
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
    """Whether a part of the ticks may run where all together fail.

    A past that is not as it should be is that of every tick, and so is the machine; but what ended
    may have had too little memory for all of them.
    """
    if isinstance(error, EngineEndedError):
        return True
    return isinstance(error, DataError) and error.code != "state"
