"""What is compared with the least or the greatest value of a stored result: few of its rows.

`greatest = totals -> aggregate(v=max("v"))` and `totals -> join(right=greatest, on="v")` look at
all totals, as they are written. A range changes those of some keys. Of the others none becomes more
or less, so that only those with the greatest value can matter: the rows of the keys that change and
these are enough, for the greatest as for whoever has it. And whatever is looked up by the rows of
the join is looked up by these.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hydro_core.catalog.classes import Matching, Projection
from hydro_core.catalog.extremes import (
    GIVE_FEW,
    ExtremeValue,
    WithExtremes,
    extremes_of,
    first_of,
    with_extremes,
)
from hydro_core.catalog.forms import Form
from hydro_core.ir.graph import Endpoint, Node
from hydro_core.ir.walk import first_inputs
from hydro_core.plan.found_rows import ExtremeRows, Lookup, Lookups
from hydro_core.plan.origins import NewRowOrigins
from hydro_core.plan.stored_rows import FieldsOf, KnownFields, keys_of_pairs, united
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.plan.versions import key_paths, result_key
from hydro_core.types.item import Decimal, Row, Scalar

ShownNames = Mapping[str, str]
"""Columns of a stream, by those of what it is a projection of."""


@dataclass(frozen=True, slots=True)
class _Stored:
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
        if isinstance(node.cls, Matching) and i == 1:
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

    def _stored(self, stream: Endpoint) -> _Stored | None:
        """The stored result by key that a stream is, all columns of the key among those shown."""
        node, names = self._through(stream)
        if with_extremes(node.cls) is not WithExtremes.STORED:
            return None
        slot = self._origins.stored.slot(node)
        if slot is None or slot.form is not Form.CHANGES or not self._origins.adds(node.id):
            return None
        key = _key(node)
        return _Stored(node, names) if key and {*key} <= names.keys() else None

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
