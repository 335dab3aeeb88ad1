"""What runs: the program with the kind of every stream, what is kept of the past, and how its parts
are run.

One plan serves every range of ticks, a single tick is the range of length one. Everything that
the plan keeps is an output of each range that runs by it, so that any range may follow any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.strata import Strata
from hydro_core.catalog.forms import Form
from hydro_core.ir.graph import Endpoint, Graph, NodeId
from hydro_core.plan.bound import TimeBound
from hydro_core.plan.kinds import Kind
from hydro_core.types.item import ItemType
from hydro_core.types.records import IF_GIVEN, INLINE, NAME


@dataclass(frozen=True, slots=True)
class StateSlot:
    """Rows that a plan keeps from tick to tick: the items of `stream`, as it was in the ticks
    before.

    `id` is printable and unique within the plan; `semantic_hash` is a hash of the sub-program that
    computes the stream, the same in every plan that stores the same stream in the same way, so it
    is what a stored table is known by.
    """

    id: str
    stream: Endpoint
    readers: tuple[NodeId, ...]
    """The operators that read the slot."""
    item: ItemType
    ordered: bool
    """The position of each item within its tick is stored too, as `ord`."""
    form: Form = field(metadata={NAME: "mode"})
    """How its rows `(item, t)`, with `ord` where it is ordered, come and go.

    GROWTH: a range adds the rows of its ticks, none is ever changed; a reader sees all rows with
    `t < first`. VALUES: a range leaves the rows of its last tick, all of which carry that tick as
    `t`; a reader sees the rows with `t = first - 1` and no others, so older rows may be dropped or
    kept. CHANGES: a range adds the changes of its ticks, `(item, t, n)`: n copies come, or go where
    n is negative; a reader sees all rows with `t < first`, which sum up to what is there at
    `first - 1`.
    """
    semantic_hash: str
    keep: int | None = None
    """How many ticks before the next one a reader may still look at; None: all of them."""
    bound: TimeBound | None = field(default=None, metadata=IF_GIVEN)
    """How long a reader looks at rows, by a time of theirs; None: always."""

    @property
    def node(self) -> NodeId:
        """The first operator that reads the slot."""
        return self.readers[0]

    def ticks_read(self, first: int) -> tuple[int, int]:
        """The first and the last tick of which a range that starts at `first` reads rows."""
        last = first - 1
        if self.form is Form.VALUES:
            return max(last, 0), last
        return 0 if self.keep is None else max(first - self.keep, 0), last

    @property
    def kind(self) -> Kind:
        """The stored rows are events: each is an item of one tick."""
        return Kind.E


Execution = Literal["once", "fixpoint", "first seen", "across ticks", "tick by tick"]


@dataclass(frozen=True, slots=True)
class Component:
    """Operators that depend on each other, in the order of evaluation.

    `once` where there is only one, without a loop; `fixpoint` within each tick. With readings of
    the tick before inside, `parts` are the components that are left within a tick: these are a
    single tick. A range is what is `first seen`, a fixpoint `across ticks`, or `tick by tick`.
    """

    nodes: tuple[NodeId, ...]
    how: Execution
    parts: tuple[Component, ...] = ()


@dataclass(frozen=True, slots=True)
class TickPlan:
    """A program that is ready to run over ranges of ticks."""

    typed: Typed = field(metadata=INLINE)
    strata: Strata
    kinds: Mapping[NodeId, Kind]
    """The kind of every output of a node."""
    slots: tuple[StateSlot, ...]
    components: tuple[Component, ...]
    """Every node once, what is read before what reads it."""
    reads: Mapping[NodeId, str]
    """The id of the slot that a node reads."""
    in_changes: frozenset[NodeId] = frozenset()
    """The nodes whose outputs are general and tell by how much they change."""
    notes: tuple[str, ...] = ()
    """What a user should know: which part runs tick by tick, and why."""
    hashes: Mapping[NodeId, str] = field(default_factory=dict)
    """What each node's streams are: stored ones are known by it."""

    @property
    def graph(self) -> Graph:
        return self.typed.graph

    def form(self, stream: NodeId) -> Form:
        """The form in which a stream is told."""
        if stream in self.in_changes:
            return Form.CHANGES
        return Form.GROWTH if self.kinds[stream] is Kind.H else Form.VALUES

    def slot(self, slot_id: str) -> StateSlot:
        return next(slot for slot in self.slots if slot.id == slot_id)
