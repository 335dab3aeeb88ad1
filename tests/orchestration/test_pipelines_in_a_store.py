"""Flows whose tables and ledgers are in a bucket: what is committed is what a directory gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hydro_core.artifact.deployment import deployment_numbers
from hydro_core.errors import HydroError
from hydro_core.spark.pipeline.copies import verify
from hydro_core.spark.store.ledger.lock import LOCK_FILE
from hydro_core.storage.lease import LeaseFile
from hydro_core.storage.remote import RemotePath
from hydrotick.quality.judge import measure
from tests.orchestration.late import IN_TIME, LATE, OPEN, Late
from tests.orchestration.small import PROGRAM
from tests.orchestration.test_landings_in_a_store import InStore
from tests.support.store_server import (
    KEY,
    SECRET,
    StoreServer,
    refused_from,
    store_server,
    with_credentials_in_jvm,
)
from tests.unit.storage.test_outages import MISTAKEN, SAYS

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
CHANGED = PROGRAM.replace("sum(", "max(")


@pytest.fixture
def server(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreServer]:
    with with_credentials_in_jvm(spark, monkeypatch), store_server() as found:
        yield found


class AllInStore(InStore):
    """The small flow; what lands for it is in a bucket, and so is all that it keeps."""

    def __init__(self, server: StoreServer, home: Path) -> None:
        super().__init__(server, home, "next", "parquet")
        self.project = replace(self.project, data_store="s3://landing/data")
        self.open()

    @property
    def pipeline(self) -> RemotePath:
        found = self.runner.directory(self.flow)
        assert isinstance(found, RemotePath)
        return found

    def run_out(self) -> None:
        """The lease of a process that is no more has run out."""
        file = LeaseFile(self.pipeline.store, f"{self.pipeline.key}/{LOCK_FILE}")
        note = file.look()
        if note is not None:
            file.store.write(file.name, replace(note, until=0.0).encoded())


def ticks(late: Late) -> Late:
    late.land(IN_TIME)
    late.ran((0, 1), (2, OPEN - 1))
    late.land(LATE)
    late.open()
    late.ran((OPEN, OPEN + 1))
    return late


def changes(late: Late) -> Iterator[Mapping[str, list[str]]]:
    """What there is after ticks, a correction, a deployment, a way back, and a compaction."""
    yield ticks(late).by_name
    late.correct(1)
    yield late.by_name
    late.deploy(CHANGED)
    yield late.by_name
    late.ran((OPEN + 2, OPEN + 2))
    yield late.by_name
    late.rollback()
    yield late.by_name
    late.runner.pipeline(late.flow).compact(0)
    yield late.by_name
    late.ran((OPEN + 3, OPEN + 3))
    yield late.by_name


def test_all_that_is_done_to_a_flow(server: StoreServer, tmp_path: Path) -> None:
    here = Late(tmp_path / "here", "next", "parquet")
    there = AllInStore(server, tmp_path / "there")
    for step, (found, wanted) in enumerate(zip(changes(there), changes(here), strict=True)):
        assert found == wanted, step
    assert verify(there.pipeline, measure).problems == ()
    assert verify(here.runner.directory(here.flow), measure).problems == ()
    assert deployment_numbers(there.pipeline) == deployment_numbers(
        here.runner.directory(here.flow)
    )
    # No table is in a directory, and nobody's secret is anywhere.
    assert not (tmp_path / "there" / "pipelines").exists()
    place = server.at("")
    known = {str(f): f.read_bytes() for f in place.files()}
    known |= {str(f): f.read_bytes() for f in (tmp_path / "there").rglob("*") if f.is_file()}
    assert len(known) > 60
    assert [name for name, content in known.items() if SECRET.encode() in content] == []
    assert [name for name, content in known.items() if KEY.encode() in content] == []


@pytest.mark.parametrize("work", ["correction", "deployment"])
def test_at_some_requests_of_long_work_the_store_fails(
    server: StoreServer, tmp_path: Path, work: str
) -> None:
    here = ticks(Late(tmp_path / "here", "next", "parquet"))
    there = ticks(AllInStore(server, tmp_path / "there"))
    deploying = work == "deployment"
    here.deploy(CHANGED) if deploying else here.correct(1)
    before, after = there.by_name, here.by_name
    assert before != after
    for at in (5, 30, 60, 90, 130):
        there.open()
        said = ""
        try:
            with server.failing(refused_from(at)):
                there.deploy(CHANGED) if deploying else there.correct(1)
        except (HydroError, AssertionError) as error:
            # A report that is not committed says why, and `correct` asserts that it is.
            said = str(error)
        if said:
            assert SAYS.search(said), f"from request {at} on: {said}"
            assert not MISTAKEN.search(said), f"from request {at} on: {said}"
        there.run_out()
        there.open()
        # Of a table beyond the ledger nobody reads: what is committed is as before, or all of it.
        there.runner.pipeline(there.flow).store.check(
            there.runner.pipeline(there.flow).ledger.refresh()
        )
        assert there.by_name in (before, after), at
    there.deploy(CHANGED) if deploying else there.correct(1)
    assert there.by_name == after
    assert verify(there.pipeline, measure).problems == ()


@pytest.mark.dagster
def test_from_the_command_line(server: StoreServer, tmp_path: Path) -> None:
    def hydrotick(*words: str, at: Path = tmp_path / "shop") -> tuple[int, str]:
        known = {n: v for n, v in os.environ.items() if not n.startswith("HYDROTICK")}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "hydro_core.cli.main", *words],
            cwd=at,
            env={
                **known,
                "PYTHONPATH": str(ROOT),
                "AWS_ENDPOINT_URL": server.url,
                "AWS_REGION": "us-east-1",
                "HYDROTICK_SPARK_MASTER": "local[2]",
            },
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    url = "s3://landing/shop"
    told = [
        hydrotick("init", "shop", "--storage", url, at=tmp_path),
        hydrotick("doctor", "--no-spark"),
        hydrotick("backfill", "totals"),
        hydrotick("status", "totals", "--verify"),
        hydrotick("why", "totals", "totals", "--where", "user=ann"),
        hydrotick("correct", "totals", "--from", "2026-01-02", "--yes"),
        hydrotick("compact", "totals"),
        hydrotick("docs"),
        hydrotick("metrics"),
        hydrotick("lineage", "assets/totals/totals.hydro"),
        hydrotick("doctor", "--no-spark", "--format", "json"),
    ]
    assert [code for code, _ in told] == [0] * len(told), told
    said = [text for _, text in told]
    # An error has what a library said of the request.
    with server.failing(lambda *_: (403, "SignatureDoesNotMatch")):
        wrong = [
            hydrotick("status"),
            hydrotick("backfill", "totals"),
            hydrotick("show", "totals", "totals"),
            hydrotick("correct", "totals", "--from", "2026-01-02", "--yes"),
            hydrotick("copy", "s3://landing/copies/shop"),
        ]
    assert [code for code, _ in wrong] == [1] * len(wrong), wrong
    assert all("the credentials are not those of anybody it knows" in t for _, t in wrong), wrong
    said += [text for _, text in wrong]
    code, shown = hydrotick("show", "totals", "totals", "--format", "json")
    assert code == 0, shown
    assert json.loads(shown)["rows"]
    assert not (tmp_path / "shop" / "data" / "pipelines").exists()
    program = tmp_path / "shop" / "assets" / "totals" / "totals.hydro"
    first = program.read_text()
    copies = ["s3://landing/copies/shop", str(tmp_path / "copy")]
    told = [hydrotick("copy", place) for place in copies]
    program.write_text(first + "payments -> aggregate(n=count()) -> counted\n")
    told += [
        hydrotick("deploy", "totals", "--yes"),
        hydrotick("correct", "totals", "--from", "2026-01-03", "--yes"),
        hydrotick("rollback", "totals", "--yes"),
        hydrotick("optimize", str(program), "--stats", f"{url}/pipelines/totals"),
    ]
    program.write_text(first)
    for place in copies:
        told += [hydrotick("restore", place, "--yes"), hydrotick("status", "totals", "--verify")]
    # What has landed is in a file, which is whose it is.
    landed = server.at("shop/landing/payments/2026-01.csv")
    lines = landed.read_text().splitlines(keepends=True)
    landed.write_bytes("".join(line for line in lines if "ann" not in line).encode())
    told += [
        hydrotick("forget", "totals", "--where", "user=ann", "--yes"),
        hydrotick("status", "totals", "--verify"),
    ]
    assert [code for code, _ in told] == [0] * len(told), told
    # A deployment has a program, and words in which it says what that does.
    files = [f for f in server.at("shop/pipelines").files() if "/deployments/" not in f.key]
    assert [str(f) for f in files if b"ann" in f.read_bytes()] == []
    code, said = hydrotick("init", "other", "--storage", url, at=tmp_path)
    assert code == 1
    assert "is not empty" in said
    found = [*(f for f in tmp_path.rglob("*") if f.is_file()), *server.at("").files()]
    assert {"index.html", "dagster.yaml", "deployment.json"} <= {file.name for file in found}
    # Ledgers, deployments, logs, Dagster's records, the site; and all that was printed.
    contents = {str(file): file.read_bytes() for file in found}
    contents |= {str(n): text.encode() for n, text in enumerate([*said, *(t for _, t in told)])}
    for secret in (KEY, SECRET):
        assert [name for name, of in contents.items() if secret.encode() in of] == []
