"""Which rows have the fields of rows in another table: by Arrow, before Spark sees any of them.

Fields are compared leaf by leaf, as the language compares keys: a null equals a null, a NaN a NaN,
the two zeros are one, and integers of all sizes are numbers. Of types that Arrow does not compare
like that, arrays above all, nothing is asked, so that more rows are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.plan.lookups import RowDemand
from hydro_core.plan.stored_rows import Lookup, LookupSource
from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.spark.store.lookups.bounds import KeyBounds
from hydro_core.spark.store.values import (
    Column,
    Int64s,
    Leaves,
    are_comparable,
    comparable,
    leaf_of,
    type_of,
)
from hydro_core.types.item import FieldPath, ItemType, at

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
