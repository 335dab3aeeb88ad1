"""Between which places the left rows of an as-of join stand that may find a new right row."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence

import pyarrow as pa

from hydro_core.plan.found_rows import FIRST, LAST, ROW, RowsUpToNext
from hydro_core.spark.store.between import place_numbers
from hydro_core.spark.store.values import Column, leaf_of
from hydro_core.types.item import LONG, Field, FieldPath, ItemType, Row
from hydro_core.types.values import Struct, canonical

COMPARED = 20_000
"""Of more rows all places are taken: comparing one takes some microseconds."""
_LEAST, _MOST = -(2**63), 2**63 - 1


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
    items = items.filter(leaf_of(items, item, of_new).is_valid()) if len(items) else items
    bounds: Sequence[tuple[int, int]] = [(_LEAST, _MOST)] * len(items)
    if stored is not None and len(items) and len(items) + len(stored[0]) <= COMPARED:
        known = defaultdict[Hashable, list[int]](list)
        for key, place in _places(*stored, [own for own, _ in rows.keys], of_stored):
            known[key].append(place)
        for of_key in known.values():
            of_key.sort()
        coming = _places(items, item, [new for _, new in rows.keys], of_new)
        bounds = [_bounds(known.get(key, []), place, rows.forward) for key, place in coming]
    parts = [pa.array([b[i] for b in bounds], pa.int64()) for i in (0, 1)]
    found = pa.StructArray.from_arrays([_column(items), *parts], [ROW, FIRST, LAST])
    return found, Row((Field(ROW, item), Field(FIRST, LONG), Field(LAST, LONG)))


def _bounds(stored: list[int], place: int, forward: bool) -> tuple[int, int]:
    """From the row on to before the next one; backwards where the left rows are before it."""
    if forward:
        before = bisect_left(stored, place)
        return (stored[before - 1] + 1 if before else _LEAST), place
    behind = bisect_right(stored, place)
    return place, (stored[behind] - 1 if behind < len(stored) else _MOST)


def _places(
    items: Column, item: ItemType, keys: Sequence[FieldPath], place: FieldPath
) -> Iterator[tuple[Hashable, int]]:
    """The key of each item that has a place, and the place."""
    if not len(items):
        return
    leaf = leaf_of(items, item, place)
    parts = zip(*(leaf_of(items, item, path).to_pylist() for path in keys), strict=True)
    for key, number, there in zip(
        parts, place_numbers(leaf).tolist(), leaf.is_valid().to_pylist(), strict=True
    ):
        if there:
            yield canonical(Struct(key)), number


def _column(items: Column) -> Column:
    """The items as one array."""
    return items.combine_chunks() if isinstance(items, pa.ChunkedArray) else items
