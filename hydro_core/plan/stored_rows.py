"""Lookups, and the stored rows that a stream's rows derive from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Protocol, assert_never

from hydro_core.analysis.lineage import map_of
from hydro_core.catalog.classes import (
    AsOf,
    ByKey,
    DistinctItems,
    KeyMatch,
    Linear,
    MatchCondition,
    OrderedByKey,
    OverTime,
    PairedItems,
    PastExtent,
    PerKey,
    PerPosition,
    Product,
    Projection,
    StreamEnd,
)
from hydro_core.catalog.forms import Form
from hydro_core.functions.tree import Const, Fn
from hydro_core.ir.graph import Endpoint, Node, NodeId
from hydro_core.plan.tick_plan import Kind, StateSlot, TickPlan, group_key, key_paths
from hydro_core.types.item import FieldPath, ItemType, Row, at, leaves
from hydro_core.types.item import children as fields_in

# Lookups: stored rows that have the same values as other rows in some fields, in one step or more.
#
# A search starts with arriving rows. A matched row has further fields, by which rows of another
# state table are matched: arriving orders match their customers, and these their nations.


ZERO: FieldPath = ("\0",)
"""In place of a leaf: the long 0, a column that every row has. No real column has this name."""
FieldPairs = tuple[tuple[FieldPath, FieldPath], ...]
"""Pairs of leaves, one of an item and one of another item."""
MOST_STEPS = 8
"""The most state tables that a search goes through; of the next one it reads all rows."""


@dataclass(frozen=True, slots=True)
class FoundRows:
    """The rows of a state table that a lookup matches."""

    slot: str
    found: Lookup

    def __str__(self) -> str:
        fields = ", ".join(_name(mine) for mine in self.found.mine)
        return f"{self.slot} by {fields} of {self.found.by}"


@dataclass(frozen=True, slots=True)
class PassingRows:
    """The rows that pass some filters; other rows have no further effect."""

    of: str | FoundRows
    filters: tuple[Fn, ...]

    def __str__(self) -> str:
        return f"{self.of} where {' and '.join(fn.source for fn in self.filters)}"


@dataclass(frozen=True, slots=True)
class MeetingRows:
    """The rows that find a partner; other rows do not pass the join."""

    of: LookupSource
    partners: frozenset[Lookup]
    """The partners, matched in at least one of these ways."""

    def __str__(self) -> str:
        return f"{self.of} that meets ({'; '.join(sorted(map(str, self.partners)))})"


@dataclass(frozen=True, slots=True)
class RowsSinceLate:
    """The rows of one tick that are not ordered behind all stored rows of their keys: late rows."""

    of: LookupSource
    tails: FoundRows
    """The last stored rows of the keys."""
    keys: FieldPairs
    """The leaves of the key in a stored row, each with that in an arriving row."""
    orders: FieldPairs
    """The leaves of the order in a stored row, each with that in an arriving row."""
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.of} before {self.tails}"


@dataclass(frozen=True, slots=True)
class LeavingRows:
    """The stored rows of a state table that leave a window of `ticks` ticks."""

    slot: str
    ticks: int

    def __str__(self) -> str:
        return f"{self.slot} of {self.ticks} ticks ago"


@dataclass(frozen=True, slots=True)
class ExtremeRows:
    """The stored rows of a state table with the least or greatest non-null values of a leaf, among
    those that other lookups do not match.
    """

    slot: str
    leaf: FieldPath
    greatest: bool
    key: tuple[FieldPath, ...]
    """The leaves of a key; the state table has at most one row for each key at a tick."""
    beside: frozenset[Lookup]
    """The lookups whose rows are left out."""
    count: int = 1
    """The least number of rows; rows equal to the last of them are included."""

    def __str__(self) -> str:
        which = "greatest" if self.greatest else "least"
        many = "" if self.count == 1 else f"{self.count} "
        return f"{self.slot} with the {many}{which} {_name(self.leaf)}"


@dataclass(frozen=True, slots=True)
class RowsBefore:
    """For each key, the `count` numbers before the least number of its rows, each with such a
    row.
    """

    of: FoundRows
    keys: tuple[FieldPath, ...]
    """The leaves of a key."""
    number: FieldPath
    """The leaf with a row's number, which starts at 1."""
    count: int
    """The count of numbers."""

    def __str__(self) -> str:
        return f"{self.count} before {self.of}"


