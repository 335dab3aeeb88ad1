"""OpenLineage events of a run (openlineage.io): its start and its end, with columns and lineage.

Spec 2-0-2. A job is a flow, a run is ticks that are committed together. Events are sent where the
project's settings ask for it: a line of a file each, or a POST each. What does not work is a
warning.
"""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.client import HTTPException
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from hydro_core.analysis.lineage import ColumnDescriptions, described
from hydro_core.errors import HydroError
from hydro_core.project.discover import place_of
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow

from .deploy.deployments import comments_of
from .project.shape import ColumnTypes, FlowShape, OutputShape, shape_of
from .runner.report import TickReport

if TYPE_CHECKING:
    from .flows.flows import Flows


Ended = Literal["COMPLETE", "FAIL", "ABORT"]

_SPEC = "https://openlineage.io/spec"
_FILES = "file"
"""The namespace of datasets that are files; their names are paths."""


@dataclass(frozen=True, slots=True)
class Parent:
    """Parent of ticks in lineage: a run of the orchestrator, and its job."""

    run: str
    job: str


@dataclass(frozen=True, slots=True)
class LineageRun:
    flow: FlowAsset
    shape: FlowShape
    columns: ColumnDescriptions
    """Descriptions of the columns of inputs and outputs."""
    inputs: Mapping[str, str]
    """Where each input is."""
    outputs: Mapping[str, str]
    """Where each output's table is."""
    windows: Sequence[TickWindow]
    namespace: str
    parent: Parent | None = None
    code: str | None = None
    """Where the program is on the web."""
    id: str = field(default_factory=lambda: str(uuid4()))

    def started(self) -> dict[str, Any]:
        return self._event("START", [], {})

    def ended(self, how: Ended, reports: Sequence[TickReport]) -> dict[str, Any]:
        failed = [report.failure for report in reports if not report.committed]
        says = {"message": failed[0], "programmingLanguage": "PYTHON"} if failed else None
        facets = {"errorMessage": _facet("1-0-1/ErrorMessageRunFacet", says)} if says else {}
        return self._event(how, reports, facets)

    def _event(
        self, kind: str, reports: Sequence[TickReport], more: Mapping[str, Any]
    ) -> dict[str, Any]:
        rows = Counter[str]()
        for report in reports:
            rows.update(report.rows if report.committed else {})
        engine = {
            "name": "Spark",
            "version": version("pyspark"),
            "openlineageAdapterVersion": version("hydrotick"),
        }
        times = {
            "nominalStartTime": _time(self.windows[0].start),
            "nominalEndTime": _time(self.windows[-1].end),
        }
        return {
            "eventType": kind,
            "eventTime": _time(datetime.now(UTC)),
            "producer": _producer(),
            "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "run": {
                "runId": self.id,
                "facets": {
                    "nominalTime": _facet("1-0-1/NominalTimeRunFacet", times),
                    "processing_engine": _facet("1-1-1/ProcessingEngineRunFacet", engine),
                    **self._parent(),
                    **more,
                },
            },
            "job": {"namespace": self.namespace, "name": self.flow.name, "facets": self._job()},
            "inputs": list(self._inputs()),
            "outputs": [self._output(output, rows) for output in self.shape.outputs],
        }

    def _parent(self) -> dict[str, Any]:
        if self.parent is None:
            return {}
        of = {
            "run": {"runId": self.parent.run},
            "job": {"namespace": self.namespace, "name": self.parent.job},
        }
        # Nothing is known of what has started it: it is the root, too.
        return {"parent": _facet("1-1-0/ParentRunFacet", {**of, "root": of})}

    def _job(self) -> dict[str, Any]:
        kind = {"processingType": "BATCH", "integration": "HYDROTICK", "jobType": "FLOW"}
        facets = {"jobType": _facet("2-0-3/JobTypeJobFacet", kind)}
        if self.flow.description:
            said = {"description": self.flow.description}
            facets["documentation"] = _facet("1-0-1/DocumentationJobFacet", said)
        if self.flow.owners:
            owners = {"owners": [{"name": owner} for owner in self.flow.owners]}
            facets["ownership"] = _facet("1-0-1/OwnershipJobFacet", owners)
        if self.code:
            place = {"type": "git", "url": self.code}
            facets["sourceCodeLocation"] = _facet("1-0-1/SourceCodeLocationJobFacet", place)
        return facets

    def _inputs(self) -> Iterator[dict[str, Any]]:
        for name, columns in self.shape.inputs.items():
            facets = {"schema": _schema(columns, self.columns.inputs[name])}
            yield {"namespace": _FILES, "name": self.inputs[name], "facets": facets}

    def _output(self, output: OutputShape, rows: Mapping[str, int]) -> dict[str, Any]:
        stored = {"storageLayer": "delta", "fileFormat": "parquet"}
        facets = {
            "schema": _schema(output.columns, self.columns.outputs[output.name]),
            "columnLineage": self._lineage(output),
            "storage": _facet("1-0-1/StorageDatasetFacet", stored),
        }
        found = {"namespace": _FILES, "name": self.outputs[output.name], "facets": facets}
        if output.name in rows:
            count = {"rowCount": rows[output.name]}
            statistics = _facet("1-0-2/OutputStatisticsOutputDatasetFacet", count)
            found["outputFacets"] = {"outputStatistics": statistics}
        return found

    def _lineage(self, output: OutputShape) -> dict[str, Any]:
        fields = {
            column: {"inputFields": list(self._sources(sources, column in output.changed))}
            for column, sources in output.sources.items()
            if sources
        }
        return _facet("1-2-0/ColumnLineageDatasetFacet", {"fields": fields})

    def _sources(
        self, sources: Iterable[tuple[str, str]], changed: bool
    ) -> Iterator[dict[str, Any]]:
        how = "TRANSFORMATION" if changed else "IDENTITY"
        for name, column in sources:
            yield {
                "namespace": _FILES,
                "name": self.inputs[name],
                "field": column,
                "transformations": [{"type": "DIRECT", "subtype": how}],
            }


