"""Demand of a range: stored rows that match the keys of its batches, in rounds of cycles too."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from hydro_core.catalog.classes import (
    AsOf,
    ByKey,
    DistinctItems,
    History,
    KeyMatch,
    Linear,
    OpClass,
    OrderedByKey,
    Output,
    OverTime,
    PairedItems,
    PastExtent,
    PerPosition,
    Product,
    RunningResult,
    StreamEnd,
    TickDifference,
)
from hydro_core.catalog.combine import TIMES
from hydro_core.catalog.forms import Form
from hydro_core.catalog.spec import Args
from hydro_core.ir.graph import Endpoint, Node, NodeId, components, predecessors
from hydro_core.plan.cycles import CycleShape, cycles_within_ticks, in_planned_rounds
from hydro_core.plan.origins import ExtremesRead, NewRowOrigins
from hydro_core.plan.stored_rows import (
    FIRST,
    LAST,
    ROW,
    FoundRows,
    KeyedStream,
    Lookup,
    LookupBounds,
    Lookups,
    RowsBefore,
    RowsSinceLate,
    RowsUpToNext,
    StoredRows,
    sides,
)
from hydro_core.plan.tick_plan import Key, Kind, StateSlot, TickPlan, group_key, key_paths
from hydro_core.types.item import FieldPath, ItemType, at, is_integer, leaves
from hydro_core.types.item import at as leaf_at

# Lookups within a cycle: stored rows that have the keys of a round's new rows.
#
# A cycle may join its new rows with rows stored before the tick, such as the paths found in the
# last round with the stored edges. Each round looks the stored rows up by the keys of its new rows.


InputPlace = tuple[NodeId, int]
"""An operator of a cycle, and the position of one of its inputs."""


@dataclass(frozen=True, slots=True)
class StoredInput:
    """An input of an operator of a cycle whose rows are stored and looked up in each round."""

    by: Endpoint
    """The operator's other input, a stream of the cycle; its new rows are the lookup keys."""
    found: Mapping[str, frozenset[Lookup]]
    """Lookups by the ids of state tables; they name `by` as their source."""
    way: tuple[NodeId, ...]
    """The operators from the readers of the state tables to the input, in the order of
    evaluation.
    """


def round_lookups(plan: TickPlan) -> Mapping[InputPlace, StoredInput]:
    """The inputs whose stored rows are looked up in each round of a cycle."""
    stored = StoredRows(plan)
    found: dict[InputPlace, StoredInput] = {}
    for component in cycles_within_ticks(plan):
        if in_planned_rounds(plan, component):
            cycle = CycleShape(component.nodes, plan)
            for node in cycle.nodes:
                found.update(_of_node(cycle, node, stored))
    return found


def _of_node(
    cycle: CycleShape, node: Node, stored: StoredRows
) -> Iterator[tuple[InputPlace, StoredInput]]:
    """A node's input from outside the cycle, if its other input is inside and the two are
    matched.
    """
    inside = [cycle.is_inside(e) for e in node.inputs]
    if not _meets(node.cls) or sorted(inside) != [False, True]:
        return
    port, other = inside.index(False), inside.index(True)
    pairs = stored.pairs(*sides(node, port))
    by = node.inputs[other]
    lookup = Lookup.of(str(by), (own for own, _ in pairs), (their for _, their in pairs))
    search = _WayFromSlots(cycle.plan, stored)
    if search.follows(node.inputs[port], lookup) and search.found:
        found = {slot: frozenset(lookups) for slot, lookups in search.found.items()}
        yield (node.id, port), StoredInput(by, found, tuple(search.way))


def _meets(cls: OpClass) -> bool:
    """True if a new row of one input gives rows only together with matched rows of the other, or
    only if no row matches.
    """
    if isinstance(cls, Product):
        return not cls.keeps
    return isinstance(cls, KeyMatch)


