"""Spark reads and writes in a bucket as in a directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from hydro_core.cli.main import main
from hydro_core.errors import InfrastructureError
from hydro_core.spark.executor.shell import failures_as_errors
from hydro_core.spark.inputs.looks import LandingTable
from hydro_core.spark.inputs.reading import InputBatches
from hydro_core.ticks.calendar import Calendar
from hydro_core.types.ddl import parse_ddl
from tests.support.refused import Refused
from tests.support.store_server import KEY, SECRET, Mirror, StoreServer

pytestmark = pytest.mark.spark

ITEM = parse_ddl("user string, v long")
ROWS = [(1 + n % 3, f"u{n % 7}", n) for n in range(60)]
PROGRAM = (
    'x = source("user string, v long")\nx -> persist() -> aggregate(by="user", v=sum("v")) -> out\n'
)


@pytest.fixture(autouse=True)
def _java_knows(spark: SparkSession) -> Iterator[None]:
    # The JVM of these tests runs already: it is given the credentials as Java's own properties.
    jvm = spark._jvm
    given = {"aws.accessKeyId": KEY, "aws.secretAccessKey": SECRET}
    for name, value in given.items():
        jvm.System.setProperty(name, value)
    workers = spark.sparkContext.environment
    before = dict(workers)
    workers |= {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    yield
    workers.clear()
    workers |= before
    for name in given:
        jvm.System.clearProperty(name)


def landed(server: StoreServer, home: Path, kind: str) -> str:
    """The rows in a bucket, by the name of the folder."""
    days = [{"day": datetime(2026, 1, d, tzinfo=UTC).date(), "user": u, "v": v} for d, u, v in ROWS]
    table, folder = pa.Table.from_pylist(days), home / kind
    folder.mkdir()
    match kind:
        case "delta":
            write_deltalake(folder, table)
        case "parquet":
            pq.write_table(table, folder / "a [1].parquet")
        case "csv":
            pyarrow.csv.write_csv(table, folder / "a.csv")
        case _:
            lines = [json.dumps({**row, "day": str(row["day"])}) for row in days]
            (folder / "a.jsonl").write_text("\n".join(lines))
    Mirror(server, folder, kind).sync()
    return kind


@pytest.mark.parametrize("kind", ["delta", "parquet", "csv", "jsonl"])
def test_a_range_of_many_rows_is_read_by_spark(
    spark: SparkSession,
    server: StoreServer,
    tmp_path: Path,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hydro_core.spark.inputs.snapshot._HERE", 0)
    place = server.at(landed(server, tmp_path, kind))
    calendar = Calendar(datetime(2026, 1, 1, tzinfo=UTC))
    batches = InputBatches(
        {"x": LandingTable(place, "day")}, {"x": ITEM}, lambda: spark, 0, calendar
    )
    batch = batches.read(0, 1)["x"]
    found = sorted((row.t, row.item.user, row.item.v) for row in batch.frame(spark).collect())
    assert found == sorted((d - 1, u, v) for d, u, v in ROWS if d <= 2)
    assert batch.read.rows == 40


@pytest.mark.parametrize(
    ("kind", "engine"),
    [
        ("csv", "reference"),
        ("delta", "spark"),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (("delta", "reference"), ("parquet", "spark"), ("csv", "spark"))
        ),
    ],
)
def test_from_a_bucket_to_a_bucket(
    server: StoreServer,
    tmp_path: Path,
    kind: str,
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.chdir(tmp_path)
    Path("p.hydro").write_text(PROGRAM)
    folder = landed(server, tmp_path, kind)
    words = ["run", "p.hydro", "--engine", engine, "--every", "1d"]
    words += ["--input", f"x=s3://landing/{folder}:day", "--out", "s3://landing/results"]
    for _ in range(2):
        # What a run has written is replaced by the next.
        assert main(words) == 0
        files = list(server.at("results/out").files())
        tables = [pq.read_table(pa.BufferReader(file.read_bytes())) for file in files]
        rows = [row for table in tables for row in table.to_pylist()]
        assert len(rows) == 21
        last = {row["user"]: row["v"] for row in rows if row["tick"] == 2}
        assert last == {f"u{k}": sum(v for _, u, v in ROWS if u == f"u{k}") for k in range(7)}
    said = capsys.readouterr()
    assert "s3://landing/results/out: 21 rows of 3 ticks" in said.out
    assert SECRET not in said.out + said.err
    server.put("other/out/theirs.csv", b"a")
    assert main([*words[:-1], "s3://landing/other"]) == 1
    assert "holds what no run of ours has written" in capsys.readouterr().err


def test_what_a_store_refuses_spark_tells(
    spark: SparkSession, server: StoreServer, tmp_path: Path, refused: Refused
) -> None:
    place = server.at(landed(server, tmp_path, "delta"))
    calendar = Calendar(datetime(2026, 1, 1, tzinfo=UTC))
    batches = InputBatches(
        {"x": LandingTable(place, "day")}, {"x": ITEM}, lambda: spark, 0, calendar
    )
    frame = batches.read(0, 1)["x"].frame(spark)
    with (
        server.failing(lambda *_: (403, "AccessDenied")),
        refused(InfrastructureError, "config") as caught,
        failures_as_errors(),
    ):
        frame.collect()
    assert SECRET not in str(caught.value)


def test_a_worker_without_credentials_is_told(
    spark: SparkSession,
    server: StoreServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refused: Refused,
) -> None:
    monkeypatch.setattr("hydro_core.spark.inputs.snapshot._HERE", 0)
    place = server.at(landed(server, tmp_path, "csv"))
    calendar = Calendar(datetime(2026, 1, 1, tzinfo=UTC))
    batches = InputBatches(
        {"x": LandingTable(place, "day")}, {"x": ITEM}, lambda: spark, 0, calendar
    )
    nobody = {"AWS_ACCESS_KEY_ID": "", "AWS_EC2_METADATA_DISABLED": "true", "HOME": str(tmp_path)}
    monkeypatch.setattr(spark.sparkContext, "environment", nobody)
    with refused(InfrastructureError, "config"), failures_as_errors():
        batches.read(0, 1)
