"""Which stored rows a round of a cycle meets: those with the keys of what is new in it.

Where something new in a cycle meets what was there before the tick, as the paths found last meet
the stored edges, the stored rows are looked up round by round, by the rows that are new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hydro_core.catalog.classes import (
    Matching,
    OpClass,
    Product,
)
from hydro_core.catalog.forms import Form
from hydro_core.catalog.properties import Holds
from hydro_core.ir.graph import Endpoint, Node, NodeId
from hydro_core.plan.cycles import CycleShape, cycles_within_ticks, in_planned_rounds
from hydro_core.plan.found_rows import Lookup
from hydro_core.plan.kinds import Kind
from hydro_core.plan.stored_rows import StoredRows, sides
from hydro_core.plan.tick_plan import StateSlot, TickPlan

InputPlace = tuple[NodeId, int]
"""An operator of a cycle, and one of its inputs."""


@dataclass(frozen=True, slots=True)
class StoredInput:
    """An input of an operator of a cycle that has stored rows, which are looked up."""

    by: Endpoint
    """The stream of the cycle whose new rows meet them: the operator's other input."""
    found: Mapping[str, frozenset[Lookup]]
    """How, by the slots' ids. The rows of `by` are known by its name."""
    way: tuple[NodeId, ...]
    """The operators from what reads the slots to the input, in the order of evaluation."""


def round_lookups(plan: TickPlan) -> Mapping[InputPlace, StoredInput]:
    """The inputs of which the rounds of cycles look up what they meet."""
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
    """The input of a join or a match that comes from outside, where the other is of the cycle."""
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
    """Whether what is new in one input gives nothing but with what it meets in the other, or not
    what it meets there.
    """
    if isinstance(cls, Product):
        return not cls.keeps
    return isinstance(cls, Matching)


class _WayFromSlots:
    """What leads from slots to a stream: operators that take rows one by one, and add up."""

    def __init__(self, plan: TickPlan, stored: StoredRows) -> None:
        self._plan, self._stored = plan, stored
        self._on_path = set[NodeId]()
        self.way: dict[NodeId, None] = {}
        self.found: dict[str, set[Lookup]] = {}

    def follows(self, stream: Endpoint, lookup: Lookup) -> bool:
        """Whether all rows of a stream that a lookup finds are new, or found in slots.

        A cycle has no order of evaluation, so none is on the way: no path enters a node twice.
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
        if node.cls.holds is not Holds.HISTORY or node.id not in self._plan.reads:
            return None
        slot = self._plan.slot(self._plan.reads[node.id])
        plain = slot.form is Form.GROWTH and slot.keep is None and slot.bound is None
        same = slot.stream.node == node.inputs[0].node
        return slot if plain and same and not slot.ordered else None
