"""The Pythons of Spark's executors: they run functions of programs, and read files of stores."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hydro_core.errors import HydroError
from hydro_core.settings import SparkSettings
from hydro_core.spark.session.failures import data_error
from hydro_core.spark.session.session import shared_session
from hydro_core.storage.remote import Remote

_NEEDED = ("numpy", "obstore", "pyarrow", "pyspark")


@dataclass(frozen=True, slots=True)
class ExecutorPython:
    host: str
    version: str
    lacks: tuple[str, ...]
    """The packages that are needed there, and are not."""

    refused: tuple[str, ...] = ()
    """What stores say to it of which it was to list something."""

    @property
    def fits(self) -> bool:
        """Whether it is as the one of the driver, and has what it needs."""
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        return not self.lacks and self.version == here


def executor_pythons(
    settings: SparkSettings, places: Sequence[Remote] = ()
) -> list[ExecutorPython]:
    """Those that a small job finds; it runs on all executors that are there.

    Args:
        settings: where Spark runs.
        places: what they are to list, one by one.

    Raises:
        HydroError: Spark cannot be started, or the job fails.
    """
    session = shared_session(settings)
    needed = _NEEDED

    def listed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import platform
        from importlib.util import find_spec

        for _ in batches:
            lacks = [name for name in needed if find_spec(name) is None]
            refused = [] if lacks else _refused(places)
            version = ".".join(platform.python_version_tuple()[:2])
            row: dict[str, Any] = {"host": [platform.node()], "version": [version]}
            row |= {"lacks": [" ".join(lacks)], "refused": ["\n".join(refused)]}
            yield pa.RecordBatch.from_pydict(row)

    tasks = max(2, 2 * session.sparkContext.defaultParallelism)
    schema = "host string, version string, lacks string, refused string"
    try:
        rows = session.range(0, tasks, 1, tasks).mapInArrow(listed, schema).distinct().collect()
    except Exception as error:
        raise data_error(error) from error
    return [
        ExecutorPython(r.host, r.version, tuple(r.lacks.split()), tuple(r.refused.splitlines()))
        for r in sorted(rows)
    ]


def _refused(places: Sequence[Remote]) -> list[str]:
    """What stores say of these places, each on a line; runs where the executor does."""
    found = []
    for place in places:
        try:
            next(place.files(), None)
        except HydroError as error:
            found += [" ".join(listed.says().split()) for listed in error.diagnostics]
    return found
