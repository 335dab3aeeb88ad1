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


class Drivers:
    """Drivers of a flow, one after the other."""

    def __init__(self, cluster: Standalone, server: StoreServer, home: Path) -> None:
        self.cluster, self.server, self.home = cluster, server, home
        self.count = 0
        home.mkdir()

    def start(self, *words: str, host: str = "") -> subprocess.Popen[bytes]:
        """Starts one; what it prints goes to files."""
        self.count += 1
        (self.home / "signalled").unlink(missing_ok=True)
        module = "tests.orchestration.driver_that_ends"
        given = [module, self.cluster.url, self.server.url, str(self.home), *words]
        named = {HOST: host} if host else {}
        with self._file("out").open("wb") as out, self._file("errors").open("wb") as errors:
            return subprocess.Popen(
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

    def _file(self, name: str) -> Path:
        return self.home / f"{name}-{self.count}"


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
    spark: SparkSession, server: StoreServer, cluster: Standalone, tmp_path: Path
) -> None:
    assert spark is not None
    ticks, corrected, deployed = on_one_disk(tmp_path / "here")
    drivers = Drivers(cluster, server, tmp_path / "there")
    # Of a process on another machine nobody knows that it has ended: its lease has to run out.
    assert drivers.killed(drivers.start("tick", "task", "SIGKILL", host="one"))
    since = time.monotonic()
    told, refused, _ = drivers.told(drivers.start("tick", host="two"))
    assert told == ticks
    assert refused, "it has waited for the lease"
    assert time.monotonic() - since < SECONDS + 300
    (file, *_) = drivers.killed(drivers.start("correct", "written", "SIGKILL"))
    assert "/_beside/" in file
    assert drivers.told(drivers.start("look"))[0] == ticks
    told, refused, _ = drivers.told(drivers.start("correct"))
    assert (told, refused) == (corrected, 0)
    assert drivers.killed(drivers.start("deploy", "task", "SIGKILL"))
    assert drivers.told(drivers.start("look"))[0] == corrected
    assert drivers.told(drivers.start("deploy"))[0] == deployed
    told, _, beside = drivers.told(drivers.start("compact"))
    assert (told, beside) == (deployed, [])


def test_a_driver_that_stood_still_is_overtaken(
    spark: SparkSession, server: StoreServer, cluster: Standalone, tmp_path: Path
) -> None:
    """Its executors go on writing while another process takes over and commits the same ticks."""
    assert spark is not None
    ticks, *_ = on_one_disk(tmp_path / "here")
    drivers = Drivers(cluster, server, tmp_path / "there")
    still = drivers.start("tick", "task", "SIGSTOP", host="one")
    try:
        until((drivers.home / "signalled").exists, still)
        first, errors = drivers.count, drivers.errors
        told, refused, _ = drivers.told(drivers.start("tick", host="two"))
        assert told == ticks
        assert refused
        still.send_signal(signal.SIGCONT)
        assert still.wait(300) == 1, errors
    finally:
        still.kill()
        still.wait()
    said = (drivers.home / f"errors-{first}").read_text()
    assert "another writer has taken over" in said or "has committed" in said, said[-3000:]
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