class _WayFromSlots:
    """Search from a stream back to state tables, through operators that forward rows.

    `way` has the operators passed, `found` the lookups by the ids of state tables.
    """

    def __init__(self, plan: TickPlan, stored: StoredRows) -> None:
        self._plan, self._stored = plan, stored
        self._on_path = set[NodeId]()
        self.way: dict[NodeId, None] = {}
        self.found: dict[str, set[Lookup]] = {}

    def follows(self, stream: Endpoint, lookup: Lookup) -> bool:
        """True if each row that a lookup matches in a stream is new or is matched in a state table.

        A cycle has no order of evaluation, so the search fails where it enters a node twice.
        """
        if self._plan.kinds[stream.node] is Kind.E:
            return True
        node = self._plan.graph[stream.node]
        slot = self._slot(node)
        if slot is not None:
            if not lookup.fields:
                return False
            self.found.setdefault(slot.id, set()).add(lookup)
        elif not node.cls.hands_on or not self._follows_inputs(node, lookup):
            return False
        self.way[node.id] = None
        return True

    def _follows_inputs(self, node: Node, lookup: Lookup) -> bool:
        if node.id in self._on_path:
            return False
        self._on_path.add(node.id)
        found = all(
            self.follows(e, self._stored.inner(node, i, lookup)) for i, e in enumerate(node.inputs)
        )
        self._on_path.remove(node.id)
        return found

    def _slot(self, node: Node) -> StateSlot | None:
        if node.cls.holds is not PastExtent.HISTORY or node.id not in self._plan.reads:
            return None
        slot = self._plan.slot(self._plan.reads[node.id])
        plain = slot.form is Form.GROWTH and slot.keep is None and slot.bound is None
        same = slot.stream.node == node.inputs[0].node
        return slot if plain and same and not slot.ordered else None


# The left rows of an as-of join that a new right row may change: those up to the next right row.
#
# A left row has the nearest right row as its partner. A new right row is nearer only for the left
# rows between it and the next right row of its key; that one stays the partner of all rows behind
# it.


def next_partners(
    plan: TickPlan, origins: NewRowOrigins, node: Node, found: Iterable[Lookup]
) -> Iterator[Lookup]:
    """Lookups of left rows of an as-of join by new right rows, bounded by the next stored right
    row.

    Args:
        plan: the plan of the join.
        origins: the origins of new rows in the plan.
        node: the join.
        found: its lookups of left rows by key. Each is yielded unchanged where the next right row
            does not bound it: right rows may be deleted, have no state table, or are matched by
            `nearest`.
    """
    right = plan.graph[node.inputs[1].node]
    slot = origins.stored.slot(right)
    # rows of a history are never deleted; with `nearest` a right row may have partners on both
    # sides
    told = isinstance(right.cls, History) and not right.cls.before and slot is not None
    if not told or slot is None or node.args["direction"] == "nearest":
        yield from found
        return
    places = _places(origins, node)
    own = sides(node, 1)[0]
    stored = {one.by: one for one in origins.lookups(own, own) or ()}
    at = (node.args["at"],)
    for one in found:
        place, of_key = places.get(one), stored.get(one.by)
        if place is None or of_key is None or not one.fields or set(of_key.theirs) != {*one.theirs}:
            yield one
            continue
        since = (node.args["since"],)
        forward = node.args["direction"] == "forward"
        rows = FoundRows(slot.id, of_key)
        by = RowsUpToNext(one.by, rows, of_key.fields, (since, place), forward)
        fields = tuple((left, (ROW, *theirs)) for left, theirs in one.fields)
        between = LookupBounds(((at, (FIRST,)),), ((at, (LAST,)),))
        yield replace(one, by=by, fields=fields, bounds=between)


def _places(origins: NewRowOrigins, node: Node) -> dict[Lookup, FieldPath]:
    """By lookup without the `at` field: the path of the time or number in the rows that look up.

    Empty unless both sides have the same type, an integer or a time.
    """
    (left, keys), (right, others) = sides(node, 0)
    at, since = (node.args["at"],), (node.args["since"],)
    types = leaf_at(origins.stored.item(left), at), leaf_at(origins.stored.item(right), since)
    if types[0] is None or types[0] != types[1]:
        return {}
    if not (types[0] in TIMES or is_integer(types[0])):
        return {}
    found = origins.lookups((left, [*keys, at]), (right, [*others, since]))
    told: dict[Lookup, FieldPath] = {}
    for one in found or ():
        place = dict(one.fields).get(at)
        if place is not None:
            of_key = tuple(pair for pair in one.fields if pair[0] != at)
            told[replace(one, fields=of_key)] = place
    return told


# A state grows with every row that has arrived, and a tick matches only rows with the keys of its
# batch. This section gives, for each state table, the fields of the inputs by which its rows are
# looked up. It asks three questions about streams:
#
# - *wanted*: the rows from before the range that some operator reads. A join of events with a
#   history reads those with the events' keys, a keyed result that emits a changelog those of the
#   new rows' keys, an output of a history only new rows.
# - *origins*: the input rows that the new rows of a stream depend on, and the fields that both
#   share by the operators' lineage. Computed fields are left out.
# - *stored rows* (`stored_rows.py`): the stored rows that have a field which arriving rows lack:
#   orders match their customers, and these their nations.
#
# Lookups may match rows that no operator needs, never too few: where the analysis is unsure, it
# answers "all rows".


