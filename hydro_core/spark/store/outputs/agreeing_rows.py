"""Rows of files that agree with some others, found a piece at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from hydro_core.files.parquet import in_pieces
from hydro_core.spark.store.outputs.net_changes import TypedColumns, agreeing, has_nulls
from hydro_core.storage.delta import data_files

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyarrow.dataset import Dataset


def agreeing_rows(rows: Dataset, others: pa.Table, by: TypedColumns) -> pa.Table:
    """The rows that agree with one of the others in some columns.

    Args:
        rows: files, of which no more is held than a piece and what is found.
        others: rows with those columns.
        by: the columns.
    """
    pieces = in_pieces(rows, where=_may_agree(others, by))
    found = (piece.filter(pa.array(agreeing(piece, others, by))) for piece in pieces)
    return pa.concat_tables([rows.schema.empty_table(), *found])


def may_be_null(name: str, source: pa.Table, table: DeltaTable) -> bool:
    """Whether a column of rows, or of a table that they are merged into, may have a null."""
    if has_nulls(source[name]):
        return True
    count = f"null_count.{name}"
    counts = [row[count] for row in data_files(table, count)]
    return not counts or any(known != 0 for known in counts)


def _may_agree(rows: pa.Table, by: TypedColumns) -> ds.Expression | None:
    """What surely holds of the rows that agree with one of some: files tell it of many rows.

    Files that are merged tell of texts in a form that Arrow does not compare with others.
    """
    told = [name for name, _ in by if not _is_text(rows.schema.field(name).type)]
    if not told:
        return None
    name = max(told, key=lambda name: len(rows[name].unique()))
    values: Any = rows[name].combine_chunks()
    known: ds.Expression = ds.field(name).isin(values.drop_null())
    return known | ds.field(name).is_null() if has_nulls(values) else known


def _is_text(of: pa.DataType) -> bool:
    return pa.types.is_string(of) or pa.types.is_binary(of)
