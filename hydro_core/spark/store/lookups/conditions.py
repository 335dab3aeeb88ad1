"""Conditions that a lookup has for stored rows, on Arrow's columns and on statistics of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal as Number
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.functions.call import call_item
from hydro_core.functions.from_tree import function_of
from hydro_core.functions.tree import Const, Expr, Fn, Op, Param, Part, field_in
from hydro_core.plan.lookups import RowDemand
from hydro_core.plan.stored_rows import FieldPairs, Lookup, LookupBounds, LookupSource
from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.spark.store.schema import (
    Bools,
    Column,
    Int64s,
    Leaves,
    are_comparable,
    comparable,
    in_order,
    leaf_of,
    type_of,
)
from hydro_core.types.item import Decimal, FieldPath, ItemType, Row, Scalar, at, is_integer

# Rows at such a place count as between, so that some more are found. Of types that Arrow does not
# order as the language does, nothing is asked.


PlacedRows = tuple[Column, ItemType]
"""The rows that have the places, and their type."""


@dataclass(frozen=True, slots=True)
class _Side:
    """The first place of each key, or the last one."""

    orders: tuple[FieldPath, ...]
    """What stands at the place in the rows that are compared."""
    places: Sequence[Column]
    """The parts of it, a value for each key's number."""
    rising: bool
    """Whether rows with greater parts are within."""

    @staticmethod
    def of(
        orders: FieldPairs, item: ItemType, others: PlacedRows, keys: Int64s, *, rising: bool
    ) -> _Side | None:
        """The least parts of each key where greater ones are within, else the greatest.

        Returns:
            None where nothing is asked.
        """
        rows, of_rows = others
        known = all(are_comparable(type_of(item, a), type_of(of_rows, b)) for a, b in orders)
        if not orders or not known:
            return None
        parts = [part for _, path in orders for part in _parts(leaf_of(rows, of_rows, path))]
        names = [f"p{i}" for i in range(len(parts))]
        way = "ascending" if rising else "descending"
        by: Any = [("key", "ascending"), *((name, way) for name in names)]
        table = pa.table([pa.array(keys, pa.int64()), *parts], names=["key", *names])
        order: Any = pc.sort_indices(table, sort_keys=by)
        _, firsts = np.unique(keys[order.to_numpy()], return_index=True)
        first = order.take(pa.array(firsts, pa.int64()))
        return _Side(tuple(own for own, _ in orders), [p.take(first) for p in parts], rising)

    def keep(self, leaves: Leaves, keys: Int64s) -> Bools:
        """Which rows are within."""
        beyond, equal = np.zeros(len(keys), bool), np.ones(len(keys), bool)
        parts = [part for path in self.orders for part in _parts(leaves(path))]
        of_keys = pa.array(keys, pa.int64())
        compare: Any = pc.greater if self.rising else pc.less
        for part, place in zip(parts, self.places, strict=True):
            other = place.take(of_keys).cast(part.type)
            beyond |= equal & _mask(compare(part, other))
            # Of two nulls the part before says that both are.
            equal &= _mask(pc.equal(part, other)) | _mask(pc.is_null(part))
        return beyond | equal


class KeyBounds:
    """The first and the last place of each key."""

    def __init__(
        self, bounds: LookupBounds, item: ItemType, others: PlacedRows, keys: Int64s
    ) -> None:
        """Looks at the others.

        Args:
            bounds: what says where a row stands, and where the others' places stand.
            item: the type of the rows that are compared.
            others: those with the places.
            keys: the number of each one's key, from 0 on.
        """
        sides = ((bounds.first, not bounds.descending), (bounds.last, bounds.descending))
        found = (_Side.of(orders, item, others, keys, rising=up) for orders, up in sides)
        self._sides = [side for side in found if side is not None]

    def within(self, leaves: Leaves, keys: Int64s) -> Bools:
        """Which of some rows stand between the places of their keys.

        Args:
            leaves: gives of these rows what stands at a path.
            keys: the numbers of their keys.
        """
        found = np.ones(len(keys), bool)
        for side in self._sides:
            found &= side.keep(leaves, keys)
        return found


def _parts(column: Column) -> list[Column]:
    """Columns by which values go, one after the other: nulls are before all others."""
    return [column.is_valid().cast(pa.int8()), in_order(column)]


def _mask(column: Any) -> Bools:
    found: Bools = pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return found


# Of filters that compare columns with constants: which items may pass, not which do. An item that
# cannot be compared, null among them, may.


_ASKED = {
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "==": pc.equal,
    "!=": pc.not_equal,
}


