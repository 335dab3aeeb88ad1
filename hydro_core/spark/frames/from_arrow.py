"""Arrow tables as DataFrames, without the loss of rows that follow an empty chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def table_frame(
    spark: SparkSession, table: pa.Table, schema: StructType | None = None
) -> DataFrame:
    """The rows of a table.

    Spark ends at an empty chunk, but for a first one, and passes over all rows behind it: what is
    read of several files has such chunks. So each column is one chunk. A table without any array is
    what Spark refuses. Without a schema a timestamp that has no zone stays one that has none.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    whole = table.combine_chunks() if table.num_rows else table.schema.empty_table()
    if schema is None:
        schema = from_arrow_schema(whole.schema, prefer_timestamp_ntz=True)
    return spark.createDataFrame(whole, schema)
