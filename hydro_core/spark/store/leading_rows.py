"""The rows of a table of state that come first by a leaf: of large files by their lookup files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from hydro_core.files.parquet import parquet_format
from hydro_core.plan.found_rows import ExtremeRows
from hydro_core.spark.frames.column_names import ITEM
from hydro_core.spark.store.extremes import (
    Leading,
    came,
    in_order,
    leading,
    places_in_order,
)
from hydro_core.spark.store.held import HELD
from hydro_core.spark.store.large_files import stored_leaf
from hydro_core.spark.store.lookup_files import LookupFiles
from hydro_core.spark.store.table import StoredTable
from hydro_core.spark.store.values import Column, leaf_of
from hydro_core.types.item import ItemType


def leading_rows(
    table: StoredTable,
    lookup_files: LookupFiles,
    wanted: tuple[ExtremeRows, ItemType],
    count: int,
    last: int,
) -> Leading | None:
    """The first rows of a log that came.

    Args:
        table: the log.
        lookup_files: those of its pipeline.
        wanted: by what they are ordered, and the type of the items.
        count: so many of each large file, and of all others together.
        last: the last tick that counts.

    Returns:
        None where too much would be gone through, or something cannot be read: whoever reads all
        of it says what.
    """
    rows, item = wanted
    schema = table.spec.arrow_schema
    files = [file for file in table.files() if file.rows != 0 and file.may_hold(0, last)]
    leaf = stored_leaf(schema, item, rows.leaf)
    ends = (0, count) if rows.greatest else (count, 0)
    looked_up, rest = lookup_files.leading(files, schema, leaf, ends)
    parts = [
        Leading(came(part, 0, last), _last_value(part, wanted)[: int(more)])
        for part, more in looked_up
    ]
    try:
        paths = [str(file.path) for file in rest]
        stored = ds.dataset(paths, schema=schema, format=parquet_format())
        held = HELD.rows(Path(str(table.path)).joinpath, stored, schema.names)
        if held is stored and paths:
            return None
        parts.append(leading(came(held.to_table(), 0, last), item, rows, count))
    except (pa.ArrowInvalid, OSError):
        return None
    items = pa.concat_arrays([part.items for part in parts])
    return Leading(items, pa.concat_arrays([part.beyond for part in parts]))


def _last_value(part: pa.Table, wanted: tuple[ExtremeRows, ItemType]) -> Column:
    """The value that comes last of those of some rows, in their order; of none nothing."""
    rows, item = wanted
    values = in_order(leaf_of(part[ITEM].combine_chunks(), item, rows.leaf))
    order = places_in_order(values)
    return values.take(pa.array(order[:1] if rows.greatest else order[-1:]))
