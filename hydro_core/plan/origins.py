"""Origins: input rows that the new rows of a stream depend on, and min/max lookups."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from hydro_core.catalog.classes import (
    AsOf,
    ByKey,
    DistinctItems,
    EmptyStream,
    History,
    ItemEffect,
    KeyMatch,
    Linear,
    OrderedByKey,
    OverTime,
    PairedItems,
    PassedItems,
    PerItem,
    PerKey,
    PerPosition,
    Product,
    Projection,
    RunningResult,
    StreamEnd,
    Sum,
    TickDifference,
    Window,
)
from hydro_core.catalog.forms import Form
from hydro_core.catalog.group import (
    GIVE_FEW,
    ExtremeValue,
    WithExtremes,
    extremes_of,
    first_of,
    with_extremes,
)
from hydro_core.catalog.spec import functions_of
from hydro_core.functions.tree import Fn
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId, first_inputs
from hydro_core.plan.stored_rows import (
    ExtremeRows,
    FieldsOf,
    FoundRows,
    KeyedStream,
    KnownFields,
    LeavingRows,
    Lookup,
    Lookups,
    LookupSource,
    MeetingRows,
    PassingRows,
    StoredRows,
    has_some,
    keys_of_pairs,
    sides,
    united,
    with_partner,
)
from hydro_core.plan.tick_plan import Kind, TickPlan, group_key, key_paths, result_key
from hydro_core.types.item import Decimal, FieldPath, Row, Scalar

# Origins: the input rows that new rows of a stream depend on, and the fields that both have.
#
# A row is inserted or deleted together with rows of inputs: the origins of the rows that it is
# derived from. The operators' lineage gives the common fields; computed fields are left out. So the
# batches of the inputs have the fields of all rows that a range can change.
#
# A row without a partner never passes an inner join, so it needs no lookups. For example, each line
# has one stored part, and the program joins lines with the parts of one brand. The lines of a batch
# are first matched with these parts; only lines with such a part look up further rows, such as all
# earlier lines of the part. A partner may also arrive in the batch.


class NewRowOrigins:
    """Origins of the new rows in the streams of a plan."""

    def __init__(self, plan: TickPlan) -> None:
        self._plan, self._graph, self._kinds = plan, plan.graph, plan.kinds
        self.stored = StoredRows(plan)
        self.stored.joins = self.partners = Partners(plan, self)
        self._narrowed = set[NodeId]()
        self._known: dict[tuple[NodeId, KnownFields], set[FieldsOf] | None] = {}

    def of(self, stream: Endpoint, fields: KnownFields) -> set[FieldsOf] | None:
        """The origins of a stream's new rows, each with the paths of `fields` in it; None if
        unknown.

        Origins are arriving rows of inputs, or stored rows where only these have the fields. They
        are unknown where a row is inserted or deleted without an input row.

        The search ends: a question that recurs while it is answered counts as unknown, and there
        are finitely many questions. The fields are those of the question and the keys of joins that
        filter on the way, each once, and all are paths in items of the plan's types.
        """
        asked = stream.node, fields
        if asked not in self._known:
            self._known[asked] = None  # a cyclic dependency is unknown
            self._known[asked] = self._of(stream, fields)
        return self._known[asked]

    def lookups(self, mine: KeyedStream, other: KeyedStream) -> list[Lookup] | None:
        """Lookups in the stream `mine` by the new rows of `other`; None if their origins are
        unknown.
        """
        pairs = self.stored.pairs(mine, other)
        found = self.of(other[0], tuple(their for _, their in pairs))
        if found is None:
            return None
        ours = [own for own, _ in pairs]
        return [Lookup.of(by, ours, theirs) for by, theirs in found]

    def _of(self, stream: Endpoint, fields: KnownFields) -> set[FieldsOf] | None:
        if not self.adds(stream.node):
            return None
        todo: list[tuple[NodeId, KnownFields]] = [(stream.node, fields)]
        seen, found = set(todo), set[FieldsOf]()
        while todo:
            name, wanted = todo.pop()
            node = self._graph[name]
            arriving = self._arriving(node)
            if arriving is not None:
                found.add((arriving, wanted))
                continue
            leaving = self._leaving(node)
            found |= {(rows, wanted) for rows in leaving}
            before = range(1) if leaving else self._comes_with(node)
            if before is None:
                return None
            more = set[tuple[NodeId, KnownFields]]()
            for i in before:
                known = self.stored.through(node, i, self.stored.shared(node, wanted))
                if has_some(known):
                    told = self._with_partner(node, i, known)
                else:
                    told = self._other_rows(node, i, wanted)
                if told is None:
                    more.add((node.inputs[i].node, known))
                else:
                    found |= told
            todo += more - seen
            seen |= more
        return found

    def _arriving(self, node: Node) -> str | PassingRows | None:
        """The input whose batch a stream is, filtered if filters follow; None for other streams."""
        node, filters = _behind_filters(self._graph, node)
        for name, source in self._graph.sources.items():
            if source.id == node.id:
                return PassingRows(name, filters) if filters else name
        return None

    def _leaving(self, node: Node) -> tuple[LeavingRows, ...]:
        """The stored rows that leave a window over a batch stream; its other new rows arrive."""
        if not isinstance(node.cls, Window) or node.cls.timed:
            return ()
        is_of_events = self._kinds[node.inputs[0].node] is Kind.E
        return (LeavingRows(self._plan.reads[node.id], node.args["n"]),) if is_of_events else ()

    def _with_partner(self, node: Node, i: int, fields: KnownFields) -> set[FieldsOf] | None:
        """Origins of an input's new rows that may find a partner in a join; None if partners are
        unknown.
        """
        keys = self.partners.keys(node, i)
        if not keys or node.id in self._narrowed:
            return None
        self._narrowed.add(node.id)
        found = self.of(node.inputs[i], (*fields, *keys))
        self._narrowed.remove(node.id)
        return with_partner(self.partners, (node, i), found, len(fields))

    def _other_rows(self, node: Node, i: int, fields: KnownFields) -> set[FieldsOf] | None:
        """Origins that have the fields which new rows of input `i` lack; None if unknown.

        A pair has the fields of its other side; an operator that stores a row per key has those of
        the stored row.
        """
        if not has_some(fields):
            return None
        if _keeps_a_row(node):
            return self._of_kept(node, i, fields)
        other = _other_side(node, i)
        if other is None:
            return None
        stream, wanted = node.inputs[other], self.stored.through(node, other, fields)
        met = self.lookups(*sides(node, other)) if has_some(wanted) else None
        if met is None:
            return None
        new = self._with_partner(node, other, wanted)
        new = self.of(stream, wanted) if new is None else new
        return united((self.stored.of(stream, met, wanted), new))

    def _of_kept(self, node: Node, i: int, fields: KnownFields) -> set[FieldsOf] | None:
        """A key's stored row before a range, and the rows that may replace it in the range."""
        key = key_paths(result_key(node) or ())
        met = self.lookups((Endpoint(node.id), key), (node.inputs[i], key))
        if self.stored.slot(node) is None or met is None:
            return None
        new = self.of(node.inputs[i], self.stored.through(node, i, fields))
        return united((self.stored.of(Endpoint(node.id), met, fields), new))

    def adds(self, stream: NodeId) -> bool:
        """True if the new rows of a stream are distinguished: it is no changelog, or emits its
        updates.
        """
        return self._kinds[stream] is not Kind.G or stream in self._plan.in_changes

    def tells(self, node: Node) -> bool:
        """True if new rows of a stream with a past are derived from new rows of the inputs
        alone.
        """
        streams = (node.id, *(e.node for e in node.inputs))
        reaches_back = self._kinds[node.id] is not Kind.E
        return reaches_back and all(map(self.adds, streams))

    def tells_changes(self, node: Node) -> bool:
        """True if a keyed result emits updates of the changed keys, and its input emits its own."""
        return node.id in self._plan.in_changes and self.adds(node.inputs[0].node)

    def _comes_with(self, node: Node) -> range | None:
        """The inputs whose new rows are the origins of all new rows of a node; None if unknown."""
        kinds = [self._kinds[e.node] for e in node.inputs]
        events, told = [k is Kind.E for k in kinds], all(self.adds(e.node) for e in node.inputs)
        cls, every, found = node.cls, range(len(kinds)), None
        match cls:
            case EmptyStream() | Linear():
                found = every if told else None
            case History(before):
                found = every if events[0] and not before else None
            case Product() | KeyMatch() | AsOf() | DistinctItems() if self.tells(node):
                found = every
            case Product() | KeyMatch() | AsOf():
                found = _of_events(cls, kinds)
            case TickDifference(signed):
                found = every if told and not (signed and events[0]) else None
            case RunningResult(changes=changes):
                if group_key(node) is not None and (told if changes else events[-1]):
                    found = every[-1:]
            case DistinctItems() | ByKey() | OrderedByKey() | PerPosition():
                alone = self.tells_changes(node) or (node.spec.zero and all(events))
                found = every if alone else None
            case StreamEnd() | OverTime():
                found = None
            case _:
                assert_never(cls)
        return found


