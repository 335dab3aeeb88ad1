"""Few rows: what Spark does around them is all that they cost, so it is given little to do.

In a session for few rows everything stands in one partition. There a join, a grouping or a window
finds its rows together as they come: no exchange is planned, and all results of a range are one
job of one task. Nothing is sent to other tasks, compiled to Java or planned anew while it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from weakref import WeakSet

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hydro_core.spark.frames.paths import quoted

OPTIONS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # A side that is sent to all tasks is a job of its own.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Spark takes a join of joins for as large as the product of all that is in it.
    "spark.sql.maxSinglePartitionBytes": str(2**63 - 1),
    # A leaf of a kept plan, of which it knows no size, it takes for as large as can be; with any
    # other number than this one the product of some joins would be that large, too.
    "spark.sql.defaultSizeInBytes": "1",
    # The one moves a join below what brings the rows into one partition, and then needs an
    # exchange; the other computes results of all rows apart, as queries within the query.
    "spark.sql.optimizer.excludedRules": (
        "org.apache.spark.sql.catalyst.optimizer.PushDownLeftSemiAntiJoin,"
        "org.apache.spark.sql.catalyst.optimizer.MergeSubplans"
    ),
}
"""What differs in a session for few rows."""

_COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
"""What differs again where a plan is kept, and its rows are not so few."""

_sessions: WeakSet[SparkSession] = WeakSet()


@lru_cache(maxsize=4)
def few_rows_session(spark: SparkSession) -> SparkSession:
    """A session beside the given one, in the same process, for few rows."""
    return for_few_rows(spark.newSession())


@lru_cache(maxsize=4)
def compiling_session(spark: SparkSession) -> SparkSession:
    """The same for plans that are kept: what they are compiled to is worth its price."""
    session = for_few_rows(spark.newSession())
    for key, value in _COMPILED.items():
        session.conf.set(key, value)
    return session


def for_few_rows(session: SparkSession) -> SparkSession:
    """Makes a session one for few rows, and gives it."""
    for key, value in OPTIONS.items():
        session.conf.set(key, value)
    _sessions.add(session)
    return session


def has_few_rows(session: SparkSession) -> bool:
    """Whether it is a session for few rows."""
    return session in _sessions


def together(frame: DataFrame) -> DataFrame:
    """The frame, in one partition where its session is for few rows.

    Whatever reads data asks for it, and joins of which Spark forgets that they have one partition.
    """
    return frame.coalesce(1) if has_few_rows(frame.sparkSession) else frame


def collect(frames: Mapping[str, DataFrame]) -> dict[str, pa.Table]:
    """The rows of several frames, by one job."""
    return InOneJob(frames).collect()


class InOneJob:
    """Several frames as one, whose rows are collected by one job each time."""

    def __init__(self, frames: Mapping[str, DataFrame]) -> None:
        self._columns = {name: frame.columns for name, frame in frames.items()}
        wide: DataFrame | None = None
        for i, (name, frame) in enumerate(frames.items()):
            columns = [F.col(quoted(c)).alias(f"{i}.{c}") for c in self._columns[name]]
            one = frame.select(F.lit(i).alias("of"), *columns)
            wide = one if wide is None else wide.unionByName(one, allowMissingColumns=True)
        self.frame = wide
        """All of them; None where there are none."""

    def collect(self) -> dict[str, pa.Table]:
        """The rows of each, as they are now."""
        if self.frame is None:
            return {}
        table = self.frame.toArrow()
        return {name: _part(table, i, of) for i, (name, of) in enumerate(self._columns.items())}


def _part(table: pa.Table, number: int, names: list[str]) -> pa.Table:
    """The rows of one frame out of the wide table."""
    rows = table.filter(pc.field("of") == number).select([f"{number}.{name}" for name in names])
    # Made anew, so that every column may hold nulls whatever Spark knows of it.
    return pa.Table.from_arrays(rows.columns, names=names)
