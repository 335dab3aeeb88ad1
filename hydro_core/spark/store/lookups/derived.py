"""Rows by which stored ones are looked up, told from those that arrive and those that are found.

Spark decides what a program gives; here fewer rows are looked up. So it does no harm where a
filter is not asked or fails, where a row that is equal to the last one of its key counts as late,
or where nobody tells which row is the next one: then more rows are found.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hydro_core.functions.call import call_item
from hydro_core.functions.tree import Fn
from hydro_core.plan.stored_rows import (
    FIRST,
    LAST,
    ROW,
    FieldPairs,
    Lookup,
    LookupBounds,
    RowsBefore,
    RowsSinceLate,
    RowsUpToNext,
)
from hydro_core.spark.frames.column_names import COUNT, ITEM
from hydro_core.spark.store.lookups.agreeing import MatchingItems
from hydro_core.spark.store.lookups.passing_columns import may_pass
from hydro_core.spark.store.snapshots import groups, totals
from hydro_core.spark.store.values import Column, leaf_of
from hydro_core.types.arrow import arrow_type, from_arrow
from hydro_core.types.item import (
    DATE,
    LONG,
    Field,
    FieldPath,
    ItemType,
    Row,
    Tuple,
    at,
    is_integer,
)
from hydro_core.types.values import Struct, canonical

COMPARED = 20_000
"""Of more rows all places are taken: comparing one takes some microseconds."""
_ALL_PLACES = (-(1 << 63), (1 << 63) - 1)

ASKED = 20_000
"""Of more rows all are taken where they are asked one by one: it takes some microseconds each."""


def passing_items(filters: Iterable[Fn], items: Column, item: ItemType) -> tuple[Column, ItemType]:
    """The items that may pass all filters, and their type.

    Args:
        filters: pure functions of items.
        items: the items, as a column; one without items may have any type.
        item: their type.
    """
    asked: list[Fn] = []
    for fn in filters if len(items) else ():
        passing = may_pass(fn, items, item)
        if passing is None:
            asked.append(fn)
        else:
            items = items.filter(passing)
    if not len(items) or len(items) > ASKED or not asked:
        return items, item
    places = [i for i, x in enumerate(from_arrow(items, item)) if _may_pass(asked, x)]
    return items.take(pa.array(places, pa.int64())), item


def _may_pass(filters: Sequence[Fn], item: Any) -> bool:
    for fn in filters:
        try:
            if not call_item(fn, item):
                return False
        except Exception:  # noqa: BLE001 - whatever the function raises, Spark's task tells it
            return True
    return True


def late_items(
    late: RowsSinceLate, items: Column, item: ItemType, tails: Column, of_tails: ItemType
) -> tuple[Column, ItemType]:
    """Those of some items that come late, and their type.

    Args:
        late: what they are compared by.
        items: the items, as a column.
        item: their type.
        tails: the last stored rows of keys.
        of_tails: their type.
    """
    if not len(tails) or not len(items):
        return items.slice(0, 0), item
    up_to = LookupBounds(last=_turned(late.orders), descending=late.descending)
    of_their_keys = MatchingItems(item, tails, of_tails, Lookup("tails", _turned(late.keys), up_to))
    places = of_their_keys.places(lambda path: leaf_of(items, item, path), len(items))
    return items.take(pa.array(places, pa.int64())), item


def _turned(pairs: FieldPairs) -> FieldPairs:
    return tuple((theirs, own) for own, theirs in pairs)


def rows_before(before: RowsBefore, log: pa.Table, item: ItemType) -> tuple[Column, ItemType]:
    """Pairs of a number and a stored row, and their type.

    Args:
        before: which numbers these are.
        log: changes of stored rows (item, n, …) with all those of the same items.
        item: the type of the items.
    """
    of = Tuple((LONG, item))
    firsts, counts = totals(log, [(ITEM, item)], log[COUNT].to_numpy())
    there = pa.array(firsts[counts > 0], pa.int64())
    rows: Column = log.take(there)[ITEM].combine_chunks()
    leaves = {f"k{i}": leaf_of(rows, item, path) for i, path in enumerate(before.keys)}
    types = [(f"k{i}", at(item, path) or item) for i, path in enumerate(before.keys)]
    keys, _ = groups(pa.table(leaves), types)
    numbers = leaf_of(rows, item, before.number).to_numpy(zero_copy_only=False)
    by_number = np.lexsort((numbers, keys))
    _, firsts = np.unique(keys[by_number], return_index=True)
    least = by_number[firsts]
    places = np.repeat(least, before.count)
    back = np.tile(np.arange(1, before.count + 1), len(least))
    wanted = numbers[places] - back
    is_one = wanted > 0
    taken = rows.take(pa.array(places[is_one], pa.int64()))
    numbered = pa.array(wanted[is_one], pa.int64())
    return pa.StructArray.from_arrays([numbered, taken], names=["_1", "_2"]), of


def up_to_next(
    rows: RowsUpToNext, items: Column, item: ItemType, stored: tuple[Column, ItemType] | None
) -> tuple[Column, ItemType]:
    """The right rows with the first and the last place of the left rows that may find them.

    Args:
        rows: what they are compared by.
        items: the rows that come, as a column.
        item: their type.
        stored: the stored rows of their keys, and their type; None where they are not known.
    """
    of_stored, of_new = rows.place
    told = at(item, of_new)
    # A date, a timestamp, or a number.
    of = LONG if told is None or is_integer(told) else told
    items = items.filter(leaf_of(items, item, of_new).is_valid()) if len(items) else items
    bounds: Sequence[tuple[int, int]] = [_ALL_PLACES] * len(items)
    if stored is not None and len(items) and len(items) + len(stored[0]) <= COMPARED:
        known = defaultdict[Hashable, list[int]](list)
        for key, place in _places(*stored, [own for own, _ in rows.keys], of_stored):
            known[key].append(place)
        for of_key in known.values():
            of_key.sort()
        coming = _places(items, item, [new for _, new in rows.keys], of_new)
        bounds = [_bounds(known.get(key, []), place, rows.forward) for key, place in coming]
    parts = [_place_column([one[i] for one in bounds], of) for i in (0, 1)]
    whole = items.combine_chunks() if isinstance(items, pa.ChunkedArray) else items
    found = pa.StructArray.from_arrays([whole, *parts], [ROW, FIRST, LAST])
    return found, Row((Field(ROW, item), Field(FIRST, of), Field(LAST, of)))


def _bounds(stored: list[int], place: int, forward: bool) -> tuple[int, int]:
    """From the row on to before the next one; backwards where the left rows are before it."""
    least, most = _ALL_PLACES
    if forward:
        before = bisect_left(stored, place)
        return (stored[before - 1] + 1 if before else least), place
    behind = bisect_right(stored, place)
    return place, (stored[behind] - 1 if behind < len(stored) else most)


def _places(
    items: Column, item: ItemType, keys: Sequence[FieldPath], place: FieldPath
) -> Iterator[tuple[Hashable, int]]:
    """The key of each item that has a place, and the place as a number."""
    if not len(items):
        return
    of_items = leaf_of(items, item, place)
    numbers = of_items.cast(_numbers_of(at(item, place))).cast(pa.int64()).to_pylist()
    parts = zip(*(leaf_of(items, item, path).to_pylist() for path in keys), strict=True)
    for key, number in zip(parts, numbers, strict=True):
        if number is not None:
            yield canonical(Struct(key)), number


def _numbers_of(of: ItemType | None) -> pa.DataType:
    return pa.int32() if of == DATE else pa.int64()


def _place_column(numbers: Sequence[int], of: ItemType) -> Column:
    stored = _numbers_of(of)
    least, most = -(1 << stored.bit_width - 1), (1 << stored.bit_width - 1) - 1
    fit = [min(max(number, least), most) for number in numbers]
    return pa.array(fit, stored).cast(arrow_type(of))
