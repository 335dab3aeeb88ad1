"""Origins: input rows that come with the new rows of a stream, and lookups of min/max values."""

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

# With which rows of the inputs of a program comes what is new in a stream, and what both share.
#
# A row that comes, or goes, does so with rows of inputs: those that new rows of what it is made
# of come with. The operators' lineage tells which fields they have in common; a computed field is
# left out. So whoever has the inputs' batches knows the fields of all that a range can change.
#
# Rows that find no partner in a join never get beyond it, so nothing is looked up by them. A
# line's part is one stored row. Where the program joins lines with the parts of one brand alone,
# the lines of a batch are asked for that first; what else there is of a part, all its earlier
# lines above all, is looked up by the few that have such a part. A partner may also come in the
# batch.


class NewRowOrigins:
    """Where what is new in the streams of a plan comes from."""

    def __init__(self, plan: TickPlan) -> None:
        self._plan, self._graph, self._kinds = plan, plan.graph, plan.kinds
        self.stored = StoredRows(plan)
        self.stored.joins = self.partners = Partners(plan, self)
        self._narrowed = set[NodeId]()
        self._known: dict[tuple[NodeId, KnownFields], set[FieldsOf] | None] = {}

    def of(self, stream: Endpoint, fields: KnownFields) -> set[FieldsOf] | None:
        """The rows with which all comes that is new in a stream, and the fields there.

        They are those that arrive at inputs; or stored ones, where these know the fields and what
        arrives does not. None where something comes without a row of an input.

        The search ends: a question that comes up while it is answered is not known, and there are
        finitely many. Fields are as many as those asked for and the keys of joins that are narrowed
        on the way, each once, and lie in items of the plan's types.
        """
        asked = stream.node, fields
        if asked not in self._known:
            self._known[asked] = None  # what depends on itself is not known
            self._known[asked] = self._of(stream, fields)
        return self._known[asked]

    def lookups(self, mine: KeyedStream, other: KeyedStream) -> list[Lookup] | None:
        """What is looked up in a stream by what is new in another; None where not all is known."""
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
        """The input whose batch a stream is, or what passes filters of it; None for others."""
        node, filters = _behind_filters(self._graph, node)
        for name, source in self._graph.sources.items():
            if source.id == node.id:
                return PassingRows(name, filters) if filters else name
        return None

    def _leaving(self, node: Node) -> tuple[LeavingRows, ...]:
        """The stored rows that leave a window of events: what else is new there comes to it."""
        if not isinstance(node.cls, Window) or node.cls.timed:
            return ()
        is_of_events = self._kinds[node.inputs[0].node] is Kind.E
        return (LeavingRows(self._plan.reads[node.id], node.args["n"]),) if is_of_events else ()

    def _with_partner(self, node: Node, i: int, fields: KnownFields) -> set[FieldsOf] | None:
        """The rows with which comes what is new in an input of a join, of these those that find a
        partner; None where nothing is told of partners.
        """
        keys = self.partners.keys(node, i)
        if not keys or node.id in self._narrowed:
            return None
        self._narrowed.add(node.id)
        found = self.of(node.inputs[i], (*fields, *keys))
        self._narrowed.remove(node.id)
        return with_partner(self.partners, (node, i), found, len(fields))

    def _other_rows(self, node: Node, i: int, fields: KnownFields) -> set[FieldsOf] | None:
        """The rows that have fields which what is new in an input does not have.

        A pair has those of the other side, too; who keeps a row of a key has those of the old one.
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
        """The rows that a key's row was before a range, or is made in it."""
        key = key_paths(result_key(node) or ())
        met = self.lookups((Endpoint(node.id), key), (node.inputs[i], key))
        if self.stored.slot(node) is None or met is None:
            return None
        new = self.of(node.inputs[i], self.stored.through(node, i, fields))
        return united((self.stored.of(Endpoint(node.id), met, fields), new))

    def adds(self, stream: NodeId) -> bool:
        """Whether what is new in a stream is told apart from the rest."""
        return self._kinds[stream] is not Kind.G or stream in self._plan.in_changes

    def tells(self, node: Node) -> bool:
        """Whether what is new in what reaches back is made of what is new in the inputs."""
        streams = (node.id, *(e.node for e in node.inputs))
        reaches_back = self._kinds[node.id] is not Kind.E
        return reaches_back and all(map(self.adds, streams))

    def tells_changes(self, node: Node) -> bool:
        """Whether results by key are told by those of the keys that change."""
        return node.id in self._plan.in_changes and self.adds(node.inputs[0].node)

    def _comes_with(self, node: Node) -> range | None:
        """The inputs with whose new rows all new rows of a node come."""
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
    """The inputs with whose rows all pairs or matches come that are events."""
    both, keeps = range(2), frozenset({0})
    if isinstance(cls, Product):
        keeps = cls.keeps
    if isinstance(cls, KeyMatch) and cls.wanted:
        keeps = frozenset()  # who stays for a match comes with it
    alone = (both[i : i + 1] for i in both if kinds[i] is Kind.E and set(keeps) <= {i})
    return next(alone, both if set(kinds) == {Kind.E} else None)


