"""Settings of Spark's own that a project or a flow may have, and which of them it may not.

What programs mean on Spark rests on some of Spark's settings: these are not anybody's to change.
Others are settings of hydrotick by another name. All the rest is passed on as it is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_OURS: Mapping[str, str] = MappingProxyType(
    {
        "spark.master": "write `master` in `[spark]` of hydrotick.toml",
        "spark.driver.memory": "write `memory` in `[spark]` of hydrotick.toml",
        "spark.sql.shuffle.partitions": "write `shuffle_partitions` in `[spark]` of hydrotick.toml",
    }
)
"""The settings that have another name here, and which."""

_MEANING = (
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
    "spark.sql.catalog.spark_catalog",
    "spark.sql.execution.arrow.pyspark.enabled",
    "spark.sql.extensions",
    "spark.sql.session.timeZone",
    "spark.sql.parquet.datetimeRebaseModeInRead",
    "spark.sql.parquet.datetimeRebaseModeInWrite",
    "spark.sql.parquet.int96RebaseModeInRead",
    "spark.sql.parquet.outputTimestampType",
    "spark.sql.parquet.writeLegacyFormat",
)
"""What programs mean, and what is stored, rests on these."""

_OF_THE_PROCESS = (
    "spark.app.name",
    "spark.databricks.delta.properties.defaults.checkpointInterval",
    "spark.databricks.delta.snapshotPartitions",
    "spark.driver.extraClassPath",
    "spark.driver.extraJavaOptions",
    "spark.executor.extraJavaOptions",
    "spark.python.sql.dataFrameDebugging.enabled",
)
"""How Spark is started within a process of hydrotick, and how its tables are kept."""

_CURE = "write names of Spark's own settings and their values: `{spark.executor.memory: 4g}`"

WrongConf = tuple[str, str] | None
"""What is wrong with settings of Spark, and the cure; None if nothing is."""


def wrong_conf(value: Any) -> WrongConf:
    """What is wrong with what somebody has written as settings of Spark."""
    if not isinstance(value, Mapping):
        return "no table of settings of Spark", _CURE
    return next((wrong for name, of in value.items() if (wrong := _wrong(name, of))), None)


def conf_of(value: Mapping[str, Any]) -> dict[str, str]:
    """Settings of Spark as Spark takes them: all of them are texts."""
    return {name: _text(of) for name, of in sorted(value.items())}


def _wrong(name: object, value: Any) -> WrongConf:
    if not isinstance(name, str) or not name.startswith("spark."):
        return f"not all Spark's: `{name}` is none of its settings", _CURE
    if name in _OURS:
        return f"not all Spark's: `{name}` is a setting of hydrotick", _OURS[name]
    if name in _MEANING:
        return f"not all yours: what programs mean rests on `{name}`", f"leave `{name}` as it is"
    if name in _OF_THE_PROCESS:
        return f"not all yours: hydrotick sets `{name}`", f"leave `{name}` as it is"
    if not isinstance(value, str | int | float):
        return f"not all values: `{name}` is neither a text nor a number", _CURE
    return None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
