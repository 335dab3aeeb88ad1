"""The plan of a range of ticks: kinds of streams, versions by key, state tables, executions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from types import MappingProxyType
from typing import Literal, assert_never

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.strata import Strata
from hydro_core.catalog.classes import (
    AsOf,
    ByKey,
    Commands,
    DistinctItems,
    EmptyStream,
    ExternalItems,
    History,
    KeyMatch,
    Linear,
    OrderedByKey,
    Ordering,
    Output,
    OverTime,
    PassedItems,
    PerKey,
    PerPosition,
    Places,
    PositionalOrder,
    PreviousTick,
    Product,
    Projection,
    RunningResult,
    StreamEnd,
    TickDifference,
    Window,
)
from hydro_core.catalog.forms import Form
from hydro_core.catalog.spec import State
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.types.item import FieldPath, ItemType, Order
from hydro_core.types.records import IF_GIVEN, INLINE, NAME
from hydro_core.types.values import MICROSECOND, since_epoch

# The three kinds of streams over a range of ticks, and which kind each operator gives.
#
# A row of a stream is one copy of an item. An *event* (E) is there in its tick only; a row of a
# *history* (H) is there from its tick on, for ever; a *general* row (G) is there from its tick
# until, but not at, the tick `until`. A stream without rows has no kind (None). Kinds are static:
# the least solution over the graph, cycles included.


class Kind(Enum):
    """What the rows of a stream say about the ticks at which they are there."""

    E = "event"
    H = "history"
    G = "general"

    def __repr__(self) -> str:
        return f"Kind.{self.name}"


MaybeKind = Kind | None


def kinds_of(typed: Typed, events: Collection[NodeId]) -> Mapping[NodeId, Kind]:
    """The kind of every node's output.

    `events` are the nodes that give events whatever they read: those that read the tick before of
    what depends on them, and what is first seen.
    """
    graph = typed.graph
    found: dict[NodeId, MaybeKind] = dict.fromkeys(graph.nodes)
    changed = True
    while changed:
        changed = False
        for node in graph:
            kinds = tuple(found[e.node] for e in node.inputs)
            own = Kind.E if node.id in events else _kind(node, kinds, _in_order(node, typed))
            kind = merged(found[node.id], own)
            changed = changed or kind != found[node.id]
            found[node.id] = kind
    return {node: kind or Kind.E for node, kind in found.items()}


def merged(*kinds: MaybeKind) -> MaybeKind:
    """The kind of a bag sum."""
    some = {kind for kind in kinds if kind is not None}
    return some.pop() if len(some) == 1 else Kind.G if some else None


def met(left: MaybeKind, right: MaybeKind) -> MaybeKind:
    """The kind of a product: a row is there when both of its parts are."""
    if left is None or right is None:
        return None
    return Kind.E if Kind.E in (left, right) else merged(left, right)


def without(pos: MaybeKind, neg: MaybeKind) -> MaybeKind:
    """The kind of what is left of `pos` while its key is not in `neg`."""
    return Kind.G if pos is Kind.H and neg is not None else pos


def is_in_order(node: Node, ordered: bool) -> bool:
    """Whether the result of a fold depends on the order of its input."""
    if not ordered:
        return False
    f = node.args.get("f")
    return f is None or not f.algebra.commutative


def _in_order(node: Node, typed: Typed) -> bool:
    """Whether the node follows the order of its input, and has none of its own."""
    if "order" in node.args:
        return False
    return bool(node.inputs) and is_in_order(
        node, typed.of(node.inputs[0].node).order is Order.TOTAL
    )


def _kind(node: Node, kinds: tuple[MaybeKind, ...], in_order: bool) -> MaybeKind:
    """The kind of what an operator gives, of inputs of these kinds; `in_order`: its result follows
    the order of the first one.
    """
    cls = node.cls
    match cls:
        case EmptyStream() | Output() | Linear() | Ordering() | PreviousTick():
            return merged(*kinds)
        case ExternalItems() | TickDifference() | PositionalOrder():
            return Kind.E
        case History():
            return Kind.H
        case Window() | Commands() | RunningResult():
            return Kind.G
        case Product(keeps=keeps):
            left, right = kinds
            padded = {0: without(left, right), 1: without(right, left)}
            return merged(met(left, right), *(padded[side] for side in keeps))
        case KeyMatch() | AsOf():
            meets = isinstance(cls, KeyMatch) and cls.wanted
            return met(*kinds) if meets else without(*kinds)
        case DistinctItems():
            return Kind.E if in_order and kinds[0] is not None else kinds[0]
        case ByKey() | OrderedByKey():
            return _of_results(node, kinds[0], in_order)
        case _:
            assert_never(cls)


def _of_results(node: Node, kind: MaybeKind, in_order: bool) -> MaybeKind:
    if kind is None:
        return None if node.spec.zero else Kind.E
    return Kind.E if in_order or kind is Kind.E else Kind.G


# Streams with at most one item of each key at a tick: over a range, a key's rows are versions.
#
# Events look up the version of their tick in one pass, where other rows would have to be tried.


Key = tuple[str, ...]
"""Names of columns; none of them: the first field of a tuple."""
FIRST_FIELD: Key = ()


def key_paths(key: Key) -> Sequence[FieldPath]:
    """The paths of a key's parts."""
    return [(name,) for name in key or ("0",)]


