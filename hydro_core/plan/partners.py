"""Which rows find a partner in a join: others never get beyond it, so nothing is looked up by them.

A line's part is one stored row. Where the program joins lines with the parts of one brand alone,
the lines of a batch are asked for that first; what else there is of a part, all its earlier lines
above all, is looked up by the few that have such a part. A partner may also come in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import assert_never

from hydro_core.catalog.classes import (
    AsOf,
    Ends,
    Matching,
    OverTime,
    PerItem,
    PerKey,
    PerPosition,
    Product,
    Projection,
    Sum,
)
from hydro_core.catalog.spec import functions_of
from hydro_core.catalog.variants import Gives, Meets
from hydro_core.functions.fn import Fn
from hydro_core.ir.graph import Endpoint, Node, NodeId
from hydro_core.plan.found_rows import FoundRows, Lookup, LookupSource, MeetingRows, PassingRows
from hydro_core.plan.stored_rows import FieldsOf, KnownFields, StoredRows, sides
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.plan.versions import key_paths, result_key
from hydro_core.types.item import FieldPath

NewRows = Callable[[Endpoint, KnownFields], set[FieldsOf] | None]
"""The rows with which comes what is new in a stream; None where not all is known."""


class Partners:
    """What the joins of a plan let pass of rows by which stored ones are looked up."""

    def __init__(self, plan: TickPlan, stored: StoredRows, new: NewRows) -> None:
        self._plan, self._graph, self._stored, self._new = plan, plan.graph, stored, new
        self._few: dict[NodeId, bool] = {}

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
        """Those of some rows that agree with a row of a stream in some fields."""
        node = self._graph[stream.node]
        if not self._are_few(node):
            return by
        filters = self._filters(node)
        if filters is not None:
            return self._agreeing_stored(by, known, (stream, fields), filters)
        for i in _inputs_of_all(node):
            theirs = self._stored.through(node, i, fields)
            by = self._agreeing(by, known, node.inputs[i], theirs)
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
        filters: list[Fn] = []
        while isinstance(node.cls, PerItem) and node.cls.gives is Gives.SOME:
            filters[:0] = functions_of(node.args)
            node = self._graph[node.inputs[0].node]
        if self._stored.slot(node) is None:
            return None
        # Only what is the same each time may be asked again.
        return tuple(fn for fn in filters if fn.pure and not fn.unrepeatable)

    def _is_one_row(self, rows: FoundRows) -> bool:
        """Whether a lookup finds one row at most for each that it is made by."""
        key = result_key(self._graph[self._plan.slot(rows.slot).stream.node])
        return key is not None and set(key_paths(key)) <= {path[:1] for path in rows.found.mine}


def _inputs_of_all(node: Node) -> Collection[int]:
    """The inputs of which a row is in, or was asked for, each row that a node gives."""
    match cls := node.cls:
        case PerItem() | Projection():
            return (0,)
        case Matching():
            return (0, 1) if cls.wanted else (0,)
        case AsOf():
            return (0,)
        case Product():
            return [i for i in (0, 1) if cls.meets is Meets.KEY and 1 - i not in cls.keeps]
        case Ends() | Sum() | PerKey() | PerPosition() | OverTime():
            return ()
        case _:
            assert_never(cls)
