"""The Pythons of Spark's executors: they run functions of programs, and read files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hydro_core.settings import SparkSettings
from hydro_core.spark.session.failures import data_error
from hydro_core.spark.session.session import shared_session

_NEEDED = ("numpy", "obstore", "pyarrow", "pyspark")


@dataclass(frozen=True, slots=True)
class ExecutorPython:
    """A Python that executors start."""

    host: str
    version: str
    lacks: tuple[str, ...]
    """The packages that are needed there, and are not."""

    @property
    def fits(self) -> bool:
        """Whether it is as the one of the driver, and has what it needs."""
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        return not self.lacks and self.version == here


def executor_pythons(settings: SparkSettings) -> list[ExecutorPython]:
    """Those that a small job finds; it runs on all executors that are there.

    Raises:
        HydroError: Spark cannot be started, or the job fails.
    """
    session = shared_session(settings)
    needed = _NEEDED

    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import platform
        from importlib.util import find_spec

        for _ in batches:
            lacks = [name for name in needed if find_spec(name) is None]
            version = ".".join(platform.python_version_tuple()[:2])
            row: dict[str, Any] = {"host": [platform.node()], "version": [version]}
            yield pa.RecordBatch.from_pydict({**row, "lacks": [" ".join(lacks)]})

    tasks = max(2, 2 * session.sparkContext.defaultParallelism)
    schema = "host string, version string, lacks string"
    try:
        rows = session.range(0, tasks, 1, tasks).mapInArrow(told, schema).distinct().collect()
    except Exception as error:
        raise data_error(error) from error
    return [ExecutorPython(r.host, r.version, tuple(r.lacks.split())) for r in sorted(rows)]