def _of_events(cls: Product | KeyMatch | AsOf, kinds: Sequence[Kind]) -> range | None:
    """The inputs whose rows are the origins of all pairs or matches in a batch stream."""
    both, keeps = range(2), frozenset({0})
    if isinstance(cls, Product):
        keeps = cls.keeps
    if isinstance(cls, KeyMatch) and cls.wanted:
        keeps = frozenset()  # a row that needs a match depends on it
    alone = (both[i : i + 1] for i in both if kinds[i] is Kind.E and set(keeps) <= {i})
    return next(alone, both if set(kinds) == {Kind.E} else None)


def _other_side(node: Node, i: int) -> int | None:
    """The input whose fields a keyed pair has besides those of input `i`; None if there is none."""
    cls = node.cls
    if isinstance(cls, Product):
        return 1 - i if cls.meets is PairedItems.KEY else None
    if isinstance(cls, AsOf):
        return 0 if cls.keyed and i == 1 else None
    return 0 if isinstance(cls, KeyMatch) and i == 1 else None


def _keeps_a_row(node: Node) -> bool:
    """True if the node stores for each key one of the rows that have arrived for it."""
    cls = node.cls
    kept = isinstance(cls, RunningResult) and cls.of.keyed and not cls.changes
    return kept and cls.passes is PassedItems.EARLIER and result_key(node) is not None


