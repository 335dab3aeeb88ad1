"""The numbers before those of stored rows of a key: by these the rows before them are found."""

from __future__ import annotations

import pyarrow as pa

from hydro_core.plan.found_rows import RowsBefore
from hydro_core.spark.frames.column_names import COUNT, ITEM
from hydro_core.spark.store.snapshots import groups
from hydro_core.spark.store.values import Column, leaf_of
from hydro_core.types.item import LONG, ItemType, Tuple, at


def rows_before(before: RowsBefore, log: pa.Table, item: ItemType) -> tuple[Column, ItemType]:
    """Pairs of a number and a stored row, and their type.

    Args:
        before: which numbers these are.
        log: changes of stored rows (item, n, …) with all those of the same items.
        item: the type of the items.
    """
    import numpy as np

    of = Tuple((LONG, item))
    items, known = groups(log, [(ITEM, item)])
    counts = np.zeros(len(known), np.int64)
    np.add.at(counts, items, log[COUNT].to_numpy())
    there = pa.array(known[counts > 0], pa.int64())
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
