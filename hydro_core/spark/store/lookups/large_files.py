"""Rows that are met in files which are too large to be held: their keys first, then the rows.

What is compared is held, which is little of what the files have. Of all else only those row groups
are read in which a row is met; so the files of state are written in small ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from hydro_core.files.parquet import files_as_dataset
from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.spark.store.cancelled import without_cancelled
from hydro_core.spark.store.lookups.agreeing import MatchedRows
from hydro_core.spark.store.row_cache import RowCache
from hydro_core.spark.store.values import Int64s, places_of
from hydro_core.storage.arrow import name_of
from hydro_core.storage.remote import DataPlace
from hydro_core.types.item import FieldPath, ItemType

_SEARCHED_AT_ONCE = 1 << 20
"""So many rows of a table are searched at once."""


def met_in(
    files: Sequence[DataPlace],
    schema: pa.Schema,
    met: MatchedRows,
    held: RowCache,
    *,
    summed: bool = False,
) -> Iterator[pa.Table]:
    """The rows (item, t, …) of files of a table that are met, held in memory where they fit.

    Args:
        files: the files.
        schema: their columns.
        met: which rows are met.
        held: what holds rows, or the columns that are compared.
        summed: whether changes that cancel out within a file may be left out.
    """
    named = {name_of(file): file for file in files}
    stored = files_as_dataset(files, schema)
    some = without_cancelled if summed else None
    rows = held.rows(named.__getitem__, stored, schema.names, some)
    if rows is stored:
        yield from met_in_files(named, stored, met, held)
        return
    for batch in rows.to_batches(batch_size=_SEARCHED_AT_ONCE):
        yield met.of(pa.table(batch))


def met_in_files(
    named: Mapping[str, DataPlace], files: ds.Dataset, met: MatchedRows, held: RowCache
) -> Iterator[pa.Table]:
    """The rows (item, t, …) that are met, of each file that has some.

    Args:
        named: the files by the names that Arrow has for them.
        files: the table, as Arrow reads its files.
        met: which rows are met.
        held: what holds the columns that are compared.
    """
    schema = files.schema
    fragments: list[Any] = list(files.get_fragments())
    for fragment in fragments:
        file = named[fragment.path]

        def leaf(path: FieldPath, file: DataPlace = file) -> pa.Array[Any]:
            return held.column(file, *stored_leaf(schema, met.item, path))

        ticks = held.column(file, (TICK,), schema.field(TICK).type).to_numpy()
        places = met.places(leaf, ticks)
        if len(places):
            yield _at(fragment, schema, places)


def stored_leaf(
    schema: pa.Schema, item: ItemType, path: FieldPath
) -> tuple[tuple[str, ...], pa.DataType]:
    """The names by which Arrow knows a leaf of the column `item`, and its type."""
    names, of = [ITEM], schema.field(ITEM).type
    for place in places_of(item, path):
        field = of.field(place)
        names.append(field.name)
        of = field.type
    return tuple(names), of


def _at(fragment: Any, schema: pa.Schema, places: Int64s) -> pa.Table:
    """The rows of a file at these places, which are in their order."""
    ends = np.cumsum([group.num_rows for group in fragment.row_groups])
    groups = np.searchsorted(ends, places, side="right")
    read = np.unique(groups)
    rows: pa.Table = fragment.subset(row_group_ids=read.tolist()).to_table(schema=schema)
    sizes = np.diff(ends, prepend=0)[read]
    # Where each group that is read begins, less where it begins in the file.
    moved = (np.cumsum(sizes) - sizes) - (ends[read] - sizes)
    return rows.take(places + moved[np.searchsorted(read, groups)])