@dataclass(frozen=True, slots=True)
class RowsUpToNext:
    """Right rows of an as-of join, each with the interval of left rows that it may be a partner of.

    The interval starts at the row's own value of the order and ends before the next stored row of
    its key. An item has the row, the first value, and the last value.
    """

    of: LookupSource
    stored: FoundRows
    """The stored right rows of the same keys; none of them is ever deleted."""
    keys: FieldPairs
    """The leaves of the key in a stored row, each with that in an arriving row."""
    place: tuple[FieldPath, FieldPath]
    """The leaf of the order in a stored row and in an arriving row."""
    forward: bool = False
    """True if partners of a right row are the left rows before it."""

    def __str__(self) -> str:
        return f"{self.of} up to the next of {self.stored}"


ROW, FIRST, LAST = "row", "from", "up_to"
"""The fields of these items."""
DerivedRows = (
    PassingRows
    | MeetingRows
    | FoundRows
    | LeavingRows
    | RowsSinceLate
    | RowsBefore
    | RowsUpToNext
    | ExtremeRows
)
"""Rows that are derived from a batch or from stored rows."""
LookupSource = str | DerivedRows
"""The batch of an input, by its name, or rows that are derived from one."""


@dataclass(frozen=True, slots=True)
class LookupBounds:
    """An interval of an order: a lookup matches only items between the first and the last value
    that the rows looking up have, both included.
    """

    first: FieldPairs = ()
    """The leaves of the order, each with that of the first value in the rows looking up; empty:
    unbounded.
    """
    last: FieldPairs = ()
    """The same for the last value."""
    descending: bool = False

    def __str__(self) -> str:
        signs = ("<=", ">=") if self.descending else (">=", "<=")
        sides = zip((self.first, self.last), signs, strict=True)
        return ", ".join(f"{_name(a)}{sign}{_name(b)}" for side, sign in sides for a, b in side)


@dataclass(frozen=True, slots=True)
class Lookup:
    """Stored items that equal a source row in some fields.

    The source is the batch of an input, or rows that are matched before.
    """

    by: LookupSource
    fields: FieldPairs
    """Leaves of the stored items, each with the equal leaf of the source rows. Without any, all
    items match as soon as there is a source row.
    """
    bounds: LookupBounds | None = None
    """An interval that the items are in; None: no restriction."""

    @staticmethod
    def of(
        by: LookupSource, mine: Iterable[FieldPath | None], theirs: Iterable[FieldPath | None]
    ) -> Lookup:
        """The lookup by the fields that are known on both sides."""
        pairs = zip(mine, theirs, strict=True)
        known = ((m, t) for m, t in pairs if m is not None and t is not None)
        # all stored items have 0 there, so it selects nothing
        return Lookup(by, tuple((m, t) for m, t in known if m != ZERO))

    @property
    def mine(self) -> tuple[FieldPath, ...]:
        """The leaves of the stored items."""
        return tuple(own for own, _ in self.fields)

    @property
    def theirs(self) -> tuple[FieldPath, ...]:
        """The leaves of the others' items."""
        return tuple(other for _, other in self.fields)

    @property
    def steps(self) -> int:
        """The number of state tables that the search reads before this lookup."""
        return _steps_to(self.by)

    def __str__(self) -> str:
        fields = [f"{_name(mine)}={_name(theirs)}" for mine, theirs in self.fields]
        fields += [] if self.bounds is None else [str(self.bounds)]
        return f"{self.by}: {', '.join(fields)}"


Lookups = frozenset[Lookup]


def _steps_to(rows: LookupSource) -> int:
    """The number of state tables that the search for some rows reads."""
    match rows:
        case str() | LeavingRows():
            return 0
        case FoundRows(_, found):
            return 1 + found.steps
        case PassingRows(of) | MeetingRows(of) | RowsBefore(of):
            return _steps_to(of)
        case RowsSinceLate(tails=of) | RowsUpToNext(stored=of):
            return _steps_to(of)
        case ExtremeRows(beside=beside):
            return 1 + max((one.steps for one in beside), default=0)


def derived_rows(lookups: Iterable[Lookup]) -> tuple[DerivedRows, ...]:
    """All rows that these lookups need, each after the rows that it is derived from."""
    known: dict[DerivedRows, None] = {}

    def visit(rows: LookupSource) -> None:
        if isinstance(rows, str) or rows in known:
            return
        for before in _sources_of(rows):
            visit(before)
        known[rows] = None

    for rows in sorted({one.by for one in lookups}, key=lambda by: (_steps_to(by), str(by))):
        visit(rows)
    return tuple(known)


