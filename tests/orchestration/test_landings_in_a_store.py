"""Flows whose inputs land in a bucket: what is committed is what a directory gives."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from pyspark.sql import SparkSession

from hydro_core.spark.pipeline.copies import verify
from hydrotick.quality.judge import measure
from hydrotick.runner.report import TickReport
from tests.orchestration.late import IN_TIME, LATE, OPEN, Late, Row
from tests.support.store_server import (
    KEY,
    SECRET,
    Mirror,
    StoreServer,
)

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
PROGRAM = """payments = source("user string, amount long")
payments -> persist() -> aggregate(by="user", total=sum("amount")) -> totals
"""


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Flows without a session of their own use the shared one."""


class InStore(Late):
    """The small flow, whose input lands in a bucket."""

    def __init__(self, server: StoreServer, home: Path, policy: str, kind: str) -> None:
        super().__init__(home, policy, kind)
        landing = replace(self.flow.inputs["payments"], path="s3://landing/small/payments")
        self.flow = replace(self.flow, inputs={"payments": landing})
        self.project = replace(self.project, storage=server.settings)
        self.mirror = Mirror(server, self.place, "small/payments")
        self.open()

    def land(self, rows: Sequence[Row], name: str = "") -> Path:
        found = super().land(rows, name)
        self.mirror.sync()
        return found


def story(late: Late, policy: str) -> list[list[TickReport]]:
    """Ticks one by one and together, rows that come late, and a correction."""
    late.land(IN_TIME)
    done = [late.run(0, 1), late.run(2, OPEN - 1)]
    late.land(LATE)
    late.open()
    done.append(late.run(OPEN, OPEN + 1))
    if policy == "next":
        done.append(late.correct(1))
    return done


@pytest.mark.parametrize(
    ("kind", "policy"),
    [pytest.param("delta", "correct", marks=pytest.mark.slow), ("parquet", "next")],
)
def test_late_rows_and_corrections(
    server: StoreServer, tmp_path: Path, kind: str, policy: str
) -> None:
    here, there = (
        Late(tmp_path / "here", policy, kind),
        InStore(server, tmp_path / "there", policy, kind),
    )
    told = [
        [(report.window.key, report.committed, report.noticed) for done in found for report in done]
        for found in (story(here, policy), story(there, policy))
    ]
    assert told[0] == told[1]
    assert here.contents == there.contents
    assert verify(there.runner.directory(there.flow), measure).problems == ()
    secrets = [
        file
        for file in (tmp_path / "there").rglob("*")
        if file.is_file()
        and {KEY, SECRET} & {s for s in (KEY, SECRET) if s.encode() in file.read_bytes()}
    ]
    assert secrets == []


def test_a_store_that_fails_in_a_tick_leaves_what_was_committed(
    server: StoreServer, tmp_path: Path
) -> None:
    late = InStore(server, tmp_path, "next", "parquet")
    late.land(IN_TIME)
    late.ran((0, 1))
    before = late.contents
    late.open()
    with server.failing(lambda *_: (403, "AccessDenied")):
        (report,) = late.run(2, 2)
    assert not report.committed
    assert "these credentials have not the right to list it" in str(report.failure)
    assert late.contents == before
    with server.failing(lambda number, *_: (503, "SlowDown") if number % 3 == 1 else None):
        late.ran((2, 2))
    assert late.contents != before


ASSET = """program: p.hydro
ticks: {start: 2026-01-01, every: 1d, end: 2026-01-05}
inputs:
  payments: {path: "s3://landing/rows", column: day, wait: landed}
"""


@pytest.mark.dagster
def test_from_the_command_line(server: StoreServer, tmp_path: Path) -> None:
    folder = tmp_path / "assets" / "small"
    folder.mkdir(parents=True)
    (folder / "p.hydro").write_text(PROGRAM)
    (folder / "asset.yaml").write_text(ASSET)
    said = f'[storage]\nendpoint = "{server.url}"\nregion = "us-east-1"\npatience = 5\n'
    (tmp_path / "hydrotick.toml").write_text(said + '[spark]\nmaster = "local[2]"\n')
    for day in (1, 2, 3, 4):
        server.put(f"rows/{day}.csv", f"day,user,amount\n2026-01-0{day},ann,{day}\n".encode())

    def hydrotick(*words: str, env: Mapping[str, str] = MappingProxyType({})) -> tuple[int, str]:
        known = {n: v for n, v in os.environ.items() if not n.startswith("HYDROTICK")}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "hydro_core.cli.main", *words],
            cwd=tmp_path,
            env={**known, "PYTHONPATH": str(ROOT), **env},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    wrong = {"AWS_SECRET_ACCESS_KEY": SECRET + "wrong"}
    told = [hydrotick("doctor", "--no-spark")]
    with server.failing(lambda *_: (403, "SignatureDoesNotMatch")):
        told.append(hydrotick("backfill", "small", env=wrong))
    told += [hydrotick("backfill", "small"), hydrotick("show", "small", "totals", "--limit", "9")]
    server.put("rows/late.csv", b"day,user,amount\n2026-01-02,bob,7\n")
    told.append(hydrotick("status", "small"))
    assert [code for code, _ in told] == [0, 1, 0, 0, 0], told
    assert "the credentials are not those of anybody it knows" in told[1][1]
    # The fourth tick waits for a row of a later day.
    assert told[3][1].splitlines() == [
        "user  total",
        "ann       6",
        "1 row(s) as of tick 2026-01-03",
    ]
    assert "late" in told[4][1], told[4]
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 20
    assert [str(f) for f in files if SECRET.encode() in f.read_bytes()] == []
    assert not any(SECRET in text for _, text in told)
