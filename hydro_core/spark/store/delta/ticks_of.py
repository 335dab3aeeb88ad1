"""What is known of the ticks of a stored table's rows: their column alone is read."""

from __future__ import annotations

import pyarrow.compute as pc
import pyarrow.dataset as ds

from hydro_core.files.parquet import files_as_dataset
from hydro_core.spark.store.delta.table import StoredTable


def rows_since(table: StoredTable, tick: int) -> int:
    """The number of rows of a tick and those after it."""
    files = [f.path for f in table.files() if f.last is None or f.last >= tick]
    rows = files_as_dataset(files, table.spec.arrow_schema)
    return rows.count_rows(filter=ds.field(table.spec.tick) >= tick)


def last_tick(table: StoredTable, until: int) -> int | None:
    """The last tick up to one of which there are rows."""
    tick, files = table.spec.tick, [f.path for f in table.files() if f.may_hold(0, until)]
    rows = files_as_dataset(files, table.spec.arrow_schema)
    found: int | None = pc.max(rows.to_table([tick], ds.field(tick) <= until)[tick]).as_py()
    return found
