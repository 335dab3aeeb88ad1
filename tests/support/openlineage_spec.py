"""What OpenLineage's specification demands of an event of a run, spec 2-0-2 and its facets.

It is stricter than the specification in one thing: fields and facets that it does not name are
wrong here, though others may add some; what we write is none of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlparse
from uuid import UUID

Judge = Callable[[Any, str], None]
EVENT = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"


def check(event: Mapping[str, Any]) -> None:
    """Fails where the event is not what the specification says, naming the place."""
    _EVENT(event, "event")
    assert event["schemaURL"] == EVENT


def check_runs(events: list[Mapping[str, Any]]) -> None:
    """Of every run there is one start, then one end, of one job."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        check(event)
        runs.setdefault(event["run"]["runId"], []).append(event)
    for told in runs.values():
        first, last = (event["eventType"] for event in told)
        assert first == "START"
        assert last in ("COMPLETE", "FAIL", "ABORT")
        assert told[0]["job"]["name"] == told[1]["job"]["name"]
        assert told[0]["eventTime"] <= told[1]["eventTime"]


def text(value: Any, place: str) -> None:
    assert isinstance(value, str), place


def whole(value: Any, place: str) -> None:
    assert isinstance(value, int), place
    assert not isinstance(value, bool), place


def uuid(value: Any, place: str) -> None:
    text(value, place)
    assert str(UUID(value)) == value, place


def time(value: Any, place: str) -> None:
    """RFC 3339 asks for an offset."""
    text(value, place)
    assert datetime.fromisoformat(value).tzinfo is not None, place


def uri(value: Any, place: str) -> None:
    text(value, place)
    assert urlparse(value).scheme, place


def one_of(*values: str) -> Judge:
    def judge(value: Any, place: str) -> None:
        assert value in values, place

    return judge


def all_are(judged: Judge) -> Judge:
    def judge(value: Any, place: str) -> None:
        assert isinstance(value, list), place
        for number, one in enumerate(value):
            judged(one, f"{place}[{number}]")

    return judge


def by_name(judged: Judge) -> Judge:
    def judge(value: Any, place: str) -> None:
        assert isinstance(value, dict), place
        for name, one in value.items():
            judged(one, f"{place}.{name}")

    return judge


@dataclass(frozen=True)
class Object:
    """An object with these fields, and others that may be missing."""

    must: Mapping[str, Judge]
    may: Mapping[str, Judge] = field(default_factory=dict)

    def __call__(self, value: Any, place: str) -> None:
        assert isinstance(value, dict), place
        assert set(self.must) <= set(value), f"{place} lacks {set(self.must) - set(value)}"
        known = {**self.must, **self.may}
        assert set(value) <= set(known), f"{place} has {set(value) - set(known)}"
        for name, one in value.items():
            known[name](one, f"{place}.{name}")


@dataclass(frozen=True)
class Facet:
    """A facet by its version and name, and its own fields."""

    of: str
    must: Mapping[str, Judge]
    may: Mapping[str, Judge] = field(default_factory=dict)

    def __call__(self, value: Any, place: str) -> None:
        name = self.of.partition("/")[2]
        url = f"https://openlineage.io/spec/facets/{self.of}.json#/$defs/{name}"
        Object({"_producer": uri, "_schemaURL": one_of(url), **self.must}, self.may)(value, place)


_NAMED = {"namespace": text, "name": text}
_OF_RUN = Object({"run": Object({"runId": uuid}), "job": Object(_NAMED)})
_RUN = {
    "nominalTime": Facet(
        "1-0-1/NominalTimeRunFacet", {"nominalStartTime": time}, {"nominalEndTime": time}
    ),
    "parent": Facet("1-1-0/ParentRunFacet", _OF_RUN.must, {"root": _OF_RUN}),
    "processing_engine": Facet(
        "1-1-1/ProcessingEngineRunFacet",
        {"version": text},
        {"name": text, "openlineageAdapterVersion": text},
    ),
    "errorMessage": Facet(
        "1-0-1/ErrorMessageRunFacet",
        {"message": text, "programmingLanguage": text},
        {"stackTrace": text},
    ),
}
_JOB = {
    "jobType": Facet(
        "2-0-3/JobTypeJobFacet", {"processingType": text, "integration": text}, {"jobType": text}
    ),
    "documentation": Facet("1-0-1/DocumentationJobFacet", {"description": text}),
    "ownership": Facet(
        "1-0-1/OwnershipJobFacet", {}, {"owners": all_are(Object({"name": text}, {"type": text}))}
    ),
    "sourceCodeLocation": Facet("1-0-1/SourceCodeLocationJobFacet", {"type": text, "url": uri}),
}
_FROM = Object(
    {**_NAMED, "field": text},
    {
        "transformations": all_are(
            Object({"type": one_of("DIRECT", "INDIRECT")}, {"subtype": text, "description": text})
        )
    },
)
_DATASET = {
    "schema": Facet(
        "1-1-1/SchemaDatasetFacet",
        {},
        {"fields": all_are(Object({"name": text}, {"type": text, "description": text}))},
    ),
    "columnLineage": Facet(
        "1-2-0/ColumnLineageDatasetFacet",
        {"fields": by_name(Object({"inputFields": all_are(_FROM)}))},
        {"dataset": all_are(_FROM)},
    ),
    "storage": Facet(
        "1-0-1/StorageDatasetFacet",
        {"storageLayer": one_of("iceberg", "delta")},
        {"fileFormat": one_of("parquet", "orc", "avro", "json", "csv", "text", "xml")},
    ),
}
_WRITTEN = {
    "outputStatistics": Facet(
        "1-0-2/OutputStatisticsOutputDatasetFacet",
        {},
        {"rowCount": whole, "size": whole, "fileCount": whole},
    )
}
_READ = Object(_NAMED, {"facets": Object({}, _DATASET), "inputFacets": Object({})})
_EVENT = Object(
    {
        "eventTime": time,
        "producer": uri,
        "schemaURL": uri,
        "eventType": one_of("START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"),
        "run": Object({"runId": uuid}, {"facets": Object({}, _RUN)}),
        "job": Object(_NAMED, {"facets": Object({}, _JOB)}),
    },
    {
        "inputs": all_are(_READ),
        "outputs": all_are(
            Object(_NAMED, {"facets": Object({}, _DATASET), "outputFacets": Object({}, _WRITTEN)})
        ),
    },
)
