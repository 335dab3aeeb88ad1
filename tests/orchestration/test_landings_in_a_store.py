"""Flows whose inputs land in a bucket: what is committed is what a directory gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hydro_core.spark.pipeline.verify import verify
from hydro_core.storage.store import bucket_store
from hydrotick.quality.facts import measure
from hydrotick.runner.report import TickReport
from tests.orchestration.late import IN_TIME, LATE, OPEN, Late, Row
from tests.support.store_server import (
    KEY,
    SECRET,
    Mirror,
    StoreServer,
    store_server,
    with_credentials,
)

pytestmark = pytest.mark.spark


@pytest.fixture
def server(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreServer]:
    assert spark is not None
    with_credentials(monkeypatch)
    bucket_store.cache_clear()
    with store_server() as found:
        yield found


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


@pytest.mark.parametrize(("kind", "policy"), [("delta", "correct"), ("parquet", "next")])
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
