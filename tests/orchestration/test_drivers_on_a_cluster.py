"""Drivers that end, or stand still, while executors of a cluster write: nothing of theirs counts,
the next process goes on, and what is there then is what one disk would have.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.storage.lease import SECONDS
from tests.orchestration.driver_that_ends import HOST
from tests.orchestration.late import IN_TIME, LATE, OPEN, Late
from tests.orchestration.test_pipelines_in_a_store import CHANGED
from tests.support.standalone import Standalone, standalone
from tests.support.store_server import KEY, SECRET, StoreServer

pytestmark = [pytest.mark.spark, pytest.mark.slow]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Standalone]:
    credentials = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    # The executors of a driver that is gone, or stands still, and those of the next one.
    with standalone(tmp_path / "nodes", credentials, cores=2, memory="2g") as found:
        yield found


@pytest.fixture
def drivers(cluster: Standalone, server: StoreServer, tmp_path: Path) -> Iterator[Drivers]:
    found = Drivers(cluster, server, tmp_path / "there")
    try:
        yield found
    finally:
        found.end()


class Drivers:
    """Drivers of a flow, one after the other."""

    def __init__(self, cluster: Standalone, server: StoreServer, home: Path) -> None:
        self.cluster, self.server, self.home = cluster, server, home
        self.started: list[subprocess.Popen[bytes]] = []
        home.mkdir()

    @property
    def count(self) -> int:
        return len(self.started)

    def end(self) -> None:
        """Ends those that still run."""
        for driver in self.started:
            driver.kill()
            driver.wait()

    def start(self, *words: str, host: str = "") -> subprocess.Popen[bytes]:
        """Starts one; what it prints goes to files."""
        (self.home / "signalled").unlink(missing_ok=True)
        module = "tests.orchestration.driver_that_ends"
        given = [module, self.cluster.url, self.server.url, str(self.home), *words]
        named = {HOST: host} if host else {}
        number = self.count + 1
        with (
            self._file("out", number).open("wb") as out,
            self._file("errors", number).open("wb") as errors,
        ):
            driver = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", *given],
                cwd=ROOT,
                env={
                    **os.environ,
                    "PYTHONPATH": str(ROOT),
                    "AWS_EC2_METADATA_DISABLED": "true",
                    **named,
                },
                stdout=out,
                stderr=errors,
            )
        self.started.append(driver)
        return driver

    def told(self, driver: subprocess.Popen[bytes]) -> Any:
        """What one prints that comes to its end."""
        assert driver.wait(600) == 0, self.errors[-6000:]
        return json.loads(self._file("out").read_text().splitlines()[-1])

    def killed(self, driver: subprocess.Popen[bytes]) -> list[str]:
        """What executors were doing, or had written, when one was killed."""
        assert driver.wait(600) == -signal.SIGKILL, self.errors[-6000:]
        found: list[str] = json.loads((self.home / "signalled").read_text())
        return found

    @property
    def errors(self) -> str:
        return self._file("errors").read_text(errors="replace")

    def _file(self, name: str, number: int | None = None) -> Path:
        return self.home / f"{name}-{number or self.count}"


def on_one_disk(home: Path) -> list[Any]:
    """What there is after the ticks, a correction and a deployment."""
    late = Late(home, "next", "parquet")
    late.land(IN_TIME)
    late.ran((0, 1), (2, OPEN - 1))
    found: list[Any] = [late.by_name]
    late.land(LATE)
    late.open()
    late.correct(1)
    found.append(late.by_name)
    late.deploy(CHANGED)
    return [*found, late.by_name]


def test_a_driver_is_killed_in_all_that_it_does(
    spark: SparkSession, drivers: Drivers, tmp_path: Path
) -> None:
    assert spark is not None
    ticks, corrected, deployed = on_one_disk(tmp_path / "here")
    # Of a process on another machine nobody knows that it has ended: its lease has to run out.
    assert drivers.killed(drivers.start("tick", "task", "SIGKILL", host="one"))
    ended = time.time()
    told, begun, _ = drivers.told(drivers.start("tick", host="two"))
    assert told == ticks
    assert begun > ended + SECONDS / 2, "it has waited for the lease"
    (file, *_) = drivers.killed(drivers.start("correct", "written", "SIGKILL"))
    assert "/_staged/" in file
    assert drivers.told(drivers.start("look"))[0] == ticks
    assert drivers.told(drivers.start("correct"))[0] == corrected
    assert drivers.killed(drivers.start("deploy", "task", "SIGKILL"))
    assert drivers.told(drivers.start("look"))[0] == corrected
    assert drivers.told(drivers.start("deploy"))[0] == deployed
    told, _, beside = drivers.told(drivers.start("compact"))
    assert (told, beside) == (deployed, [])


def test_a_driver_that_stood_still_is_overtaken(
    spark: SparkSession, drivers: Drivers, tmp_path: Path
) -> None:
    """Its executors go on writing while another process takes over and commits the same ticks."""
    assert spark is not None
    ticks, *_ = on_one_disk(tmp_path / "here")
    still = drivers.start("tick", "task", "SIGSTOP", host="one")
    until((drivers.home / "signalled").exists, still)
    stood = time.time()
    told, begun, _ = drivers.told(drivers.start("tick", host="two"))
    assert told == ticks
    assert begun > stood + SECONDS / 2, "it has waited for the lease"
    still.send_signal(signal.SIGCONT)
    assert still.wait(300) == 1
    said = (drivers.home / "errors-1").read_text()
    assert "another writer" in said, said[-3000:]
    assert "nothing of this run counts" in said, said[-3000:]
    told, _, _ = drivers.told(drivers.start("look"))
    assert told == ticks
    told, _, beside = drivers.told(drivers.start("compact as it is"))
    assert (told, beside) == (ticks, [])


def until(holds: Callable[[], bool], driver: subprocess.Popen[bytes]) -> None:
    """Waits until something holds, while a driver runs."""
    end = time.monotonic() + 300
    while not holds():
        assert driver.poll() is None, "it has ended"
        assert time.monotonic() < end
        time.sleep(0.05)