def _sources_of(rows: DerivedRows) -> Iterable[LookupSource]:
    match rows:
        case LeavingRows():
            return ()
        case FoundRows(_, found):
            return (found.by,)
        case PassingRows(of) | RowsBefore(of):
            return (of,)
        case MeetingRows(of, partners):
            return (of, *sorted((one.by for one in partners), key=str))
        case RowsSinceLate(of, tails):
            return (of, tails)
        case ExtremeRows(beside=beside):
            return sorted((one.by for one in beside), key=str)
        case RowsUpToNext(of, stored):
            return (of, stored)


def _name(path: FieldPath) -> str:
    return "0" if path == ZERO else ".".join(path) or "item"


# Stored rows behind a stream: which stored rows its rows derive from, and the fields they share.
#
# A search follows the lineage of fields from a stream down to state tables. A field of a join's
# output belongs to one side and matches rows there; their keys match rows of the other side.


KnownFields = tuple[FieldPath | None, ...]
"""Fields of items; None for an unknown one."""
KeyPaths = tuple[Sequence[FieldPath], Sequence[FieldPath]]
"""The parts of a key in the items of two streams."""
KeyedStream = tuple[Endpoint, Sequence[FieldPath]]
"""A stream, and the parts of the key by which its items are matched."""
FieldsOf = tuple[LookupSource, KnownFields]
"""Rows that have some fields, and the paths of the fields in them."""


class JoinsThatDrop(Protocol):
    """The rows that the joins of a plan let pass."""

    def keys(self, node: Node, i: int) -> Sequence[FieldPath]:
        """The leaves by which rows of an input need a partner; empty: all rows may pass."""

    def meeting(self, node: Node, i: int, by: LookupSource, known: KnownFields) -> LookupSource:
        """The rows `by` that may find a partner; `known` are their paths of `keys`."""