@dataclass(frozen=True, slots=True)
class _Rows:
    found: Lookups = frozenset()
    """The rows that these lookups match."""
    new: bool = False
    """True if all rows that are new in the range are wanted, too."""


Wanted = _Rows | None
"""The rows of a stream that some operator reads; None: all of them."""

NO_ROWS = _Rows()
NEW_ROWS = _Rows(new=True)


@dataclass(frozen=True, slots=True)
class RowDemand:
    """Demand: the stored rows of a state table that a range of ticks needs."""

    found: Lookups
    """Lookups by the keys of the range's batches."""
    last_tick: bool = False
    """True if all rows of the tick before the range are needed, too: a reader that is one tick
    behind sees them as new.
    """


def lookups(
    plan: TickPlan, added: Collection[str], in_rounds: Collection[InputPlace] = ()
) -> Mapping[str, RowDemand]:
    """The demand of a plan by the ids of its state tables; all rows are needed of those that are
    missing.

    Args:
        plan: the plan that runs.
        added: the outputs whose readers need only the updates of a range.
        in_rounds: the inputs whose stored rows the rounds of cycles look up, by `round_lookups`.
    """
    analysis = _Analysis(plan, added, in_rounds)
    found = ((slot, analysis.of_slot(slot)) for slot in plan.slots)
    return {slot.id: RowDemand(rows.found, rows.new) for slot, rows in found if rows is not None}


