"""OpenLineage events: what they say, where they go, and that nothing of it stops a tick."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from hydro_core.errors import HydroError
from hydrotick.instance.run_tags import CORRECT, CORRECT_TAG
from hydrotick.openlineage import send
from hydrotick.project.settings import project_settings
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import PROGRAM, Run, land, opened
from tests.support.openlineage_spec import EVENT, check, check_runs
from tests.support.refused import Refused

pytestmark = [pytest.mark.spark, pytest.mark.dagster]


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, str | None, dict[str, Any]]]]]:
    """A server that takes events, and what it was sent."""
    got: list[tuple[str, str | None, dict[str, Any]]] = []

    class Takes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            got.append((self.path, self.headers["Authorization"], body))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *words: Any) -> None:
            """Says nothing."""

    serving = HTTPServer(("127.0.0.1", 0), Takes)
    threading.Thread(target=serving.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{serving.server_port}", got
    serving.shutdown()
    serving.server_close()


def events_of(file: Path) -> list[dict[str, Any]]:
    """The events that a file was given, each of which is what the specification says."""
    found = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    check_runs(found)
    return found


def test_ticks_are_told_with_columns_and_rows(tmp_path: Path, spark: SparkSession) -> None:
    flow, runner = opened(tmp_path)
    flow = replace(flow, description="What is paid.", owners=("team:data",))
    file = tmp_path / "told" / "lineage.jsonl"
    runner = TickRunner(replace(runner.project, openlineage=f"file:{file}"))
    windows = [flow.ticks.calendar.window(tick) for tick in (0, 1, 2)]
    said: list[str] = []
    assert all(report.committed for report in runner.run(flow, windows[:2], log=said.append))
    assert not [line for line in said if "OpenLineage" in line]
    started, ended = events_of(file)
    assert (started["eventType"], ended["eventType"]) == ("START", "COMPLETE")
    assert started["run"]["runId"] == ended["run"]["runId"]
    assert "parent" not in ended["run"]["facets"]
    assert ended["job"]["namespace"] == "default"
    assert ended["job"]["name"] == "small"
    assert ended["job"]["facets"]["documentation"]["description"] == "What is paid."
    times = ended["run"]["facets"]["nominalTime"]
    assert times["nominalStartTime"] == "2026-01-01T00:00:00.000Z"
    assert times["nominalEndTime"] == "2026-01-03T00:00:00.000Z"
    (read,) = ended["inputs"]
    landed = str(tmp_path / "landing" / "small" / "payments")
    assert (read["namespace"], read["name"]) == ("file", landed)
    assert {f["name"]: f["type"] for f in read["facets"]["schema"]["fields"]} == {
        "user": "string",
        "amount": "bigint",
    }
    totals = next(one for one in ended["outputs"] if one["name"].endswith("outputs/totals"))
    assert Path(totals["name"]).is_dir()
    assert totals["outputFacets"]["outputStatistics"]["rowCount"] == 3
    columns = totals["facets"]["columnLineage"]["fields"]
    assert set(columns) == {"user", "total"}
    assert columns["user"]["inputFields"] == [
        {
            "namespace": "file",
            "name": landed,
            "field": "user",
            "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}],
        }
    ]
    (computed,) = [f for f in columns["total"]["inputFields"] if f["field"] == "amount"]
    assert computed["transformations"][0]["subtype"] == "TRANSFORMATION"


def test_a_run_of_dagster_is_the_parent_of_its_ticks(
    tmp_path: Path, spark: SparkSession, instance: dg.DagsterInstance
) -> None:
    """In shards, with columns and a place that the program's text tells, and computed again."""
    flow, runner = opened(tmp_path, shards=2)
    program = Path(flow.program)
    told = PROGRAM.replace('"user string, ', '\n  "user string, "  # who pays\n  "')
    program.write_text(f"# What is paid.\n{told}", encoding="utf-8")
    file, code = tmp_path / "lineage.jsonl", "https://code.example/shop"
    project = replace(
        runner.project, openlineage=f"file:{file}", code_url=code, root=program.parent
    )
    run = Run(flow, TickRunner(project), instance)
    done = [run(0, 1), run(0, tags={CORRECT_TAG: CORRECT})]
    assert all(result.success for result in done)
    events = events_of(file)
    parents = [event["run"]["facets"]["parent"] for event in events]
    assert [p["run"]["runId"] for p in parents] == [r.run_id for r in done for _ in range(2)]
    for parent in parents:
        assert parent["job"] == {"namespace": "default", "name": "small_job"}
        assert parent["root"] == {"run": parent["run"], "job": parent["job"]}
    facets = events[-1]["job"]["facets"]
    assert facets["documentation"]["description"] == "What is paid."
    assert facets["sourceCodeLocation"]["url"] == f"{code}/{program.name}"
    assert facets["jobType"]["processingType"] == "BATCH"
    for part in (*events[-1]["inputs"], *events[-1]["outputs"]):
        (user,) = (f for f in part["facets"]["schema"]["fields"] if f["name"] == "user")
        assert user == {"name": "user", "type": "string", "description": "who pays"}