class Partners:
    """Filters the rows by which stored rows are looked up: only those that pass the plan's
    joins.
    """

    def __init__(self, plan: TickPlan, origins: NewRowOrigins) -> None:
        self._plan, self._graph = plan, plan.graph
        self._stored, self._new = origins.stored, origins.of
        self._few: dict[NodeId, bool] = {}
        self._on_path = set[NodeId]()

    def keys(self, node: Node, i: int) -> Sequence[FieldPath]:
        """The leaves of the key by which rows of a join's input find their partner.

        Empty if the join keeps rows without a partner, or if the other input is not filtered.
        """
        other = 1 - i
        if other not in _inputs_of_all(node):
            return ()
        if not self._are_few(self._graph[node.inputs[other].node]):
            return ()
        return [own for own, _ in self._stored.pairs(*sides(node, i))]

    def narrowed(self, node: Node, i: int, one: Lookup) -> Lookup:
        """The lookup in an input of a join, by only those rows that may find a partner."""
        has = dict(one.fields)
        known = tuple(has.get(own) for own in self.keys(node, i))
        return replace(one, by=self.meeting(node, i, one.by, known)) if known else one

    def meeting(self, node: Node, i: int, by: LookupSource, known: KnownFields) -> LookupSource:
        """The rows `by` that may find a partner for input `i` of a join; `known` are their paths of
        `keys`.
        """
        theirs = tuple(their for _, their in self._stored.pairs(*sides(node, i)))
        return self._agreeing(by, known, node.inputs[1 - i], theirs)

    def _agreeing(
        self, by: LookupSource, known: KnownFields, stream: Endpoint, fields: KnownFields
    ) -> LookupSource:
        """The rows `by` that match a row of a stream in some fields.

        Any row may be left in. So the search stops where it would enter a node twice, and ends.
        """
        node = self._graph[stream.node]
        if node.id in self._on_path or not self._are_few(node):
            return by
        filters = self._filters(node)
        if filters is not None:
            return self._agreeing_stored(by, known, (stream, fields), filters)
        self._on_path.add(node.id)
        for i in _inputs_of_all(node):
            theirs = self._stored.through(node, i, fields)
            by = self._agreeing(by, known, node.inputs[i], theirs)
        self._on_path.remove(node.id)
        return by

    def _agreeing_stored(
        self,
        by: LookupSource,
        known: KnownFields,
        other: tuple[Endpoint, KnownFields],
        filters: tuple[Fn, ...],
    ) -> LookupSource:
        """The rows `by` that match a stored row which passes the filters, or a new row.

        All rows if one of them may match many stored rows: these would be looked up for the filter
        alone.
        """
        stream, theirs = other
        asked = Lookup.of(by, theirs, known)
        stored = self._stored.of(stream, (asked,), theirs) if asked.fields else None
        new = self._new(stream, theirs)
        if not stored or new is None:
            return by
        passing = {
            (PassingRows(rows, filters), fields)
            for rows, fields in stored
            if isinstance(rows, FoundRows) and self._is_one_row(rows)
        }
        partners = frozenset(Lookup.of(rows, known, fields) for rows, fields in passing | new)
        if len(passing) < len(stored) or not all(one.fields for one in partners):
            return by
        return MeetingRows(by, partners)

    def _are_few(self, node: Node) -> bool:
        """True if a stream is derived from stored rows, and filters remove some of these."""
        if node.id not in self._few:
            self._few[node.id] = False  # a cycle adds no answer of its own
            filters = self._filters(node)
            below = (self._graph[node.inputs[i].node] for i in _inputs_of_all(node))
            self._few[node.id] = (
                any(map(self._are_few, below)) if filters is None else filters != ()
            )
        return self._few[node.id]

    def _filters(self, node: Node) -> tuple[Fn, ...] | None:
        """The filters between stored rows and a stream; None if there are other operators
        between.
        """
        node, filters = _behind_filters(self._graph, node)
        return None if self._stored.slot(node) is None else filters

    def _is_one_row(self, rows: FoundRows) -> bool:
        """True if a lookup matches at most one stored row for each row that looks up."""
        key = result_key(self._graph[self._plan.slot(rows.slot).stream.node])
        return key is not None and set(key_paths(key)) <= {path[:1] for path in rows.found.mine}