def may_pass(fn: Fn, items: Column, item: ItemType) -> Column | None:
    """Which of the items may pass a filter; None where that is not asked by columns.

    Args:
        fn: a pure function of items.
        items: the items, as a column.
        item: their type.
    """
    if fn.tree is None or len(fn.params) != 1 or not isinstance(item, Row):
        return None
    try:
        found = _RowFilter(fn, items, item).of(fn.tree)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return None if found is None else pc.fill_null(found, pa.scalar(value=True))


class _RowFilter:
    """A filter over rows."""

    def __init__(self, fn: Fn, items: Column, item: Row) -> None:
        self._fn, self._items, self._item = fn, items, item

    def of(self, tree: Expr) -> Column | None:
        """Which rows a part may be true of, null of those that cannot be asked."""
        match tree:
            case Op("and" | "or" as op, values):
                parts = [self.of(value) for value in values]
                known = [part for part in parts if part is not None]
                if op == "or" and len(known) < len(parts):
                    return None
                joined: Any = pc.and_kleene if op == "and" else pc.or_kleene
                return reduce(joined, known) if known else None
            case Op(name, sides, family="comparison"):
                pairs = [
                    self._compared(left, op, right)
                    for op, (left, right) in zip(name.split(","), pairwise(sides), strict=True)
                ]
                known = [pair for pair in pairs if pair is not None]
                return reduce(pc.and_kleene, known) if known else None
            case _:
                return None

    def _compared(self, left: Expr, op: str, right: Expr) -> Column | None:
        if op not in _ASKED:
            return None
        one, other = self._side(left), self._side(right)
        if one is None or other is None or one[1] != other[1]:
            return None
        found: Column = _ASKED[op](one[0], other[0])
        if not isinstance(found, pa.Array):
            return None
        alone = isinstance(one[0], pa.Scalar) or isinstance(other[0], pa.Scalar)
        # Null equals no constant; where it is compared by size, the filter fails.
        return pc.fill_null(found, pa.scalar(op == "!=")) if op in ("==", "!=") and alone else found

    def _side(self, tree: Expr) -> tuple[Any, str] | None:
        """A column or a constant, and what it is: things of one kind are compared alike."""
        match tree:
            case Part(Param()):
                of = field_in(self._item, tree)
                kind = None if of is None else _kind_of(of.type)
                if of is None or kind is None:
                    return None
                return pc.struct_field(self._items, [of.place]), kind
            case Const() | Op("-x", (Const(),)) | Op(family="call"):
                return self._constant(tree)
            case _:
                return None

    def _constant(self, tree: Expr) -> tuple[Any, str] | None:
        if isinstance(tree, Op) and not all(isinstance(a, Const) for a in tree.args):
            return None
        try:
            value = call_item(function_of(tree, self._fn.params, like=self._fn), None)
        except Exception:  # noqa: BLE001 - whatever it raises, Spark's task tells it
            return None
        kinds = {int: "number", Number: "number", str: "text", date: "day"}
        kind = kinds.get(type(value))
        return None if kind is None else (pa.scalar(value), kind)


def _kind_of(item: ItemType) -> str | None:
    if is_integer(item) or isinstance(item, Decimal):
        return "number"
    return {"string": "text", "date": "day"}.get(item.name) if isinstance(item, Scalar) else None


# Fields are compared leaf by leaf, as the language compares keys: a null equals a null, a NaN a
# NaN, the two zeros are one. Of types that Arrow does not compare like that nothing is asked, so
# that more rows are found.


KnownItems = Mapping[LookupSource, tuple[Column, ItemType]]
"""Items and their type: those that arrive, by the inputs' names, and what is told from them."""


