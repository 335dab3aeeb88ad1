"""The sessions that stand beside the shared one in its process, each with settings for its work.

Whoever wants a session gets it here, or from `hydro_core.spark.session.session`, which starts the
shared one. What was set on that after it was started a new session does not inherit.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from weakref import WeakSet

from pyspark.sql import SparkSession

_FEW_ROWS = {
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

_SMALL = {
    # Its estimates and its stages cost more than a small job does; sizes of files are known.
    "spark.sql.adaptive.enabled": "false",
}
"""What differs in a session for small ranges."""

_FILES = {
    # What folders are called is text, and cast where it is wanted.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""What differs in a session that reads files."""

_SET_LATER = ("spark.sql.shuffle.partitions",)

_sessions: WeakSet[SparkSession] = WeakSet()
"""Those for few rows."""


@lru_cache(maxsize=4)
def few_rows_session(spark: SparkSession) -> SparkSession:
    """A session for few rows: everything is in one partition, nothing is compiled."""
    return for_few_rows(spark.newSession())


@lru_cache(maxsize=4)
def compiling_session(spark: SparkSession) -> SparkSession:
    """The same for plans that are kept: what they are compiled to is worth its price."""
    return _with(for_few_rows(spark.newSession()), _COMPILED)


@lru_cache(maxsize=4)
def small_ranges_session(spark: SparkSession) -> SparkSession:
    """A session for small ranges, whose rows are not so few."""
    later = {key: value for key in _SET_LATER if (value := spark.conf.get(key, None)) is not None}
    return _with(spark.newSession(), {**later, **_SMALL})


def files_session(spark: SparkSession) -> SparkSession:
    """A session for one run over files, which may have further settings of its own."""
    return _with(spark.newSession(), _FILES)


def for_few_rows(session: SparkSession) -> SparkSession:
    """Makes a session one for few rows, and gives it."""
    _sessions.add(session)
    return _with(session, _FEW_ROWS)


def has_few_rows(session: SparkSession) -> bool:
    return session in _sessions


def _with(session: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    for key, value in settings.items():
        session.conf.set(key, value)
    return session
