"""The events of a run: that it starts, and how it ended, with columns and where they come from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Literal
from uuid import uuid4

from hydro_core.analysis.descriptions import Described
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow

from ..project.shape import ColumnTypes, FlowShape, OutputShape
from ..runner.report import TickReport

Ended = Literal["COMPLETE", "FAIL", "ABORT"]

_SPEC = "https://openlineage.io/spec"
_FILES = "file"
"""The namespace of datasets that are files; their names are paths."""


@dataclass(frozen=True, slots=True)
class Parent:
    """What has started the ticks: a run of the orchestrator, and the job that it is of."""

    run: str
    job: str


@dataclass(frozen=True, slots=True)
class LineageRun:
    """Ticks that are to be committed together."""

    flow: FlowAsset
    shape: FlowShape
    columns: Described
    """What is said of the columns of inputs and outputs."""
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
                    "processing_engine": _facet("1-1-1/ProcessingEngineRunFacet", _engine()),
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


def _engine() -> dict[str, Any]:
    return {
        "name": "Spark",
        "version": version("pyspark"),
        "openlineageAdapterVersion": version("hydrotick"),
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
