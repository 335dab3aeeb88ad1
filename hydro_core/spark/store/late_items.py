"""Which rows of a tick come late: not after all that is stored of their keys.

Spark decides; here fewer rows are looked up. So a row that is equal to the last one in its order
counts as late, and where many rows come all of them do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hydro_core.plan.found_rows import RowsSinceLate
from hydro_core.spark.store.values import leaf_of
from hydro_core.types.item import FieldPath, ItemType
from hydro_core.types.values import Struct, canonical, sort_key

if TYPE_CHECKING:
    from hydro_core.spark.store.values import Column

COMPARED = 20_000
"""Of more rows, or more stored ones, all are taken: comparing one takes some microseconds."""


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
    if len(items) + len(tails) > COMPARED:
        return items, item
    keys, orders = ([own for own, _ in pairs] for pairs in (late.keys, late.orders))
    last: dict[Hashable, Any] = {}
    for key, place in _places(tails, of_tails, keys, orders):
        if key not in last or (place < last[key] if late.descending else place > last[key]):
            last[key] = place
    keys, orders = ([theirs for _, theirs in pairs] for pairs in (late.keys, late.orders))
    there = [
        i
        for i, (key, place) in enumerate(_places(items, item, keys, orders))
        if key in last and (place >= last[key] if late.descending else place <= last[key])
    ]
    return items.take(pa.array(there, pa.int64())), item


def _places(
    items: Column, item: ItemType, keys: Iterable[FieldPath], orders: Iterable[FieldPath]
) -> Iterable[tuple[Hashable, Any]]:
    """The key of each item, and what it is ordered by."""
    if not len(items):
        return
    of_keys = [leaf_of(items, item, path).to_pylist() for path in keys]
    of_orders = [leaf_of(items, item, path).to_pylist() for path in orders]
    rows = zip(zip(*of_keys, strict=True), zip(*of_orders, strict=True), strict=True)
    for key, order in rows:
        yield canonical(Struct(key)), [sort_key(part) for part in order]
