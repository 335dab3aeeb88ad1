"""Items of Python as DataFrames, and back: exact, whole batches at a time, through Arrow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hydro_core.spark.frames.column_names import ITEM, TICK
from hydro_core.spark.frames.few_rows import together
from hydro_core.spark.frames.from_arrow import table_frame
from hydro_core.spark.frames.types import rows_type
from hydro_core.types.arrow import to_arrow
from hydro_core.types.item import ItemType


def frame_of(spark: SparkSession, items: Iterable[tuple[int, Any]], item: ItemType) -> DataFrame:
    """The DataFrame (item, t) of pairs (tick, item); the items conform to the type."""
    pairs = list(items)
    table = pa.table(
        {
            ITEM: to_arrow([x for _, x in pairs], item),
            TICK: pa.array([t for t, _ in pairs], pa.int64()),
        }
    )
    schema = rows_type(item, nullable=any(x is None for _, x in pairs))
    return together(table_frame(spark, table, schema))