class StoredRows:
    """State tables behind the streams of a plan, and the lineage of fields through its
    operators.
    """

    def __init__(self, plan: TickPlan) -> None:
        self._plan, self._graph, self._kinds = plan, plan.graph, plan.kinds
        self.joins: JoinsThatDrop | None = None
        """Filters for rows that are looked up on the way to others; None: no filters."""
        self._maps = {node.id: map_of(plan.typed, node) for node in plan.graph}
        self._on_path = set[NodeId]()
        """The nodes between the start of a search and its current node."""

    def of(self, stream: Endpoint, met: Collection[Lookup], fields: KnownFields) -> FieldSources:
        """The stored rows behind the rows that lookups match in a stream, with the paths of these
        fields.

        New rows of the range are not included. None if the rows are unknown, or no field is given.

        The search ends: it never enters a node twice on one path, so a path has at most as many
        nodes as the plan. A stream of a cycle, which is derived from its own rows, is unknown.
        Lookups and fields do not reveal a cycle: both may change on the way, and the keys of joins
        are added to the fields.
        """
        node = self._graph[stream.node]
        if self._kinds[node.id] is Kind.E:
            return set()  # a batch stream has new rows only
        if not has_some(fields) or not all(one.fields for one in met):
            return None
        if max((one.steps for one in met), default=0) >= MOST_STEPS:
            return None
        slot = self.slot(node)
        if slot is not None:
            return {(FoundRows(slot.id, one), fields) for one in met}
        if node.id in self._on_path:
            return None
        self._on_path.add(node.id)
        found = united(
            None if inner is None else self._of_input(node, i, inner, self.through(node, i, shown))
            for i, inner, shown in self._inside(node, met, fields)
        )
        self._on_path.remove(node.id)
        return found

    def _of_input(
        self, node: Node, i: int, met: Collection[Lookup], fields: KnownFields
    ) -> FieldSources:
        """The stored rows of an input, without those that have no partner where the node drops
        these.
        """
        stream = node.inputs[i]
        keys = () if self.joins is None or not has_some(fields) else self.joins.keys(node, i)
        if self.joins is not None and keys:
            found = self.of(stream, met, (*fields, *keys))
            meeting = with_partner(self.joins, (node, i), found, len(fields))
            if meeting is not None:
                return meeting
        return self.of(stream, met, fields)

    def slot(self, node: Node) -> StateSlot | None:
        """The state table that has all rows of a stream as they were before the range; None if none
        has.
        """
        if (
            node.cls.holds not in (PastExtent.HISTORY, PastExtent.STATE)
            or node.id not in self._plan.reads
        ):
            return None
        slot = self._plan.slot(self._plan.reads[node.id])
        stored = node.id if node.cls.holds is PastExtent.STATE else node.inputs[0].node
        if slot.stream.node != stored:
            return None
        serves = slot.form is not Form.VALUES and slot.keep is None and not slot.ordered
        return slot if serves else None

    def side(self, node: Node, i: int, one: Lookup) -> Collection[Lookup] | None:
        """Lookups in input `i` that match the sides of all pairs or matches which a lookup matches.

        None if they are unknown.
        """
        inner = self.inner(node, i, one)
        if inner.fields:
            return (inner,)
        other = self.inner(node, 1 - i, one)
        pairs = self.pairs(*sides(node, i))
        if not other.fields or not pairs:
            return None
        theirs = tuple(their for _, their in pairs)
        known = self.of(node.inputs[1 - i], (other,), theirs)
        if known is None:
            return None
        return [Lookup.of(by, (own for own, _ in pairs), fields) for by, fields in known]

    def inner(self, node: Node, i: int, one: Lookup) -> Lookup:
        """A lookup in an operator's output as one in an input; it may have fewer fields."""
        mine = self.through(node, i, self.shared(node, one.mine))
        found = Lookup.of(one.by, mine, one.theirs)
        if one.bounds is None or not found.fields:
            return found
        first, last = (
            self._through_pairs(node, i, side) for side in (one.bounds.first, one.bounds.last)
        )
        bounds = replace(one.bounds, first=first, last=last) if first or last else None
        return replace(found, bounds=bounds)

    def _through_pairs(self, node: Node, i: int, orders: FieldPairs) -> FieldPairs:
        """The order of an output as one of the input, up to the first leaf that the input lacks."""
        mine = self.through(node, i, self.shared(node, tuple(own for own, _ in orders)))
        pairs = zip(mine, orders, strict=True)
        known = takewhile(lambda pair: pair[0] is not None, pairs)
        return tuple((own, theirs) for own, (_, theirs) in known if own is not None)

    def pairs(self, mine: KeyedStream, other: KeyedStream) -> list[tuple[FieldPath, FieldPath]]:
        """The leaves of the key by which the items of two streams are matched, on both sides."""
        found: list[tuple[FieldPath, FieldPath]] = []
        for own, their in zip(mine[1], other[1], strict=True):
            parts = at(self.item(mine[0]), own), at(self.item(other[0]), their)
            if parts[0] is None or parts[1] is None:
                continue
            for path, _ in leaves(parts[0]):
                leaf = at(parts[1], path)
                if leaf is not None and not list(fields_in(leaf)):
                    found.append(((*own, *path), (*their, *path)))
        return found

    def shared(self, node: Node, fields: KnownFields) -> KnownFields:
        """The fields that an item shares with all stored items it depends on.

        A keyed result depends on earlier items, which share only its key.
        """
        key = None if self._kinds[node.id] is Kind.E else group_key(node)
        if key is None:
            return fields
        parts = {part for part, *_ in key_paths(key)}
        return tuple(f if f and f[0] in parts else None for f in fields)

    def through(self, node: Node, i: int, fields: KnownFields) -> KnownFields:
        """The paths in input `i` of the output's fields; None for a field that the input lacks."""
        found = self._maps[node.id]
        # the nearest row depends on all rows of the key
        found = None if isinstance(node.cls, AsOf) and i == 1 else found
        equal = {} if found is None else found.equal
        keys, zeros = _keys_through(node, i), self._zeros(node)

        def one(path: FieldPath) -> FieldPath | None:
            if path == ZERO or path in zeros:
                return ZERO
            for length in range(len(path), -1, -1):
                for field in equal.get(path[:length], ()):
                    if field.input == i:
                        return (*field.path, *path[length:])
                if path[:length] in keys:
                    return (*keys[path[:length]], *path[length:])
            return None

        return tuple(None if path is None else one(path) for path in fields)

    def _zeros(self, node: Node) -> Collection[FieldPath]:
        """The columns that a node sets to 0 in each row."""
        if not isinstance(node.cls, Projection):
            return ()
        item = self.item(node.inputs[0])
        made = node.cls.columns(node.args, item.names if isinstance(item, Row) else ())
        return [(name,) for name, of in made.items() if isinstance(of, Fn) and _is_zero(of)]

    def item(self, stream: Endpoint) -> ItemType:
        """The type of a stream's items; a copy of `tee` has the type of the copied stream."""
        types = self._plan.typed
        return (types.types.get(stream) or types.of(stream.node)).item

    def _inside(
        self, node: Node, met: Collection[Lookup], fields: KnownFields
    ) -> Iterator[tuple[int, Collection[Lookup] | None, KnownFields]]:
        """The inputs that have the fields, each with the lookups there; None for unknown
        lookups.
        """
        cls = node.cls
        match cls:
            case Linear() | DistinctItems():
                for i in range(len(node.inputs)):
                    yield i, [self.inner(node, i, one) for one in met], fields
            case ByKey(keyed=True) | OrderedByKey(keyed=True):
                yield 0, [self.inner(node, 0, one) for one in met], self.shared(node, fields)
            case KeyMatch() | AsOf():
                yield 0, self._sides(node, 0, met), fields
            case Product(PairedItems.KEY, keeps) if not keeps:
                known = [self.through(node, i, fields) for i in (0, 1)]
                i = max((0, 1), key=lambda side: sum(f is not None for f in known[side]))
                yield i, self._sides(node, i, met), fields
            case StreamEnd() | Product() | PerKey() | PerPosition() | OverTime():
                yield 0, None, fields
            case _:
                assert_never(cls)

    def _sides(self, node: Node, i: int, met: Collection[Lookup]) -> Collection[Lookup] | None:
        found = [self.side(node, i, one) for one in met]
        return None if None in found else [one for part in found for one in part or ()]