def test_a_tick_that_fails_says_why(tmp_path: Path, spark: SparkSession) -> None:
    flow, runner = opened(tmp_path)
    file = tmp_path / "lineage.jsonl"
    runner = TickRunner(replace(runner.project, openlineage=f"file:{file}"))
    windows = [flow.ticks.calendar.window(tick) for tick in (0, 1)]
    assert next(runner.run(flow, windows[:1], log=lambda _: None)).committed
    land(runner.project, [[("ann", 1), ("bob", 2)], [("ann", -500)]])
    assert not list(runner.run(flow, windows[1:], log=lambda _: None))[-1].committed
    # A tick that is only recorded again is no run.
    (again,) = runner.run(flow, windows[:1], log=lambda _: None)
    assert again.again
    started, failed = events_of(file)[-2:]
    assert [event["eventType"] for event in events_of(file)].count("START") == 2
    assert (started["eventType"], failed["eventType"]) == ("START", "FAIL")
    assert "2026-01-02" in failed["run"]["facets"]["errorMessage"]["message"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"eventType": "DONE"}, "event.eventType"),
        ({"eventTime": "2026-01-01T00:00:00"}, "event.eventTime"),
        ({"run": {"runId": "1"}}, "badly formed"),
        ({"run": {"runId": str(uuid4()), "facets": {"nominalTime": {}}}}, "nominalTime lacks"),
        ({"job": {"name": "small"}}, "event.job lacks {'namespace'}"),
        ({"inputs": [{"namespace": "file", "name": "x", "colour": 1}]}, "inputs[0] has {'colour'}"),
    ],
)
def test_what_the_specification_forbids_is_seen(wrong: dict[str, Any], says: str) -> None:
    whole = {
        "eventTime": "2026-01-01T00:00:00Z",
        "producer": "urn:hydrotick",
        "schemaURL": EVENT,
        "eventType": "START",
        "run": {"runId": str(uuid4())},
        "job": {"namespace": "default", "name": "small"},
    }
    check(whole)
    with pytest.raises((AssertionError, ValueError), match=re.escape(says)):
        check({**whole, **wrong})


def test_a_server_that_is_not_there_stops_no_tick(tmp_path: Path, spark: SparkSession) -> None:
    flow, runner = opened(tmp_path)
    runner = TickRunner(replace(runner.project, openlineage="http://127.0.0.1:9"))
    said: list[str] = []
    (report,) = runner.run(flow, [flow.ticks.calendar.window(0)], log=said.append)
    assert report.committed
    assert len([line for line in said if "OpenLineage: http://127.0.0.1:9" in line]) == 2


def test_events_are_posted(server: tuple[str, list[Any]]) -> None:
    url, got = server
    send({"eventType": "START"}, url, "secret", pytest.fail)
    send({"eventType": "OTHER"}, f"{url}/api/v1/lineage", None, pytest.fail)
    assert got == [
        ("/api/v1/lineage", "Bearer secret", {"eventType": "START"}),
        ("/api/v1/lineage", None, {"eventType": "OTHER"}),
    ]


def test_what_fails_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said: list[str] = []
    for to in (f"file:{tmp_path}/file/x.jsonl", "http://127.0.0.1:9", "http://[broken"):
        send({}, to, None, said.append)
    assert len(said) == 3
    assert all("the tick goes on" in line for line in said)


def test_settings_say_where_they_go(tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "assets").mkdir()
    settings = tmp_path / "hydrotick.toml"
    settings.write_text('[lineage]\nopenlineage = "file:data/l.jsonl"\nnamespace = "shop"\n')
    found = project_settings({}, at=tmp_path)
    assert found.openlineage == f"file:{tmp_path}/data/l.jsonl"
    assert found.openlineage_namespace == "shop"
    environ = {
        "OPENLINEAGE_URL": "http://marquez:5000",
        "OPENLINEAGE_API_KEY": "secret",
        "OPENLINEAGE_NAMESPACE": "ours",
    }
    other = project_settings(environ, at=tmp_path)
    assert other.openlineage == "http://marquez:5000"
    assert (other.openlineage_namespace, other.openlineage_key) == ("ours", "secret")
    assert "secret" not in repr(other)
    off = project_settings({**environ, "OPENLINEAGE_DISABLED": "true"}, at=tmp_path)
    assert off.openlineage is None
    with refused(HydroError, "config"):
        project_settings({"OPENLINEAGE_URL": "kafka:x"}, at=tmp_path)
    settings.write_text('[lineage]\nopenlineage = "ftp://x"\n')
    with refused(HydroError, "config", at="2:1"):
        project_settings({}, at=tmp_path)
