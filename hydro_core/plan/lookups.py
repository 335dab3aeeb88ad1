"""Which stored rows a range can meet: those that have their keys from its batches.

A state grows with all that ever came, a tick meets what its batch has the keys of. So for each slot
this says by which fields of which inputs its rows are looked up, from two questions about streams:

- *wanted*: of a stream that reaches back before the range, which of its rows anybody looks at. A
  join of events with a history looks at those with the events' keys, a result by key that tells its
  changes at those of the keys that are new, an output of a history at what is new alone.
- *origins*: of what is new in a stream, which rows of the inputs it comes with, and which of their
  fields it has. That follows from the operators' lineage; a computed field is left out.
- *stored rows* (`stored_rows.py`): where what arrives does not have a field, which rows that it
  finds do: orders find their customers, and these their nations.

Lookups may find rows that nothing meets, never too few: what is not surely known wants all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import assert_never

from hydro_core.catalog.classes import (
    AsOf,
    ByKey,
    Distinct,
    Ends,
    Growth,
    History,
    Linear,
    Matching,
    OrderedByKey,
    Output,
    OverTime,
    PerPosition,
    Product,
    Running,
)
from hydro_core.catalog.forms import Form
from hydro_core.catalog.spec import Args
from hydro_core.catalog.variants import Meets
from hydro_core.ir.graph import Endpoint, Node, NodeId
from hydro_core.ir.walk import components, predecessors
from hydro_core.plan.extremes import ExtremesRead
from hydro_core.plan.found_rows import (
    FoundRows,
    Lookup,
    LookupBounds,
    Lookups,
    RowsBefore,
    RowsSinceLate,
)
from hydro_core.plan.kinds import Kind
from hydro_core.plan.nearest_rows import next_partners
from hydro_core.plan.origins import NewRowOrigins
from hydro_core.plan.round_lookups import InputPlace
from hydro_core.plan.stored_rows import KeyedStream, sides
from hydro_core.plan.tick_plan import StateSlot, TickPlan
from hydro_core.plan.versions import Key, group_key, key_paths
from hydro_core.types.item import ItemType, at, leaves


@dataclass(frozen=True, slots=True)
class _Rows:
    found: Lookups = frozenset()
    """Those that lookups find."""
    new: bool = False
    """All that are new in the range, too."""


Wanted = _Rows | None
"""The rows of a stream that somebody looks at; None: all of them."""

NO_ROWS = _Rows()
NEW_ROWS = _Rows(new=True)


@dataclass(frozen=True, slots=True)
class Needed:
    """The stored rows of a slot that a range can meet."""

    found: Lookups
    """Those that have the keys of its batches."""
    last_tick: bool = False
    """Whether all rows of the tick before it are needed, too: they are new to who has them a tick
    later.
    """


def lookups(
    plan: TickPlan, added: Collection[str], in_rounds: Collection[InputPlace] = ()
) -> Mapping[str, Needed]:
    """Which rows of slots are needed, by the slots' ids; of others all are.

    Args:
        plan: what runs.
        added: the outputs of which nobody reads more than what a range adds or changes.
        in_rounds: the inputs of operators of which rounds of cycles look up what they meet.
    """
    analysis = _Analysis(plan, added, in_rounds)
    found = ((slot, analysis.of_slot(slot)) for slot in plan.slots)
    return {slot.id: Needed(rows.found, rows.new) for slot, rows in found if rows is not None}


class _Analysis:
    """The answers to both questions for the streams of a plan, by the nodes that give them."""

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
        # Readers come first, so what is no loop needs one pass. A loop needs several, and they end:
        # round it a lookup keeps the rows that it begins with, and leaves are finitely many.
        while sum(self._want(e.node, w) for n in nodes for e, w in self._wants(n)):
            pass

    def of_slot(self, slot: StateSlot) -> Wanted:
        """The stored rows that the readers of a slot look at; those of the last tick may be new."""
        if slot.form is Form.VALUES or slot.ordered:
            return None
        return _united(self._of_reader(self._graph[reader], slot) for reader in slot.readers)

    def _of_reader(self, node: Node, slot: StateSlot) -> Wanted:
        if isinstance(node.cls, History):
            wanted = self._wanted[node.id]
            return wanted if wanted is None or node.cls.before else _Rows(wanted.found)
        key = group_key(node)
        if not isinstance(node.cls, Running) or key is None or slot.form is not Form.CHANGES:
            return None
        if not node.cls.changes and self._kinds[node.inputs[-1].node] is not Kind.E:
            return None  # all that is there is given in each tick, not what comes and goes alone
        own = self._met((Endpoint(node.id), key_paths(key)), (node.inputs[-1], key_paths(key)))
        if "tail" in node.args and own is not None:
            own = self._of_tails(node, slot, key) or own
        wanted = self._wanted[node.id]
        return _united((own, wanted and _Rows(wanted.found)))

    def _of_tails(self, node: Node, slot: StateSlot, key: Key) -> Wanted:
        """The last stored rows of the keys of what is new, of the keys of late rows those behind
        these, and as many before them as rows look back at.

        None where a new row does not tell what it is ordered by.
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
            # What has no leaves of its own, as an array, tells nothing of its order or its key.
            if not of_key or {own for own, _ in of_order} != set(order):
                return None
            step, descending = FoundRows(slot.id, tail), args["descending"]
            late = RowsSinceLate(tail.by, step, of_key, of_order, descending)
            behind = Lookup(late, of_key, LookupBounds(of_order, descending=descending))
            found |= {behind, _before(FoundRows(slot.id, behind), args, slot.item)}
        return _Rows(frozenset(found))

    def _want(self, stream: NodeId, wanted: Wanted) -> bool:
        """Notes who looks at a stream, and tells whether that is news."""
        before = self._wanted[stream]
        self._wanted[stream] = _united((before, wanted))
        return self._wanted[stream] != before

    def _wants(self, node: Node) -> Iterator[tuple[Endpoint, Wanted]]:
        """What an operator looks at of its inputs; of events all are there."""
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
            case Growth() | Running(changes=True):
                found = new
            case ByKey() | OrderedByKey():
                found = self._of_keys(node)
            case Distinct():
                found = self._of_items(node)
            case Linear():
                found = self._handed_on(node, i)
            case Product():
                found = self._paired(node, i, cls)
            case Matching() | AsOf():
                found = self._matched(node, i, wanted=isinstance(cls, Matching) and cls.wanted)
            case Ends() | Running() | PerPosition() | OverTime():
                found = None
            case _:
                assert_never(cls)
        return found

    def _paired(self, node: Node, i: int, cls: Product) -> Wanted:
        """What a product looks at of an input."""
        if cls.meets is Meets.SINGLE:
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
        """What is looked at of an input for matches in the second, or of it."""
        of_events = [self._kinds[e.node] is Kind.E for e in node.inputs]
        if of_events[0] or (of_events[1] and wanted):
            return self._met(*sides(node, i))
        extremes = (wanted or i == 1) and not self._origins.tells(node)
        found = self._of_extremes(node, i) if extremes else None
        return found or self._of_new_matches(node, i, (0,))

    def _of_extremes(self, node: Node, i: int) -> Wanted:
        """What is looked at of an input, all pairs or matches of which are wanted at each tick.

        Where it is one of all that it is compared with the greatest of, or the other has such rows
        alone, it is few rows.
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
        """What tells how rows with a match, or without one, come and go.

        Those of an input that match changed ones of the other. Where what becomes of the other's
        rows depends on a match, all with the keys of what is new, too: is it the first, or was it
        the last?
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
        """What is wanted of the pairs, or matches, of two streams, as what is wanted of one.

        Of whatever is found on one side all that meets it is found on the other, so what is made of
        these is whole. What is made of others nobody looks at.

        In a cycle a lookup that is one step longer, or narrowed once more, would be so again in
        each round. There all rows are looked at in place of the one, and none are left out for the
        other.
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
        """What a result by key looks at: the keys of what changes."""
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
        """What is looked at of an input by who looks up rows of the output, and at none for being
        new: the items with the fields of these. Of events all are looked at.
        """
        wanted = self._wanted[node.id]
        if wanted is None or wanted.new or self._kinds[node.id] is Kind.E:
            return None
        found = frozenset(self._origins.stored.inner(node, i, one) for one in wanted.found)
        return _Rows(found) if all(one.fields for one in found) else None

    def _of_items(self, node: Node) -> Wanted:
        """What distinct items are made of: the same items, and those that are new."""
        wanted, own = self._wanted[node.id], (node.inputs[0], [()])
        if wanted is None or self._kinds[node.id] is Kind.E:
            return None
        return _united((self._handed_on(node, 0), *((self._met(own, own),) if wanted.new else ())))

    def _handed_on(self, node: Node, i: int) -> Wanted:
        """What is wanted of the node's output, as what is wanted of an input."""
        wanted = self._wanted[node.id]
        if wanted is None:
            return None
        found = (self._origins.stored.inner(node, i, one) for one in wanted.found)
        return _Rows(frozenset(found), wanted.new)

    def _met(self, mine: KeyedStream, other: KeyedStream) -> Wanted:
        """The items with the key of what is new in another stream."""
        found = self._origins.lookups(mine, other)
        return None if found is None else _Rows(frozenset(found))


def _before(rows: FoundRows, args: Args, item: ItemType) -> Lookup:
    """The stored rows that stand before those found of their keys."""
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