FieldSources = set[FieldsOf] | None
"""Rows that have some fields of a stream's rows; None if they are unknown."""


def with_partner(
    joins: JoinsThatDrop, of: tuple[Node, int], found: FieldSources, many: int
) -> FieldSources:
    """The rows of a join's input that may find a partner, with their first `many` fields.

    The fields behind these are the join's keys. None if the rows are not all known, or if a row has
    none of the first fields: other rows may have them.
    """
    if found is None or not all(has_some(known[:many]) for _, known in found):
        return None
    return {(joins.meeting(*of, by, known[many:]), known[:many]) for by, known in found}


def _is_zero(fn: Fn) -> bool:
    """True if a function returns the long 0 for each item."""
    of = fn.tree
    return isinstance(of, Const) and type(of.value) is int and of.value == 0 and not fn.returns


def has_some(fields: KnownFields) -> bool:
    return any(field is not None for field in fields)


def keys_of_pairs(node: Node) -> KeyPaths:
    """The parts of the key by which the two inputs of a product or a match are compared."""
    cls, key = node.cls, key_paths(node.args.get("on") or ())
    how: PairedItems | MatchCondition = PairedItems.ALL
    if isinstance(cls, Product):
        how = cls.meets
    if isinstance(cls, KeyMatch):
        how = cls.compares
    if isinstance(cls, AsOf) and cls.keyed:
        how = PairedItems.KEY
    match how:
        case PairedItems.ALL | PairedItems.SINGLE | MatchCondition.NOTHING:
            return (), ()
        case PairedItems.KEY | MatchCondition.KEYS:
            return key, key
        case MatchCondition.ITEMS:
            return [()], [()]
        case MatchCondition.BARE_KEYS:
            return key, [()]


def sides(node: Node, i: int) -> tuple[KeyedStream, KeyedStream]:
    """An input of a product or a match and the other one, each with its key."""
    keys = keys_of_pairs(node)
    return (node.inputs[i], keys[i]), (node.inputs[1 - i], keys[1 - i])


def united(parts: Iterable[FieldSources]) -> FieldSources:
    """The union; None if one part is unknown."""
    found: set[FieldsOf] = set()
    for part in parts:
        if part is None:
            return None
        found |= part
    return found


def _keys_through(node: Node, i: int) -> Mapping[FieldPath, FieldPath]:
    """By parts of the key in an output item: their paths in an item of input `i`.

    A padded or filtered row has no other field in common with input `i`.
    """
    keys = keys_of_pairs(node)
    return dict(zip(keys[0], keys[i], strict=True)) if keys[0] else {}