def _behind_filters(graph: Graph, node: Node) -> tuple[Node, tuple[Fn, ...]]:
    """The node behind filters, and those filters that may be evaluated again with the same
    result.
    """
    filters: list[Fn] = []
    for stream in first_inputs(graph, Endpoint(node.id)):
        node = graph[stream.node]
        if not (isinstance(node.cls, PerItem) and node.cls.gives is ItemEffect.SOME):
            break
        filters[:0] = functions_of(node.args)
    return node, tuple(fn for fn in filters if fn.pure and not fn.unrepeatable)


def _inputs_of_all(node: Node) -> Collection[int]:
    """The inputs that every output row of a node depends on, as a source or through a filter."""
    match cls := node.cls:
        case PerItem() | Projection():
            return (0,)
        case KeyMatch():
            return (0, 1) if cls.wanted else (0,)
        case AsOf():
            return (0,)
        case Product():
            return [i for i in (0, 1) if cls.meets is PairedItems.KEY and 1 - i not in cls.keeps]
        case StreamEnd() | Sum() | PerKey() | PerPosition() | OverTime():
            return ()
        case _:
            assert_never(cls)


# Min/max lookups: rows that are compared with the minimum or maximum of a stored result.
#
# `greatest = totals -> aggregate(v=max("v"))` and `totals -> join(right=greatest, on="v")` read all
# totals as written. A range changes the totals of some keys. The others stay the same, so only
# those with the maximum can matter. The rows of the changed keys and the rows with the maximum are
# enough for both the aggregate and the join, and so they are for lookups by rows of the join.


ShownNames = Mapping[str, str]
"""By columns of a projection's input: their names in its output."""


@dataclass(frozen=True, slots=True)
class _StoredResult:
    """A stream that is a stored keyed result, or a projection of one."""

    result: Node
    names: ShownNames

    def column(self, shown: str) -> str | None:
        """The result's column that a column of the stream shows."""
        return next((own for own, name in self.names.items() if name == shown), None)


