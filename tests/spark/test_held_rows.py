"""Rows that are computed once are added up with others as any rows are."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hydro_core.spark.frames.leaf import table_frame
from hydro_core.spark.frames.materialize import Materialize, checkpointed, collected, held

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "materialize",
    [checkpointed, collected, lambda frame: (held(frame), 0)],
    ids=["checkpointed", "collected", "held"],
)
def test_a_column_that_is_set_anew_is_not_the_old_one(
    materialize: Materialize, spark: SparkSession
) -> None:
    rows = table_frame(spark, pa.table({"item": [0], "t": [0]}))
    later, _ = materialize(rows.select((F.col("item") + 1).alias("item"), "t"))
    none = rows.where(F.col("t") == 1)
    moved = later.where(F.col("t") == 0).select("item", F.lit(1).cast("long").alias("t"))
    assert [tuple(row) for row in none.union(moved).collect()] == [(1, 1)]
