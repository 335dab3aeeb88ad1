"""Spark where it runs: that it starts, and the Pythons of its executors."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from hydro_core.errors import HydroError

from ..project.settings import ProjectSettings
from .finding import Finding, wrong


def of_executors(settings: ProjectSettings) -> Iterator[Finding]:
    """Starts Spark as ticks do, and asks its executors which Python they have."""
    from hydro_core.spark.session.executors import executor_pythons

    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    try:
        found = executor_pythons(settings.core.spark)
    except HydroError as error:
        yield from wrong("Spark", error)
        return
    yield Finding("Spark", "ok", f"`{settings.core.spark.master}` runs a job")
    for one in found:
        what = f"Python of executors on {one.host}"
        if one.fits:
            yield Finding(what, "ok", one.version)
            continue
        lacks = f", and has no {', '.join(one.lacks)}" if one.lacks else ""
        cure = (
            f"give the nodes a Python {here} with the packages of the driver, and name it by "
            "`spark.pyspark.python` in `conf` of `[spark]`"
        )
        yield Finding(what, "wrong", f"it is {one.version} beside {here} here{lacks}", cure)
