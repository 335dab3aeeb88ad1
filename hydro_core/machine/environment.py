"""Settings of Spark that the environment, a project or a flow gives."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hydro_core.errors import DataError
from hydro_core.settings import Settings, size_in_bytes
from hydro_core.storage.settings import StorageSettings

# Settings of Spark's own that a project or a flow may have, and which of them it may not.
#
# What programs mean on Spark rests on some of Spark's settings: these are not anybody's to
# change. Others are settings of hydrotick by another name. All the rest is passed on as it is
# said.


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


# What the environment says of Spark, the same for `run` and for flows; whoever reads the
# environment passes it in.


MASTER, MEMORY = "HYDROTICK_SPARK_MASTER", "HYDROTICK_SPARK_MEMORY"

_MASTERS = re.compile(r"local(\[\s*(\d+|\*)\s*(,\s*\d+\s*)?\])?|yarn|(local-cluster\[|\w+://).+")


def storage_of(environ: Mapping[str, str], file: Path | None = None) -> StorageSettings:
    """How object stores are reached: what `[storage]` of a project's file says, then the
    environment. What is wrong in the file is told by the project's commands.
    """
    tables: Mapping[str, Any] = {}
    if file is not None:
        with suppress(OSError, ValueError, RecursionError):
            tables = tomllib.loads(file.read_text(encoding="utf-8"))
    said = tables.get("storage", {})
    known = {setting.name for setting in fields(StorageSettings)}
    given = {n: v for n, v in said.items() if n in known} if isinstance(said, dict) else {}
    return StorageSettings(**given).where(environ)


def settings_of(environ: Mapping[str, str]) -> Settings:
    """The settings as the environment changes them.

    Raises:
        DataError: a variable has a value that nothing can be made of (code `config`).
    """
    found = {"master": (MASTER, wrong_master), "memory": (MEMORY, wrong_memory)}
    wanted = {}
    for setting, (name, judged) in found.items():
        value = environ.get(name)
        if value:
            wrong = judged(value)
            if wrong is not None:
                raise wrong_variable(name, value, *wrong)
            wanted[setting] = value
    return Settings().with_(**wanted)


def wrong_master(value: str) -> tuple[str, str] | None:
    """What is wrong with a master of Spark, and the cure; None if nothing is."""
    if _MASTERS.fullmatch(value):
        return None
    return "no master of Spark", "write `local[2]`, `local[*]` or a URL"


def wrong_memory(value: str) -> tuple[str, str] | None:
    """What is wrong with the memory of Spark, and the cure; None if nothing is."""
    try:
        size_in_bytes(value)
    except ValueError:
        return "no size", "write a whole number with k, m, g or t, such as `2g`"
    return None


def wrong_variable(name: str, value: str, problem: str, cure: str) -> DataError:
    """The error that says what is wrong with a variable of the environment."""
    return DataError.of(
        "config", f"{name} is `{value}`, which is {problem}", help=f"{cure}, or leave it out"
    )
