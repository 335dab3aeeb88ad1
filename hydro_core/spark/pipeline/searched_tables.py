"""The tables of a pipeline's state, as a range looks rows up in them: of large files by what stands
beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from hydro_core.files.parquet import parquet_format
from hydro_core.plan.found_rows import ExtremeRows
from hydro_core.plan.tick_plan import StateSlot
from hydro_core.spark.frames.column_names import ITEM
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.lookups.agreeing import Met
from hydro_core.spark.store.lookups.extremes import (
    Leading,
    came,
    leading,
    places_in_order,
)
from hydro_core.spark.store.lookups.large_files import stored_leaf
from hydro_core.spark.store.lookups.lookup_files import LookupFiles
from hydro_core.spark.store.row_cache import ROW_CACHE
from hydro_core.spark.store.schema import TableSpec
from hydro_core.spark.store.store import Store
from hydro_core.spark.store.values import Column, in_order, leaf_of
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
        held = ROW_CACHE.rows(Path(str(table.path)).joinpath, stored, schema.names)
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


SEARCHED_ROWS = 10_000_000
"""State of which more rows are gone through is left to Spark: to search them here would take longer
than a job does."""


@dataclass(frozen=True, slots=True)
class SearchedTables:
    """The state of a pipeline for a range that starts at a tick."""

    store: Store
    specs: Mapping[str, TableSpec]
    first: int

    def ticks(self, slot: StateSlot) -> tuple[int, int]:
        """The first and the last tick of a slot that the range reads."""
        return slot.ticks_read(self.first)

    def met(self, slot: StateSlot, met: Met) -> pa.Table | None:
        """The stored rows of a slot that are met; None where too many would be looked at."""
        name = self.specs[slot.id].name
        many = self.store.lookup_files.gone_through(self.store.tables[name])
        return self.store.met(name, met) if many <= SEARCHED_ROWS else None

    def lead(self, slot: StateSlot, rows: ExtremeRows, count: int) -> Leading | None:
        """So many rows of a slot that came, the first by a leaf; None where they cannot be told."""
        table = self.store.tables[self.specs[slot.id].name]
        files = self.store.lookup_files
        return leading_rows(table, files, (rows, slot.item), count, self.first - 1)
