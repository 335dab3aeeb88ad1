"""The data files that a Delta table names, with their statistics."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from deltalake import DeltaTable


def data_files(table: DeltaTable, *columns: str) -> list[dict[str, Any]]:
    """A row for each data file, with some of what its log says: `path`, `size_bytes`, `max.tick`.

    What the log says of no file is None. Nothing else is read: pyarrow loads pandas for every
    instant that it makes a Python object of, and before it takes a stream for a table; whoever only
    looks at a ledger does without.
    """
    found = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()
    there = [name for name in columns if name in found.column_names]
    absent = dict.fromkeys(columns)
    return [{**absent, **row} for row in found.select(there).to_pylist()]