def _schema(columns: ColumnTypes, said: Mapping[str, str]) -> dict[str, Any]:
    fields = [
        {"name": name, "type": kind} | ({"description": said[name]} if name in said else {})
        for name, kind in columns
    ]
    return _facet("1-1-1/SchemaDatasetFacet", {"fields": fields})


def _facet(kind: str, says: Mapping[str, Any]) -> dict[str, Any]:
    """A facet by its version and name: `1-0-1/NominalTimeRunFacet`."""
    name = kind.partition("/")[2]
    place = f"{_SPEC}/facets/{kind}.json#/$defs/{name}"
    return {"_producer": _producer(), "_schemaURL": place, **says}


def _producer() -> str:
    return f"urn:hydrotick:{version('hydrotick')}"


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _lineage_run(
    flows: Flows, flow: FlowAsset, parent: Parent | None, windows: Sequence[TickWindow]
) -> LineageRun:
    """Ticks that are about to run, as they are told of."""
    pipeline, where = flows.pipeline(flow), flows.landings(flow).sources
    inputs = {name: str(source.file.place.absolute()) for name, source in where.items()}
    tables = {name: spec.name for name, spec in pipeline.output_tables.items()}
    outputs = {name: str(pipeline.directory / table) for name, table in tables.items()}
    deployed = flows.deployments.prepare(flow)
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
        flows.project.url_of(place_of(flow) or Path(str(flow.program))),
    )


def with_lineage(
    reports: Iterable[TickReport],
    windows: Sequence[TickWindow],
    flows: Flows,
    flow: FlowAsset,
    parent: Parent | None,
    log: Callable[[str], None],
) -> Iterator[TickReport]:
    """The reports of ticks that are run together as they come; what becomes of them is told, where
    the project's settings ask for that.

    Args:
        reports: of the ticks; they run as these are asked for.
        windows: the ticks.
        flows: knows what they read and write.
        flow: whose ticks they are.
        parent: what has started them.
        log: told of events that nobody takes.
    """
    to, key = flows.project.openlineage, flows.project.openlineage_key
    try:
        run = None if to is None else _lineage_run(flows, flow, parent, windows)
    except HydroError:
        # What is wrong with it the ticks say.
        run = None
    if to is None or run is None:
        yield from reports
        return
    seen: list[TickReport] = []
    send(run.started(), to, key, log)
    try:
        for report in reports:
            seen.append(report)
            yield report
    finally:
        # Whatever stops the ticks, a signal say, the run has an end.
        failed = any(not report.committed for report in seen)
        how: Ended = "FAIL" if failed else "COMPLETE" if seen else "ABORT"
        send(run.ended(how, seen), to, key, log)


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
            file = Path(to.removeprefix("file:"))
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as opened:
                opened.write(body + "\n")
        else:
            place = to.rstrip("/")
            place = place if place.endswith(_ENDPOINT) else place + _ENDPOINT
            post_json(place, body.encode(), key)
    except (OSError, HTTPException, ValueError) as problem:
        warn(f"OpenLineage: {to} did not take an event, and the tick goes on: {problem}")


def post_json(url: str, body: bytes, key: str | None = None, seconds: float = _SECONDS) -> None:
    """Sends JSON to a server; `key` is what the server knows this client by.

    Raises:
        OSError, HTTPException, ValueError: it did not take it.
    """
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"`{url}` is no http or https address")
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(url, body, headers)  # noqa: S310 - the schemes are those above
    with urllib.request.urlopen(request, timeout=seconds):  # noqa: S310
        pass
