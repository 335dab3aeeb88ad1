"""Rows of Arrow as DataFrames: the one way there.

Spark takes a part of a table without rows for the end of it: what stands behind is not read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def arrow_frame(
    session: SparkSession, rows: pa.Table, schema: StructType | None = None
) -> DataFrame:
    """All rows of a table as a DataFrame, however many parts the table has.

    Args:
        session: the one that the frame belongs to.
        rows: the table.
        schema: the columns of the frame; None: as Spark takes those of the table.
    """
    parts = [part for part in rows.to_batches() if part.num_rows]
    # One without any part, Spark refuses.
    whole = pa.Table.from_batches(parts, rows.schema) if parts else rows.schema.empty_table()
    return session.createDataFrame(whole, schema)
