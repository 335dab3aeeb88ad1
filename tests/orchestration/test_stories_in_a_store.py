"""What is done to flows, in an order that tables and caches may not expect: a store gives what a
directory gives, and a process that stays what a new one gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.spark.pipeline.copies import verify
from hydro_core.storage.remote import RemotePath
from hydrotick.project.settings import ProjectSettings
from hydrotick.quality.judge import measure
from hydrotick.runner.report import TickReport
from hydrotick.runner.runner import TickRunner
from tests.orchestration.late import IN_TIME, LATE, OPEN, Late
from tests.orchestration.shop import Shop
from tests.orchestration.small import BATCHES, PROGRAM, land
from tests.orchestration.test_quarantine import LINES, Wrong
from tests.support.store_server import (
    Mirror,
    StoreServer,
    quick_store_server,
    with_credentials_in_jvm,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]
CHANGED = PROGRAM.replace("sum(", "max(")


@pytest.fixture
def server(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreServer]:
    with with_credentials_in_jvm(spark, monkeypatch), quick_store_server() as found:
        yield found


class _InStore(Late):
    """The same with what lands, and all that is kept, in a bucket."""

    mirror: Mirror | None = None

    def moved(self, server: StoreServer) -> Any:
        landing = replace(self.flow.landings["payments"], path="s3://landing/small/payments")
        self.flow = replace(self.flow, inputs={"payments": landing})
        self.project = replace(
            self.project, storage=server.settings, data_store="s3://landing/data"
        )
        self.mirror = Mirror(server, self.place, "small/payments")
        self.open()
        return self

    def open(self) -> None:
        if self.mirror is not None:
            self.mirror.sync()
        super().open()

    def run(self, first: int, last: int) -> list[TickReport]:
        if self.mirror is not None:
            self.mirror.sync()
        return super().run(first, last)


class _LateInStore(_InStore, Late):
    pass


class _WrongInStore(_InStore, Wrong):
    pass


Story = Callable[[Any], Iterator[object]]


def compared(server: StoreServer, home: Path, story: Story, of: tuple[Any, Any, Any]) -> None:
    """Runs a story in a directory and in a store, step by step."""
    here_as, there_as, given = of
    here = here_as(home / "here", **given)
    there = there_as(home / "there", **given).moved(server)
    for step, (found, wanted) in enumerate(zip(story(there), story(here), strict=True)):
        assert found == wanted, step
    for late in (here, there):
        assert verify(late.runner.directory(late.flow), measure).problems == ()
    assert isinstance(there.runner.directory(there.flow), RemotePath)


def said(report: TickReport) -> tuple[bool, str]:
    """What is told of a tick, wherever its files are."""
    return report.committed, re.sub(r"\S*/(?=\w)", "", report.problem)


def long(late: Late) -> Iterator[Mapping[str, list[str]]]:
    """A process runs ticks, and goes on whatever others have done to the flow meanwhile."""
    late.land([(tick, *row) for tick in range(12) for row in BATCHES[tick % len(BATCHES)]])
    late.ran(*((tick, tick) for tick in range(4)))
    stays = late.runner

    def on(*ticks: int) -> Mapping[str, list[str]]:
        if not isinstance(late, _Anew):
            late.runner = stays
        late.ran(*((tick, tick) for tick in ticks))
        late.open()
        return late.by_name

    late.deploy(CHANGED)
    yield on(4, 5)
    late.rollback()
    yield on(6)
    late.runner.pipeline(late.flow).compact(0)
    late.deploy(CHANGED)
    yield on(7, 8)
    late.correct(2)
    yield on(9)
    late.rollback()
    late.runner.pipeline(late.flow).compact(0)
    yield on(10, 11)


class _Anew(Late):
    """Of which each step is done by a new process."""


def test_a_process_that_stays(server: StoreServer, tmp_path: Path) -> None:
    compared(server, tmp_path, long, (_Anew, _LateInStore, {"kind": "parquet"}))


def test_a_process_that_stays_in_a_directory(tmp_path: Path) -> None:
    found, wanted = (of(tmp_path / of.__name__, kind="parquet") for of in (Late, _Anew))
    for step, (one, other) in enumerate(zip(long(found), long(wanted), strict=True)):
        assert one == other, step


def accepted(late: Late) -> Iterator[object]:
    """Late rows are refused until they are accepted, or corrected; rows go, and it waits."""
    late.land(IN_TIME)
    late.ran((0, 1), (2, OPEN - 1))
    late.land(LATE)
    late.open()
    (report,) = late.run(OPEN, OPEN)
    yield said(report)
    yield {name: one.late for name, one in late.accept().items()}
    yield late.accept()
    late.ran((OPEN, OPEN))
    yield late.by_name
    late.land([(0, "later", 1)])
    late.open()
    (report,) = late.run(OPEN + 1, OPEN + 1)
    yield said(report)
    late.correct(0)
    yield late.by_name
    late.ran((OPEN + 1, OPEN + 1))
    yield late.by_name
    (late.place / "2.parquet").unlink()
    late.open()
    (report,) = late.run(OPEN + 2, OPEN + 2)
    yield said(report)
    late.accept()
    late.ran((OPEN + 2, OPEN + 2))
    yield late.by_name


def test_what_is_accepted(server: StoreServer, tmp_path: Path) -> None:
    given = {"policy": "refuse", "kind": "parquet", "removed": "hold"}
    compared(server, tmp_path, accepted, (Late, _LateInStore, given))


def mended(flow: Wrong) -> Iterator[object]:
    """Wrong rows are set apart, mended, and come back with a correction."""
    flow.all_put()
    flow.ran((0, 2))
    yield flow.rows
    flow.put("1", [LINES[1][0], '{"tick": 1, "user": "bob", "amount": 4}'])
    flow.open()
    yield str(flow.waiting)
    flow.correct(1)
    yield flow.rows, flow.by_name
    flow.allow(0)
    flow.put("3", ['{"tick": 3, "user": "dan"'])
    flow.open()
    (report,) = flow.run(3, 3)
    yield said(report)
    flow.allow(1)
    flow.open()
    flow.ran((3, 3))
    yield flow.rows, flow.by_name


def test_what_was_in_quarantine(server: StoreServer, tmp_path: Path) -> None:
    compared(server, tmp_path, mended, (Wrong, _WrongInStore, {}))


class _ShopInStore(Shop):
    """Two flows, all that they keep in a bucket."""

    def __init__(self, home: Path, server: StoreServer) -> None:
        super().__init__(home)
        self.settings = replace(
            self.settings, storage=server.settings, data_store="s3://landing/shop"
        )
        self.mirror = Mirror(server, home / "landing", "shop/landing")
        self.mirror.sync()
        self.runner = TickRunner(self.settings)


def fed(shop: Shop) -> Iterator[object]:
    """What one flow commits, takes back and computes again, the other follows."""
    shop.run(1)
    yield shop.contents()
    land(
        ProjectSettings(home=shop.settings.home),
        [*BATCHES[:1], [("ann", 40), ("eve", 2)], *BATCHES[2:]],
    )
    if isinstance(shop, _ShopInStore):
        shop.mirror.sync()
    shop.runner = TickRunner(shop.settings)
    window = shop.small.ticks.calendar.window(1)
    yield [r.committed for r in shop.runner.correct(shop.small, window, lambda _: None)]
    shop.run(3)
    yield shop.contents()
    shop.runner.pipeline(shop.small).compact(0)
    shop.run(4)
    yield shop.contents()


def test_flows_that_feed(server: StoreServer, tmp_path: Path) -> None:
    here, there = Shop(tmp_path / "here"), _ShopInStore(tmp_path / "there", server)
    for step, (found, wanted) in enumerate(zip(fed(there), fed(here), strict=True)):
        assert found == wanted, step
    for flow in there.flows:
        assert verify(there.runner.directory(flow), measure).problems == ()