class ExtremesRead:
    """The stored rows that readers of their minimum or maximum need."""

    def __init__(self, plan: TickPlan, origins: NewRowOrigins) -> None:
        self._plan, self._graph, self._origins = plan, plan.graph, origins

    def of(self, node: Node, i: int) -> Lookups | None:
        """The rows that an operator needs of input `i`, as lookups by minimum or maximum.

        None if it neither computes nor compares one, or if the rows are unknown.
        """
        if with_extremes(node.cls) is WithExtremes.VALUE:
            extremes = extremes_of(node.args)
            return None if extremes is None else self._looked_at(node.inputs[0], extremes.values())
        extreme = first_of(node.cls, node.args) or self._met(node, i)
        return None if extreme is None else self._looked_at(node.inputs[i], (extreme,))

    def all_rows(self, stream: Endpoint, fields: KnownFields) -> set[FieldsOf] | None:
        """The origins of all rows of a stream whose operator reads min/max rows, with these fields;
        None if they are not all known.
        """
        stored = self._origins.stored
        for passed in first_inputs(self._graph, stream):
            node = self._graph[passed.node]
            what = with_extremes(node.cls)
            if what is not WithExtremes.PASSES:
                break
            fields = stored.through(node, 0, fields)
        for i, of in enumerate(node.inputs):
            looked_at = self.of(node, i) if what in GIVE_FEW else None
            if looked_at is None:
                continue
            known, own = stored.through(node, i, fields), self._changing(of)
            new = self._origins.of(of, known)
            old = None if own is None else stored.of(of, looked_at | own, known)
            return united((new, old))
        return None

    def _met(self, node: Node, i: int) -> ExtremeValue | None:
        """The minimum or maximum of input `i` that the other input has, where a join compares for
        equality.
        """
        if with_extremes(node.cls) is not WithExtremes.PAIRS:
            return None
        if isinstance(node.cls, KeyMatch) and i == 1:
            return None
        one, names = self._through(node.inputs[1 - i])
        mine = self._stored(node.inputs[i])
        gives_values = with_extremes(one.cls) is WithExtremes.VALUE
        extremes = extremes_of(one.args) if gives_values else None
        theirs = None if extremes is None else self._stored(one.inputs[0])
        if mine is None or extremes is None or theirs is None or theirs.result != mine.result:
            return None
        keys = keys_of_pairs(node)
        for own, other in zip(keys[i], keys[1 - i], strict=True):
            name = next((n for n in extremes if names.get(n, "") == other[0]), None)
            if name is None:
                continue
            column = mine.column(own[0])
            if column is not None and column == theirs.column(extremes[name].column):
                return ExtremeValue(own[0], extremes[name].greatest)
        return None

    def _looked_at(self, stream: Endpoint, extremes: Collection[ExtremeValue]) -> Lookups | None:
        """Lookups of the rows with one of these values, and of the rows of changed keys."""
        stored, own = self._stored(stream), self._changing(stream)
        if stored is None or own is None:
            return None
        slot = self._origins.stored.slot(stored.result)
        item, key = self._origins.stored.item(Endpoint(stored.result.id)), _key(stored.result)
        result = Endpoint(stored.result.id), key_paths(key)
        shown = [(stored.names[name],) for name in key]
        pairs = self._origins.stored.pairs((stream, shown), result)
        beside = self._met_by_new(result, stored.result)
        if slot is None or beside is None or not pairs:
            return None if extremes else frozenset()
        found, leaves = set[Lookup](), tuple(their for _, their in pairs)
        for extreme in extremes:
            column = stored.column(extreme.column) or ""
            of = item.column(column) if isinstance(item, Row) else None
            if not isinstance(of, Scalar | Decimal):
                return None
            by = ExtremeRows(slot.id, (column,), extreme.greatest, leaves, beside, extreme.count)
            found.add(Lookup(by, tuple(pairs)))
        return frozenset(found)

    def _changing(self, stream: Endpoint) -> Lookups | None:
        """Lookups of the rows of changed keys; None if all keys may change."""
        stored = self._stored(stream)
        if stored is None:
            return None
        shown = [(stored.names[name],) for name in _key(stored.result)]
        return self._met_by_new((stream, shown), stored.result)

    def _met_by_new(
        self, mine: tuple[Endpoint, Sequence[tuple[str, ...]]], result: Node
    ) -> Lookups | None:
        found = self._origins.lookups(mine, (result.inputs[-1], key_paths(_key(result))))
        if found is None or not all(one.fields for one in found):
            return None
        return frozenset(found)

    def _stored(self, stream: Endpoint) -> _StoredResult | None:
        """The stored keyed result that a stream shows with all columns of the key; None if there is
        none.
        """
        node, names = self._through(stream)
        if with_extremes(node.cls) is not WithExtremes.STORED:
            return None
        slot = self._origins.stored.slot(node)
        if slot is None or slot.form is not Form.CHANGES or not self._origins.adds(node.id):
            return None
        key = _key(node)
        return _StoredResult(node, names) if key and {*key} <= names.keys() else None

    def _through(self, stream: Endpoint) -> tuple[Node, ShownNames]:
        """The stream that a stream is a projection of, and the names of the unchanged columns."""
        projections: list[tuple[Node, Projection]] = []
        for below in first_inputs(self._graph, stream):
            node = self._graph[below.node]
            if not isinstance(node.cls, Projection):
                break
            projections.append((node, node.cls))
        item = self._origins.stored.item(below)
        names = {name: name for name in item.names} if isinstance(item, Row) else {}
        for one, cls in reversed(projections):
            of = self._origins.stored.item(one.inputs[0])
            made = cls.columns(one.args, of.names if isinstance(of, Row) else ())
            shown = {c: name for name, c in reversed(list(made.items())) if isinstance(c, str)}
            names = {own: shown[n] for own, n in names.items() if n in shown}
        return node, names


def _key(result: Node) -> tuple[str, ...]:
    return result_key(result) or ()
