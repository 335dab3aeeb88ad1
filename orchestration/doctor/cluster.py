"""Spark where it runs: that it starts, the Pythons of its executors, and what they reach."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from hydro_core.errors import HydroError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.settings import SparkSettings
from hydro_core.storage.remote import Remote

from ..project.settings import ProjectSettings
from .finding import Finding, looked, wrong

if TYPE_CHECKING:
    from hydro_core.spark.session.executors import ExecutorPython

_RIGHTS = (
    "give the nodes credentials of their own (variables, a profile, a role), and let them reach "
    "the store"
)


def of_executors(
    settings: ProjectSettings, flows: Sequence[FlowAsset], places: Mapping[str, Remote]
) -> Iterator[Finding]:
    """Starts Spark as ticks do, wherever flows run, and asks its executors which Python they have,
    and whether they reach what ticks read and write.
    """
    found = _where(settings, flows)
    for spark, names in found.items():
        what = f"Spark of {', '.join(names)}" if len(found) > 1 and names else "Spark"
        read = [place for n, place in places.items() if not names or n.partition(",")[0] in names]
        yield from _of(what, settings, spark, read)


def _where(
    settings: ProjectSettings, flows: Sequence[FlowAsset]
) -> Mapping[SparkSettings, Sequence[str]]:
    """The settings of Spark, each with the flows that run by them; the project's own first."""
    found: dict[SparkSettings, list[str]] = {settings.core.spark: []}
    for flow in flows:
        spark = settings.core_with(flow.spark.conf, flow.spark.master).spark
        found.setdefault(spark, []).append(flow.name)
    own = settings.core.spark
    return {spark: names for spark, names in found.items() if names or spark == own}


def _of(
    what: str, settings: ProjectSettings, spark: SparkSettings, places: Sequence[Remote]
) -> Iterator[Finding]:
    from hydro_core.spark.session.executors import executor_pythons

    try:
        found = executor_pythons(spark, places)
    except HydroError as error:
        yield from wrong(what, error)
        return
    yield Finding(what, "ok", f"`{spark.master}` runs a job")
    for one in found:
        yield from _of_python(one)
    if not spark.master.startswith("local"):
        yield from _of_tables(settings, spark)


def _of_python(one: ExecutorPython) -> Iterator[Finding]:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    what = f"Python of executors on {one.host}"
    if one.fits:
        yield Finding(what, "ok", one.version)
    else:
        lacks = f", and has no {', '.join(one.lacks)}" if one.lacks else ""
        cure = (
            f"give the nodes a Python {here} with the packages of the driver, and name it by "
            "`spark.pyspark.python` in `conf` of `[spark]`"
        )
        yield Finding(what, "wrong", f"it is {one.version} beside {here} here{lacks}", cure)
    for refused in one.refused:
        yield Finding(f"stores, from {one.host}", "wrong", refused, _RIGHTS)


def _of_tables(settings: ProjectSettings, spark: SparkSettings) -> Iterator[Finding]:
    """Whether executors write where tables are, and read it: as files if that is a directory."""
    from hydro_core.spark.files.executor_writes import try_writes

    place = settings.pipelines

    def look() -> str:
        return f"{place}: {try_writes(spark, place)} files were written, read and removed"

    yield from looked("tables, by executors", look)
