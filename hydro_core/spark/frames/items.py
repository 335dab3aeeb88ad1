"""Items of Python as DataFrames, and back: exact, whole batches at a time, through Arrow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as spark_types

from hydro_core.spark.frames.few_rows import together
from hydro_core.spark.frames.from_arrow import table_frame
from hydro_core.spark.frames.types import spark_type
from hydro_core.types.arrow import to_arrow
from hydro_core.types.item import ItemType

ITEM = "item"
TICK = "t"


def frame_of(spark: SparkSession, items: Iterable[tuple[int, Any]], item: ItemType) -> DataFrame:
    """The DataFrame (item, t) of pairs (tick, item); the items conform to the type."""
    pairs = list(items)
    table = pa.table(
        {
            ITEM: to_arrow([x for _, x in pairs], item),
            TICK: pa.array([t for t, _ in pairs], pa.int64()),
        }
    )
    schema = spark_types.StructType(
        [
            # Where no item is null, Spark may know it: checks for None then cost nothing.
            spark_types.StructField(
                ITEM, spark_type(item), nullable=any(x is None for _, x in pairs)
            ),
            spark_types.StructField(TICK, spark_types.LongType()),
        ]
    )
    return together(table_frame(spark, table, schema))
