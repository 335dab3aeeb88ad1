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

# Kinds of streams over a range of ticks, and the kind of each operator's output.
#
# A row of a stream is one copy of an item. In a *batch* stream (E, event) it exists in its tick
# only; in an *append-only* stream (H, history) from its tick on; in a *changelog* stream (G,
# general) from its tick until, but not at, the tick `until`. A stream without rows has no kind
# (None). Kinds are static: the least solution over the graph, cycles included.


class Kind(Enum):
    """The ticks in which the rows of a stream exist."""

    E = "event"
    H = "history"
    G = "general"

    def __repr__(self) -> str:
        return f"Kind.{self.name}"


MaybeKind = Kind | None


def kinds_of(typed: Typed, events: Collection[NodeId]) -> Mapping[NodeId, Kind]:
    """The kind of every node's output.

    `events` are nodes with batch outputs whatever they read: readers of the tick before within a
    cycle, and components that run as `first seen`.
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
    """The kind of a product: a row exists while both of its parts do."""
    if left is None or right is None:
        return None
    return Kind.E if Kind.E in (left, right) else merged(left, right)


def without(pos: MaybeKind, neg: MaybeKind) -> MaybeKind:
    """The kind of the rows of `pos` whose key is not in `neg`."""
    return Kind.G if pos is Kind.H and neg is not None else pos


def is_in_order(node: Node, ordered: bool) -> bool:
    """True if the result of a fold depends on the order of its input."""
    if not ordered:
        return False
    f = node.args.get("f")
    return f is None or not f.algebra.commutative


def _in_order(node: Node, typed: Typed) -> bool:
    """True if the node follows the order of its input and has none of its own."""
    if "order" in node.args:
        return False
    return bool(node.inputs) and is_in_order(
        node, typed.of(node.inputs[0].node).order is Order.TOTAL
    )


def _kind(node: Node, kinds: tuple[MaybeKind, ...], in_order: bool) -> MaybeKind:
    """The kind of an operator's output for inputs of these kinds; `in_order`: its result depends on
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


# Streams with at most one item of each key at a tick: over a range, a key's rows are its versions.
#
# A batch looks up the versions of its ticks in one pass; without a key it would try all rows.


Key = tuple[str, ...]
"""Names of columns; empty: the first field of a tuple."""
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
    """The key of an operator with one result for each key; None for all other operators."""
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
    """The key such that an operator computes a key's output from the key's items alone; None: no
    such key.
    """
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
    """True if an operator is row-wise and leaves the columns of a key unchanged."""
    if not isinstance(node.cls, Projection):
        return False
    made = node.cls.columns(node.args, key)
    return all(made.get(column) == column for column in key)


# How long stored rows are read: until a time of theirs is that long before the end of a tick.


LONGEST = 1 << 60
"""Longer than between any two moments, in microseconds."""


@dataclass(frozen=True, slots=True)
class TimeBound:
    """A row is read as long as the time in a column is later than a tick's end minus a length."""

    column: str
    micros: int
    """The length, in microseconds."""

    @staticmethod
    def of(node: Node) -> TimeBound | None:
        """The bound of an operator whose rows leave by their time; None for others."""
        if node.spec.state is not State.RECENT:
            return None
        length: timedelta = node.args["for_"]
        return TimeBound(node.args["by"], min(length // MICROSECOND, LONGEST))

    def since(self, end: datetime) -> int:
        """The time, in microseconds since 1970, up to which rows have left at a tick's end."""
        return since_epoch(end) - self.micros

    @property
    def shown(self) -> str:
        """The bound as a message."""
        return f"`{self.column}` is within {timedelta(microseconds=self.micros)} of the tick's end"


def longer(bounds: Iterable[TimeBound | None]) -> TimeBound | None:
    """The bound of rows with several readers: the longest, if all are of one column; else None."""
    known = list(bounds)
    found = [bound for bound in known if bound is not None]
    if len(found) < len(known) or len({bound.column for bound in found}) != 1:
        return None
    return max(found, key=lambda bound: bound.micros)


# The plan: the program with the kind of every stream, its state tables and its components.
#
# One plan serves every range of ticks; a single tick is the range of length one. Every range writes
# all state tables of the plan, so any range may follow any other.


@dataclass(frozen=True, slots=True)
class StateSlot:
    """A state table: the items of `stream` as they were in the ticks before.

    `id` is printable and unique within the plan. `semantic_hash` is a hash of the sub-program that
    computes the stream; it is the same in every plan that stores the same stream in the same way,
    and identifies the stored table.
    """

    id: str
    stream: Endpoint
    readers: tuple[NodeId, ...]
    """The operators that read the state table."""
    item: ItemType
    ordered: bool
    """True if the position of each item within its tick is stored too, as `ord`."""
    form: Form = field(metadata={NAME: "mode"})
    """How its rows `(item, t)`, with `ord` where it is ordered, are inserted and removed.

    GROWTH: a range adds the rows of its ticks and changes none; a reader sees all rows with `t <
    first`. VALUES: a range leaves the rows of its last tick, and all carry that tick as `t`; a
    reader sees only rows with `t = first - 1`, so older rows may be dropped. CHANGES: a range adds
    the updates of its ticks, `(item, t, n)`: n copies are inserted, or deleted where n is negative;
    a reader sees all rows with `t < first`, which sum up to the items at tick `first - 1`.
    """
    semantic_hash: str
    keep: int | None = None
    """How many ticks before the next one a reader may need; None: all of them."""
    bound: TimeBound | None = field(default=None, metadata=IF_GIVEN)
    """How long a reader needs rows, by a time of theirs; None: always."""

    @property
    def node(self) -> NodeId:
        """The first operator that reads the state table."""
        return self.readers[0]

    def ticks_read(self, first: int) -> tuple[int, int]:
        """The first and the last tick whose rows a range that starts at `first` reads."""
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

    `once`: a single operator without a loop. `fixpoint`: a cycle within each tick. In the other
    three, members read the tick before of each other; `parts` are the components that are left
    within a tick, and run a single tick. A range is `first seen`, one fixpoint `across ticks`, or
    runs `tick by tick`.
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
    """The kind of every node's output."""
    slots: tuple[StateSlot, ...]
    components: tuple[Component, ...]
    """Every node once, each after those that it reads."""
    reads: Mapping[NodeId, str]
    """By node: the id of the state table that it reads."""
    in_changes: frozenset[NodeId] = frozenset()
    """The nodes whose outputs are changelog streams and emit their updates."""
    notes: tuple[str, ...] = ()
    """Messages for the user: the components that run tick by tick, and why."""
    hashes: Mapping[NodeId, str] = field(default_factory=dict)
    """By node: the semantic hash of its streams, which identifies stored ones."""

    @property
    def graph(self) -> Graph:
        return self.typed.graph

    def form(self, stream: NodeId) -> Form:
        """The representation of a stream."""
        if stream in self.in_changes:
            return Form.CHANGES
        return Form.GROWTH if self.kinds[stream] is Kind.H else Form.VALUES

    def slot(self, slot_id: str) -> StateSlot:
        return next(slot for slot in self.slots if slot.id == slot_id)