def keys_of(typed: Typed) -> Mapping[NodeId, Key]:
    """The key of each node whose output has at most one item of each key."""
    found: dict[NodeId, Key] = {}
    waiting = list(typed.graph)
    changed = True
    while changed:
        changed = False
        for node in waiting:
            key = _key(node, found)
            if key is not None and node.id not in found:
                found[node.id] = key
                changed = True
    return MappingProxyType(found)


def result_key(node: Node) -> Key | None:
    """The key by which an operator has one result each; None where it has one of everything.

    None, too, where it makes no results of items.
    """
    cls = node.cls
    match cls:
        case (
            ByKey(keyed=True)
            | RunningResult(ByKey(keyed=True))
            | PositionalOrder(Places.FIRST_OF_KEY)
        ):
            return node.args["by"] or FIRST_FIELD
        case Commands(keyed=True):
            return FIRST_FIELD
        case StreamEnd() | Linear() | Product() | PerKey() | PerPosition() | OverTime():
            return None
        case _:
            assert_never(cls)


def group_key(node: Node) -> Key | None:
    """The key on whose items alone depends what an operator makes of them; None: it has none."""
    of = node.cls.of if isinstance(node.cls, RunningResult) else node.cls
    if isinstance(of, OrderedByKey):
        by: Key | None = node.args["by"]
        return (by or FIRST_FIELD) if of.keyed else None
    return result_key(node)


def _key(node: Node, found: Mapping[NodeId, Key]) -> Key | None:
    own = result_key(node)
    if own is not None:
        return own
    before = found.get(node.inputs[0].node) if node.inputs else None
    cls = node.cls
    alone = cls.passes is PassedItems.ALL and len(node.inputs) == 1
    if before is None or alone or cls.passes is PassedItems.SOME:
        return before
    return before if before and keeps_key(node, before) else None


def keeps_key(node: Node, key: Key) -> bool:
    """Whether an operator goes row by row and leaves the columns of a key as they are."""
    if not isinstance(node.cls, Projection):
        return False
    made = node.cls.columns(node.args, key)
    return all(made.get(column) == column for column in key)


# How long stored rows matter: until a time of theirs is so long before the end of a tick.


LONGEST = 1 << 60
"""Longer than between any two moments, in microseconds."""


@dataclass(frozen=True, slots=True)
class TimeBound:
    """Rows matter as long as the time in a column is later than a tick's end minus a length."""

    column: str
    micros: int
    """The length, in microseconds."""

    @staticmethod
    def of(node: Node) -> TimeBound | None:
        """That of an operator whose rows leave by their time."""
        if node.spec.state is not State.RECENT:
            return None
        length: timedelta = node.args["for_"]
        return TimeBound(node.args["by"], min(length // MICROSECOND, LONGEST))

    def since(self, end: datetime) -> int:
        """The time, in microseconds since 1970, up to which rows are gone at a tick's end."""
        return since_epoch(end) - self.micros

    @property
    def shown(self) -> str:
        """What it says, for people."""
        return f"`{self.column}` is within {timedelta(microseconds=self.micros)} of the tick's end"


def longer(bounds: Iterable[TimeBound | None]) -> TimeBound | None:
    """The bound of rows that several look at: the longest of one column; None: there is none."""
    known = list(bounds)
    found = [bound for bound in known if bound is not None]
    if len(found) < len(known) or len({bound.column for bound in found}) != 1:
        return None
    return max(found, key=lambda bound: bound.micros)


# What runs: the program with the kind of every stream, what is kept of the past, and how its
# parts are run.
#
# One plan serves every range of ticks, a single tick is the range of length one. Everything that
# the plan keeps is an output of each range that runs by it, so that any range may follow any
# other.


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
