"""The stored rows with the least or the greatest value of a leaf, of those whose keys stay.

A state is a log: of what came with a great value, most may have gone since. So the first rows by
the leaf are taken, twice as many again and again, until one of them is there and none that was not
taken can come before it. Whether a row is there, all changes of its key tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.plan.lookups import RowDemand
from hydro_core.plan.stored_rows import ExtremeRows, Lookup
from hydro_core.spark.frames.column_names import COUNT, ITEM, TICK
from hydro_core.spark.store.lookups.agreeing import KnownItems, MatchedRows
from hydro_core.spark.store.snapshots import totals
from hydro_core.spark.store.values import Column, Int64s, in_order, leaf_of
from hydro_core.types.item import ItemType

FIRST_TAKEN = 64
MOST_TAKEN = 1 << 15
"""Of so many rows none is there: the state is read as a whole."""


@dataclass(frozen=True, slots=True)
class LeadingRows:
    """Rows of a state that came, and come first by a leaf."""

    items: Column
    beyond: Column
    """Of each part from which not all were taken, the last value that was."""


TakeLeading = Callable[[ExtremeRows, int], LeadingRows | None]
"""So many rows of each part of a slot; None where they cannot be told."""
SearchKeys = Callable[[RowDemand, KnownItems], "pa.Table | None"]
"""The rows (item, t, n) of a slot that are met; None where it is not searched."""


def extreme_items(
    rows: ExtremeRows,
    item: ItemType,
    take: TakeLeading,
    search: SearchKeys,
    changing: MatchedRows,
) -> Column | None:
    """The items of rows that are there and come first; None where these are not known.

    Args:
        rows: which rows.
        item: the type of the slot's items.
        take: gives the first rows that came.
        search: finds all changes of keys.
        changing: the rows of the keys that change, which do not count.
    """
    key = tuple((path, path) for path in rows.key)
    needed = RowDemand(frozenset([Lookup(rows, key)]))
    count = max(FIRST_TAKEN, 2 * rows.count)
    while count <= MOST_TAKEN:
        taken = take(rows, count)
        if taken is None:
            return None
        if len(taken.items):
            log = search(needed, {rows: (taken.items, item)})
            if log is None:
                return None
            there = _others(_there(log, item), item, changing)
            first = _first(there, item, rows, taken.beyond)
            if first is not None:
                return first
        if not len(taken.beyond):
            return None  # there is none, or no value that counts
        count *= 8
    return None


def leading(items: Column, item: ItemType, rows: ExtremeRows, count: int) -> LeadingRows:
    """The first of some items, and the last value of them where there are more."""
    values = in_order(leaf_of(items, item, rows.leaf))
    order = places_in_order(values)
    taken = order[-count:] if rows.greatest else order[:count]
    found = items.take(pa.array(taken))
    last = taken[:1] if rows.greatest else taken[-1:]
    beyond = last if len(order) > count else last[:0]
    return LeadingRows(found, values.take(pa.array(beyond)))


def places_in_order(values: Column) -> Int64s:
    """The places of the values that are not null, from the least to the greatest."""
    places: Column = pc.sort_indices(values)
    found: Int64s = places.to_numpy().astype("int64")[: len(values) - values.null_count]
    return found


def _there(log: pa.Table, item: ItemType) -> Column:
    """The different items of which copies are left."""
    firsts, counts = totals(log, [(ITEM, item)], log[COUNT].to_numpy())
    return log[ITEM].combine_chunks().take(pa.array(firsts[counts > 0], pa.int64()))


def _others(items: Column, item: ItemType, changing: MatchedRows) -> Column:
    """The items that are none of those whose keys change."""
    others = np.ones(len(items), dtype=bool)
    for one in changing.found:
        others[one.places(lambda path: leaf_of(items, item, path), len(items))] = False
    return items.filter(pa.array(others))


def _first(items: Column, item: ItemType, rows: ExtremeRows, beyond: Column) -> Column | None:
    """The items with the first values, of equal ones all; None where others may be among them."""
    values = in_order(leaf_of(items, item, rows.leaf))
    order = places_in_order(values)
    if len(order) < rows.count:
        return None
    last: Any = values[int(order[-rows.count] if rows.greatest else order[rows.count - 1])]
    compare: Any = pc.greater_equal if rows.greatest else pc.less_equal
    if pc.any(compare(beyond, last)).as_py():
        return None
    return items.filter(compare(values, last).fill_null(False))


def came(log: pa.Table, first: int, last: int) -> Column:
    """The items of the rows of a log that came in some ticks."""
    ticks, counts = log[TICK].to_numpy(), log[COUNT].to_numpy()
    there = (counts > 0) & (ticks >= first) & (ticks <= last)
    return log[ITEM].combine_chunks().filter(pa.array(there))