class _Analysis:
    """The wanted rows of each stream of a plan, as a fixpoint from the outputs to the sources."""

    def __init__(
        self, plan: TickPlan, added: Collection[str], in_rounds: Collection[InputPlace]
    ) -> None:
        self._plan, self._graph, self._kinds, self._added = plan, plan.graph, plan.kinds, added
        self._in_rounds = in_rounds
        self._origins = NewRowOrigins(plan)
        self._extremes = ExtremesRead(plan, self._origins)
        self._wanted: dict[NodeId, Wanted] = dict.fromkeys(plan.graph.nodes, NO_ROWS)
        for slot in plan.slots:
            if not self._origins.adds(slot.stream.node) or slot.form is Form.VALUES:
                self._want(slot.stream.node, None)
        groups = components(predecessors(plan.graph))
        self._group = {node: number for number, group in enumerate(groups) for node in group}
        nodes = list(reversed(list(plan.graph)))
        # Readers come first, so a graph without cycles needs one pass. A cycle needs several, and
        # they end: a lookup keeps its source on its way through the cycle, and items have finitely
        # many leaves.
        while sum(self._want(e.node, w) for n in nodes for e, w in self._wants(n)):
            pass

    def of_slot(self, slot: StateSlot) -> Wanted:
        """The stored rows that the readers of a state table need; `new`: those of the last tick,
        too.
        """
        if slot.form is Form.VALUES or slot.ordered:
            return None
        return _united(self._of_reader(self._graph[reader], slot) for reader in slot.readers)

    def _of_reader(self, node: Node, slot: StateSlot) -> Wanted:
        if isinstance(node.cls, History):
            wanted = self._wanted[node.id]
            return wanted if wanted is None or node.cls.before else _Rows(wanted.found)
        key = group_key(node)
        if not isinstance(node.cls, RunningResult) or key is None or slot.form is not Form.CHANGES:
            return None
        if not node.cls.changes and self._kinds[node.inputs[-1].node] is not Kind.E:
            return None  # the operator emits its whole result in each tick, so it reads all of it
        own = self._met((Endpoint(node.id), key_paths(key)), (node.inputs[-1], key_paths(key)))
        if "tail" in node.args and own is not None:
            own = self._of_tails(node, slot, key) or own
        wanted = self._wanted[node.id]
        return _united((own, wanted and _Rows(wanted.found)))

    def _of_tails(self, node: Node, slot: StateSlot, key: Key) -> Wanted:
        """Lookups for ordered keyed results: the last stored row of each new row's key; for keys
        with late rows also the stored rows behind the late ones, and as many before them as
        functions look back at.

        None where a new row lacks a field of the key or the order.
        """
        new, own, args = node.inputs[-1], Endpoint(node.id), node.args
        by, order = key_paths(key), key_paths(args["order"])
        in_tail = [(args["tail"], *path) for path in by]
        tails = self._origins.lookups((own, in_tail), (new, by))
        both = self._origins.lookups((own, [*by, *order]), (new, [*by, *order]))
        if tails is None or both is None:
            return None
        told = {one.by: one for one in both}
        if {one.by for one in tails} != told.keys() or len(told) < max(len(tails), len(both)):
            return None
        keys, orders = {path for path, *_ in by}, {path for path, *_ in order}
        found = set(tails)
        for tail in tails:
            fields = told[tail.by].fields
            of_key = tuple(pair for pair in fields if pair[0][0] in keys)
            of_order = tuple(pair for pair in fields if pair[0][0] in orders)
            # An array, for example, has no leaves, so a new row cannot be compared by it.
            if not of_key or {own for own, _ in of_order} != set(order):
                return None
            step, descending = FoundRows(slot.id, tail), args["descending"]
            late = RowsSinceLate(tail.by, step, of_key, of_order, descending)
            behind = Lookup(late, of_key, LookupBounds(of_order, descending=descending))
            found |= {behind, _before(FoundRows(slot.id, behind), args, slot.item)}
        return _Rows(frozenset(found))

    def _want(self, stream: NodeId, wanted: Wanted) -> bool:
        """Adds to the wanted rows of a stream; true if they have grown."""
        before = self._wanted[stream]
        self._wanted[stream] = _united((before, wanted))
        return self._wanted[stream] != before

    def _wants(self, node: Node) -> Iterator[tuple[Endpoint, Wanted]]:
        """The rows that an operator needs of its inputs; a range has all rows of batch inputs."""
        for i, stream in enumerate(node.inputs):
            if self._kinds[stream.node] is not Kind.E:
                by_rounds = (node.id, i) in self._in_rounds
                yield stream, NO_ROWS if by_rounds else self._wants_of(node, i)

    def _wants_of(self, node: Node, i: int) -> Wanted:
        new = NEW_ROWS if self._origins.adds(node.inputs[i].node) else None
        cls, found = node.cls, None
        match cls:
            case Output():
                name = node.args["name"]
                all_told = all(self._origins.adds(sink.id) for sink in self._graph.sinks[name])
                found = NEW_ROWS if all_told and name in self._added else None
            case TickDifference() | RunningResult(changes=True):
                found = new
            case ByKey() | OrderedByKey():
                found = self._of_keys(node)
            case DistinctItems():
                found = self._of_items(node)
            case Linear():
                found = self._handed_on(node, i)
            case Product():
                found = self._paired(node, i, cls)
            case KeyMatch() | AsOf():
                found = self._matched(node, i, wanted=isinstance(cls, KeyMatch) and cls.wanted)
            case StreamEnd() | RunningResult() | PerPosition() | OverTime():
                found = None
            case _:
                assert_never(cls)
        return found

    def _paired(self, node: Node, i: int, cls: Product) -> Wanted:
        """The rows that a product needs of one of its inputs."""
        if cls.meets is PairedItems.SINGLE:
            return None
        other = self._kinds[node.inputs[1 - i].node]
        met = self._met(*sides(node, i))
        if other is Kind.E:
            return None if i in cls.keeps else met
        if cls.keeps:
            return self._of_new_matches(node, i, cls.keeps)
        if self._origins.tells(node):
            found = _united((self._on_side(node, i), met))
        else:
            found = self._of_extremes(node, i)
        return found or self._of_found(node, i)

    def _matched(self, node: Node, i: int, *, wanted: bool) -> Wanted:
        """The rows of input `i` that a semi, anti or as-of join needs."""
        of_events = [self._kinds[e.node] is Kind.E for e in node.inputs]
        if of_events[0] or (of_events[1] and wanted):
            return self._met(*sides(node, i))
        extremes = (wanted or i == 1) and not self._origins.tells(node)
        found = self._of_extremes(node, i) if extremes else None
        return found or self._of_new_matches(node, i, (0,))

    def _of_extremes(self, node: Node, i: int) -> Wanted:
        """The rows needed of an input where all pairs or matches of each tick are wanted.

        Few rows are enough if the join compares them with the minimum or maximum of a stored
        result, or if its other input has only such rows.
        """
        found = self._extremes.of(node, i)
        if found is not None:
            return _Rows(found)
        pairs = self._origins.stored.pairs(*sides(node, i))
        mine, theirs = tuple(own for own, _ in pairs), tuple(their for _, their in pairs)
        known = self._extremes.all_rows(node.inputs[1 - i], theirs) if pairs else None
        if known is None:
            return None
        return _Rows(frozenset(Lookup.of(by, mine, fields) for by, fields in known))

    def _of_new_matches(self, node: Node, i: int, keeps: Collection[int]) -> Wanted:
        """The rows that decide how rows with a match, or without one, are inserted and deleted.

        They are the rows of an input that match changed rows of the other one. If rows of the other
        input depend on having a match, all rows with the keys of new rows are needed as well: a new
        row may be the first match, a deleted one the last.
        """
        if not self._origins.tells(node):
            return self._of_found(node, i)
        mine, other = sides(node, i)
        earlier = (self._met(mine, mine),) if 1 - i in keeps else ()
        met = self._met(mine, other)
        if isinstance(node.cls, AsOf) and i == 0 and met is not None:
            met = _Rows(frozenset(next_partners(self._plan, self._origins, node, met.found)))
        found = _united((NEW_ROWS, self._on_side(node, i), met, *earlier))
        return found or self._of_found(node, i)

    def _on_side(self, node: Node, i: int) -> Wanted:
        """The rows wanted of pairs or matches, as rows wanted of input `i`.

        A lookup matches rows in one input; all their partners are looked up in the other, so every
        pair that a reader needs is complete. Pairs of other rows have no reader.

        In a cycle a lookup that is longer by one step, or filtered once more, would become so again
        in each round. There all rows are wanted instead of longer lookups, and lookups are not
        filtered.
        """
        wanted = self._wanted[node.id]
        if wanted is None:
            return None
        stored, partners = self._origins.stored, self._origins.partners
        in_cycle = self._group[node.id] == self._group[node.inputs[i].node]
        found = set[Lookup]()
        for one in wanted.found:
            known = stored.side(node, i, one)
            inner = {stored.inner(node, i, one)} if known is None else set(known)
            if in_cycle and any(lookup.steps > one.steps for lookup in inner):
                return None
            found |= inner if in_cycle else {partners.narrowed(node, i, of) for of in inner}
        return _Rows(frozenset(found), wanted.new)

    def _of_keys(self, node: Node) -> Wanted:
        """The rows that a keyed result reads: those of the keys that change."""
        key = group_key(node)
        if key is None:
            found = self._extremes.of(node, 0)
            return None if found is None else _Rows(found)
        if not self._origins.tells_changes(node):
            return self._of_found(node, 0)
        own = node.inputs[0], key_paths(key)
        changed = _united((NEW_ROWS, self._handed_on(node, 0), self._met(own, own)))
        return changed or self._of_found(node, 0)

    def _of_found(self, node: Node, i: int) -> Wanted:
        """The rows of an input with the fields of the lookups in the output.

        None, all rows, if a reader wants the new rows of the output, or if the output is a batch
        stream.
        """
        wanted = self._wanted[node.id]
        if wanted is None or wanted.new or self._kinds[node.id] is Kind.E:
            return None
        found = frozenset(self._origins.stored.inner(node, i, one) for one in wanted.found)
        return _Rows(found) if all(one.fields for one in found) else None

    def _of_items(self, node: Node) -> Wanted:
        """The rows that distinct items read: the same items, and for new ones their stored
        copies.
        """
        wanted, own = self._wanted[node.id], (node.inputs[0], [()])
        if wanted is None or self._kinds[node.id] is Kind.E:
            return None
        return _united((self._handed_on(node, 0), *((self._met(own, own),) if wanted.new else ())))

    def _handed_on(self, node: Node, i: int) -> Wanted:
        """The rows wanted of a row-wise operator's output, as rows wanted of input `i`."""
        wanted = self._wanted[node.id]
        if wanted is None:
            return None
        found = (self._origins.stored.inner(node, i, one) for one in wanted.found)
        return _Rows(frozenset(found), wanted.new)

    def _met(self, mine: KeyedStream, other: KeyedStream) -> Wanted:
        """The items of one stream with the keys of new rows in another one."""
        found = self._origins.lookups(mine, other)
        return None if found is None else _Rows(frozenset(found))


def _before(rows: FoundRows, args: Args, item: ItemType) -> Lookup:
    """The lookup of the stored rows directly before those that `rows` matches, by key and
    number.
    """
    parts = {path: at(item, path) for path in key_paths(args["by"])}
    key = tuple((*path, *end) for path, of in parts.items() if of for end, _ in leaves(of))
    number = (args["number"],)
    before = RowsBefore(rows, key, number, args["keep"])
    return Lookup(before, ((number, ("0",)), *((path, ("1", *path)) for path in key)))


def _united(parts: Iterable[Wanted]) -> Wanted:
    found, new = set[Lookup](), False
    for part in parts:
        if part is None:
            return None
        found |= part.found
        new |= part.new
    return _Rows(frozenset(found), new)
