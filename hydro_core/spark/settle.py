"""Streams that are computed now, once: the plan that led to them is cut off."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hydro_core.spark.relation import ITEM, Relation
from hydro_core.spark.types import spark_type
from hydro_core.types.item import ItemType

Settle = Callable[[DataFrame], tuple[DataFrame, int]]
"""From a frame to one with the same rows and no plan behind it, and the number of its rows.

It runs a job.
"""


def checkpointed(frame: DataFrame) -> tuple[DataFrame, int]:
    """The rows stay with Spark's executors; for data of any size."""
    kept = frame.localCheckpoint(eager=False)
    return kept, kept.count()


def collected(frame: DataFrame) -> tuple[DataFrame, int]:
    """The rows pass through the driver: for small data, where this is the fastest."""
    # PySpark reads only the first chunk of a column.
    table = frame.toArrow().combine_chunks()
    return frame.sparkSession.createDataFrame(table, frame.schema), table.num_rows


def exactly(frame: DataFrame, item: ItemType) -> DataFrame:
    """The frame with items of exactly the Spark type of `item`.

    Spark takes what is never null for another type.
    """
    return frame.withColumn(ITEM, F.col(ITEM).cast(spark_type(item)))


def settled(relation: Relation, settle: Settle) -> tuple[Relation, int]:
    """The relation without the plan behind it, and the number of its rows."""
    frame, rows = settle(exactly(relation.frame, relation.item))
    return relation.with_(frame=frame), rows
