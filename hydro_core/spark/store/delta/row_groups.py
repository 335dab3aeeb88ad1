"""Rows as delta-rs writes them: those of state in small row groups, since they are looked up."""

from __future__ import annotations

from typing import Any, Literal

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, WriterProperties, write_deltalake

from hydro_core.spark.store.schema import TableSpec

ROWS_OF_A_GROUP = 1 << 15
"""The rows of a row group of state, of which those are read in which a row is met."""

# What delta-rs takes by itself, but for the size of row groups.
_WRITTEN = WriterProperties(compression="SNAPPY", max_row_group_size=ROWS_OF_A_GROUP)
_JOINED = WriterProperties(
    compression="ZSTD", compression_level=4, max_row_group_size=ROWS_OF_A_GROUP
)


def write_rows(
    table: DeltaTable,
    rows: pa.Table,
    spec: TableSpec,
    mode: Literal["append", "overwrite"],
    said: CommitProperties | None = None,
) -> None:
    """Adds rows to a table, or puts them in the place of all others.

    Args:
        table: a table of these columns.
        rows: the rows.
        spec: what the table is.
        mode: which of the two.
        said: what the commit says beside it.
    """
    # Its overloads tell modes apart that are one call.
    write: Any = write_deltalake
    write(
        table,
        rows.cast(spec.arrow_schema),
        mode=mode,
        commit_properties=said,
        writer_properties=_WRITTEN if spec.role == "state" else None,
    )


def joining(spec: TableSpec) -> WriterProperties | None:
    """How files of a table are joined; None as delta-rs does it."""
    return _JOINED if spec.role == "state" else None