def _other_side(node: Node, i: int) -> int | None:
    """The input of which an item has fields that comes with another input, by a key."""
    cls = node.cls
    if isinstance(cls, Product):
        return 1 - i if cls.meets is PairedItems.KEY else None
    if isinstance(cls, AsOf):
        return 0 if cls.keyed and i == 1 else None
    return 0 if isinstance(cls, KeyMatch) and i == 1 else None


def _keeps_a_row(node: Node) -> bool:
    """Whether the node's result for a key is one of the rows that came for it, and is stored."""
    cls = node.cls
    kept = isinstance(cls, RunningResult) and cls.of.keyed and not cls.changes
    return kept and cls.passes is PassedItems.EARLIER and result_key(node) is not None


class Partners:
    """What the joins of a plan let pass of rows by which stored ones are looked up."""

    def __init__(self, plan: TickPlan, origins: NewRowOrigins) -> None:
        self._plan, self._graph = plan, plan.graph
        self._stored, self._new = origins.stored, origins.of
        self._few: dict[NodeId, bool] = {}
        self._on_path = set[NodeId]()

    def keys(self, node: Node, i: int) -> Sequence[FieldPath]:
        """The leaves of the key by which rows of an input of a join find their partner; none where
        the node lets pass rows without one, or nothing is known of who has none.
        """
        other = 1 - i
        if other not in _inputs_of_all(node):
            return ()
        if not self._are_few(self._graph[node.inputs[other].node]):
            return ()
        return [own for own, _ in self._stored.pairs(*sides(node, i))]

    def narrowed(self, node: Node, i: int, one: Lookup) -> Lookup:
        """A lookup in an input of a join, by those rows alone that find a partner."""
        has = dict(one.fields)
        known = tuple(has.get(own) for own in self.keys(node, i))
        return replace(one, by=self.meeting(node, i, one.by, known)) if known else one

    def meeting(self, node: Node, i: int, by: LookupSource, known: KnownFields) -> LookupSource:
        """Those of some rows that find a partner, or may do, where they are met in an input of a
        join; `known`: where they have the leaves of `keys`.
        """
        theirs = tuple(their for _, their in self._stored.pairs(*sides(node, i)))
        return self._agreeing(by, known, node.inputs[1 - i], theirs)

    def _agreeing(
        self, by: LookupSource, known: KnownFields, stream: Endpoint, fields: KnownFields
    ) -> LookupSource:
        """Those of some rows that agree with a row of a stream in some fields.

        Any of them may be left in: so a cycle is not followed twice, and the search ends.
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
        """Those of some rows that agree with a stored one which passes filters, or with a new one.

        All of them where one of them may agree with many, so that these are not looked up for it.
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
        """Whether a stream is made of stored rows of which filters let pass some alone."""
        if node.id not in self._few:
            self._few[node.id] = False  # what comes round is not asked again
            filters = self._filters(node)
            below = (self._graph[node.inputs[i].node] for i in _inputs_of_all(node))
            self._few[node.id] = (
                any(map(self._are_few, below)) if filters is None else filters != ()
            )
        return self._few[node.id]

    def _filters(self, node: Node) -> tuple[Fn, ...] | None:
        """The filters that stored rows pass to be those of a stream; None where more is between."""
        node, filters = _behind_filters(self._graph, node)
        return None if self._stored.slot(node) is None else filters

    def _is_one_row(self, rows: FoundRows) -> bool:
        """Whether a lookup finds one row at most for each that it is made by."""
        key = result_key(self._graph[self._plan.slot(rows.slot).stream.node])
        return key is not None and set(key_paths(key)) <= {path[:1] for path in rows.found.mine}