class MatchingItems:
    """Finds the items that agree with one of some others in all of some fields."""

    def __init__(
        self,
        item: ItemType,
        others: Column,
        of_others: ItemType,
        lookup: Lookup,
    ) -> None:
        """Looks at the others.

        Args:
            item: the type of the items that are found.
            others: the others, at least one, as a column.
            of_others: their type.
            lookup: the leaves of the items that are to equal those of the others.
        """
        self._steps: list[tuple[FieldPath, Column, Int64s]] = []
        values = {
            mine: comparable(leaf_of(others, of_others, theirs))
            for mine, theirs in lookup.fields
            if are_comparable(at(item, mine), type_of(of_others, theirs))
        }
        self.values: Mapping[FieldPath, Column] = values
        """What the fields of an item are to equal, by these: a row of each column."""
        distinct = {path: column.unique() for path, column in values.items()}
        ids = np.zeros(len(others), dtype=np.int64)
        # Of many values most items have none, so little is left for the fields after it.
        for path in sorted(values, key=lambda path: -len(distinct[path])):
            codes = _codes(values[path], distinct[path])
            # A number for each combination of the fields so far.
            known, ids = np.unique(ids * len(distinct[path]) + codes, return_inverse=True)
            self._steps.append((path, distinct[path], known))
        self._bounds = None
        if lookup.bounds is not None:
            self._bounds = KeyBounds(lookup.bounds, item, (others, of_others), ids)

    def places(self, leaves: Leaves, count: int) -> Int64s:
        """The places of the items that are found, in their order.

        Args:
            leaves: gives of all items what stands at a path; asked while some are left.
            count: how many items there are.
        """
        found = np.arange(count)
        ids = np.zeros(count, dtype=np.int64)
        for path, distinct, known in self._steps:
            if not len(found):
                break
            leaf = leaves(path)
            column = comparable(leaf if len(found) == count else leaf.take(pa.array(found)))
            # Most have none of the values: whether is asked of all, and which one of the others.
            there: Column = pc.is_in(column, value_set=distinct)
            hits = np.flatnonzero(there.to_numpy(zero_copy_only=False))
            codes = _codes(column.take(pa.array(hits)), distinct)
            combined = ids[hits] * len(distinct) + codes
            ids = np.searchsorted(known, combined).clip(max=len(known) - 1)
            agree = known[ids] == combined
            found, ids = found[hits[agree]], ids[agree]
        if self._bounds is None or not len(found):
            return found
        return found[self._bounds.within(lambda path: leaves(path).take(pa.array(found)), ids)]


class MatchedRows:
    """The stored rows of a slot that a range can meet."""

    def __init__(
        self, needed: RowDemand, item: ItemType, known: KnownItems, ticks: tuple[int, int]
    ) -> None:
        """Looks at what arrives, and at what was found before.

        Args:
            needed: which rows these are.
            item: the type of their items.
            known: what arrives at the inputs, and all that is told from it.
            ticks: the first and the last tick whose rows may be met.
        """
        asked = [(known[one.by], one) for one in needed.found]
        self.found = [
            MatchingItems(item, *batch, lookup) for batch, lookup in asked if len(batch[0])
        ]
        """What finds them: each of these some."""
        self.item = item
        """The type of their items."""
        self._first, self._last = ticks
        self._whole = needed.last_tick

    @property
    def whole_tick(self) -> int | None:
        return self._last if self._whole else None

    @property
    def ticks(self) -> tuple[int, int] | None:
        """The first and the last tick of which rows may be found; None where none are."""
        if self.found:
            return self._first, self._last
        return (self._last, self._last) if self._whole else None

    def of(self, rows: pa.Table) -> pa.Table:
        """Those of the rows (item, t, …) that are met."""
        items = rows[ITEM].combine_chunks()
        places = self.places(lambda path: leaf_of(items, self.item, path), rows[TICK].to_numpy())
        return rows.take(places)

    def places(self, leaves: Leaves, ticks: Int64s) -> Int64s:
        """The places of the rows that are met, in their order.

        Args:
            leaves: gives of all rows' items what stands at a path.
            ticks: the rows' ticks.
        """
        met = ticks == self._last if self._whole else np.zeros(len(ticks), dtype=bool)
        for one in self.found:
            met[one.places(leaves, len(ticks))] = True
        return np.flatnonzero(met & (ticks >= self._first) & (ticks <= self._last))


def agreeing_items(
    items: Column, item: ItemType, lookups: Iterable[Lookup], known: KnownItems
) -> tuple[Column, ItemType]:
    """Those of some items that a lookup finds, and their type.

    Args:
        items: the items, as a column.
        item: their type.
        lookups: what they are to agree with, each in one of these ways.
        known: the rows by which these look up.
    """
    there = np.zeros(len(items), dtype=bool)
    for one in lookups:
        others, of_others = known[one.by]
        if len(others):
            agreeing = MatchingItems(item, others, of_others, one)
            there[agreeing.places(lambda path: leaf_of(items, item, path), len(items))] = True
    return items.take(pa.array(np.flatnonzero(there))), item


def _codes(column: Column, distinct: Column) -> Int64s:
    """Where among distinct values each value of a column is; -1 where it is not."""
    places: Column = pc.index_in(column, value_set=distinct)
    found: Int64s = places.fill_null(-1).to_numpy(zero_copy_only=False).astype("int64")
    return found
