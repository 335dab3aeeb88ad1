"""`hydrotick doctor`: whether all that ticks need is there, before the first one runs."""

from __future__ import annotations

from collections.abc import Iterator

from hydro_core.cli.command import Asked
from hydro_core.errors import HydroError

from ..doctor.cluster import of_executors
from ..doctor.finding import Finding, wrong
from ..doctor.machine import of_directories, of_jars, of_java
from ..doctor.stores import of_clocks, of_landings, stores_of
from ..project.console import Console
from ..project.project import current


def doctor(options: Asked) -> int:
    console, found = Console(options), []
    for finding in _found(start_spark=not options.no_spark):
        found.append(finding)
        if not console.gives_json:
            console.say(finding.line)
    bad = sum(finding.state == "wrong" for finding in found)
    said = f"{bad} of {len(found)} things are wrong" if bad else "all that ticks need is there"
    told = {"ok": not bad, "findings": [finding.as_json() for finding in found]}
    console.give(told, said)
    return 1 if bad else 0


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