def _behind_filters(graph: Graph, node: Node) -> tuple[Node, tuple[Fn, ...]]:
    """What is behind filters, and those of them that may be asked again: they give the same."""
    filters: list[Fn] = []
    for stream in first_inputs(graph, Endpoint(node.id)):
        node = graph[stream.node]
        if not (isinstance(node.cls, PerItem) and node.cls.gives is ItemEffect.SOME):
            break
        filters[:0] = functions_of(node.args)
    return node, tuple(fn for fn in filters if fn.pure and not fn.unrepeatable)


def _inputs_of_all(node: Node) -> Collection[int]:
    """The inputs of which a row is in, or was asked for, each row that a node gives."""
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


# What is compared with the least or the greatest value of a stored result: few of its rows.
#
# `greatest = totals -> aggregate(v=max("v"))` and `totals -> join(right=greatest, on="v")` look
# at all totals, as they are written. A range changes those of some keys. Of the others none
# becomes more or less, so that only those with the greatest value can matter: the rows of the
# keys that change and these are enough, for the greatest as for whoever has it. And whatever is
# looked up by the rows of the join is looked up by these.


ShownNames = Mapping[str, str]
"""Columns of a stream, by those of what it is a projection of."""


@dataclass(frozen=True, slots=True)
class _StoredResult:
    """A stream that is a stored result by key, or a projection of one."""

    result: Node
    names: ShownNames

    def column(self, shown: str) -> str | None:
        """The column of the result that a column of the stream is."""
        return next((own for own, name in self.names.items() if name == shown), None)


class ExtremesRead:
    """Which stored rows are looked at by those who want the least or greatest of them."""

    def __init__(self, plan: TickPlan, origins: NewRowOrigins) -> None:
        self._plan, self._graph, self._origins = plan, plan.graph, origins

    def of(self, node: Node, i: int) -> Lookups | None:
        """What an operator looks at of an input; None where it is no extreme of it, nor what has
        one, or not known.
        """
        if with_extremes(node.cls) is WithExtremes.VALUE:
            extremes = extremes_of(node.args)
            return None if extremes is None else self._looked_at(node.inputs[0], extremes.values())
        extreme = first_of(node.cls, node.args) or self._met(node, i)
        return None if extreme is None else self._looked_at(node.inputs[i], (extreme,))

    def all_rows(self, stream: Endpoint, fields: KnownFields) -> set[FieldsOf] | None:
        """The rows of which come all of a stream, who has an extreme, with these fields of its
        items; None where all are not known.
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
        """The extreme of an input that its items are compared with: they are to be equal."""
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
        """The rows with one of the extremes, beside those of the keys that change."""
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
        """What finds the rows of the keys that change; None where all may."""
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
        """The stored result by key that a stream is, all columns of the key among those shown."""
        node, names = self._through(stream)
        if with_extremes(node.cls) is not WithExtremes.STORED:
            return None
        slot = self._origins.stored.slot(node)
        if slot is None or slot.form is not Form.CHANGES or not self._origins.adds(node.id):
            return None
        key = _key(node)
        return _StoredResult(node, names) if key and {*key} <= names.keys() else None

    def _through(self, stream: Endpoint) -> tuple[Node, ShownNames]:
        """What a stream is a projection of, and the names of columns that stay."""
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
