"""Streams that are computed now, once: the plan that led to them is cut off."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

Settle = Callable[[DataFrame], tuple[DataFrame, int]]
"""From a frame to one with the same rows and no plan behind it, and the number of its rows. It runs a job."""


def checkpointed(frame: DataFrame) -> tuple[DataFrame, int]:
    """The rows stay with Spark's executors; for data of any size."""
    kept = frame.localCheckpoint(eager=False)
    return kept, kept.count()


def collected(frame: DataFrame) -> tuple[DataFrame, int]:
    """The rows pass through the driver: for small data, where this is the fastest."""
    table = frame.toArrow()
    return frame.sparkSession.createDataFrame(table, frame.schema), table.num_rows
