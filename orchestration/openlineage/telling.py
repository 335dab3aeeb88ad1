"""Tells of the runs of a flow's ticks, where the project's settings ask for it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydro_core.analysis.descriptions import described
from hydro_core.errors import HydroError
from hydro_core.project.discover import place_of
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow

from ..project.programs import comments_of
from ..project.settings import ProjectSettings
from ..project.shape import shape_of
from ..runner.report import TickReport
from .events import Ended, LineageRun, Parent

if TYPE_CHECKING:
    from ..flows.flows import Flows


Begin = Callable[[Sequence[TickWindow]], LineageRun]


def lineage_run(
    flows: Flows, flow: FlowAsset, parent: Parent | None, windows: Sequence[TickWindow]
) -> LineageRun:
    """Ticks that are about to run, as they are told of."""
    pipeline, where = flows.pipeline(flow), flows.landings(flow).sources
    inputs = {name: str(source.file.place.absolute()) for name, source in where.items()}
    tables = {name: spec.name for name, spec in pipeline.output_tables.items()}
    outputs = {name: str(pipeline.directory / table) for name, table in tables.items()}
    deployed = flows.deployments.prepared(flow)
    comments = comments_of(flow, deployed)
    asset = flows.asset(flow)
    return LineageRun(
        replace(asset, description=asset.description or comments.head),
        shape_of(flows.plan(flow)),
        described(deployed.deployment.program.typed, comments),
        inputs,
        outputs,
        windows,
        flows.project.openlineage_namespace,
        parent,
        flows.project.url_of(Path(place_of(flow))),
    )


def with_lineage(
    reports: Iterable[TickReport],
    windows: Sequence[TickWindow],
    begin: Begin,
    project: ProjectSettings,
    log: Callable[[str], None],
) -> Iterator[TickReport]:
    """The reports of ticks that are run together as they come; what becomes of them is told.

    Args:
        reports: of the ticks; they run as these are asked for.
        begin: makes the run; not asked where nobody is to be told.
    """
    if project.openlineage is None:
        yield from reports
        return
    try:
        run = begin(windows)
    except HydroError:
        # What is wrong with it the ticks say.
        yield from reports
        return
    seen: list[TickReport] = []
    with _run(run, seen, project, log):
        for report in reports:
            seen.append(report)
            yield report


@contextmanager
def _run(
    run: LineageRun,
    seen: Sequence[TickReport],
    project: ProjectSettings,
    log: Callable[[str], None],
) -> Iterator[None]:
    to = project.openlineage or ""
    send(run.started(), to, project.openlineage_key, log)
    try:
        yield
    finally:
        # Whatever stops the ticks, a signal say, the run has an end.
        failed = any(not report.committed for report in seen)
        how: Ended = "FAIL" if failed else "COMPLETE" if seen else "ABORT"
        send(run.ended(how, seen), to, project.openlineage_key, log)


_SECONDS = 5
_ENDPOINT = "/api/v1/lineage"
"""Where servers take events, below the URL that is configured."""


def send(event: Mapping[str, Any], to: str, key: str | None, warn: Callable[[str], None]) -> None:
    """Gives an event to a file (`file:PATH`) or to a server (its URL); `warn` is told if it fails.

    Args:
        key: what a server knows this client by.
    """
    body = json.dumps(event, ensure_ascii=False)
    try:
        if to.startswith("file:"):
            _append(Path(to.removeprefix("file:")), body)
        else:
            _post(to, body.encode(), key)
    except (OSError, HTTPException, ValueError) as problem:
        warn(f"OpenLineage: {to} did not take an event, and the tick goes on: {problem}")


def _append(file: Path, line: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as opened:
        opened.write(line + "\n")


def _post(url: str, body: bytes, key: str | None) -> None:
    given = {"Content-Type": "application/json"}
    if key:
        given["Authorization"] = f"Bearer {key}"
    place = url.rstrip("/")
    place = place if place.endswith(_ENDPOINT) else place + _ENDPOINT
    # Settings have judged the scheme.
    request = urllib.request.Request(place, body, given)  # noqa: S310
    with urllib.request.urlopen(request, timeout=_SECONDS):  # noqa: S310
        pass
