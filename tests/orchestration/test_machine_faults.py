"""What a machine does to a tick is told in a line or two, costs nothing, and is tried again."""

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

import dagster as dg
import psutil
import pytest
from pyspark.sql import SparkSession

from assets.chat.asset import CHAT
from hydro_core.spark.pipeline_jobs import RangeJobs
from hydro_core.spark.pipeline_verify import verify
from orchestration.runner import TickRunner
from orchestration.settings import ProjectSettings
from tests.orchestration import small

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

ROOT = Path(__file__).parents[2]
SECONDS = 300
HYDROTICK = [sys.executable, "-m", "hydro_core.cli.main"]
TICKS, BEFORE = 24, 8


def _environment(home: Path) -> dict[str, str]:
    return {
        **os.environ,
        "HYDROTICK_HOME": str(home),
        "HYDROTICK_RANGE_TICKS": str(BEFORE),
        "PYTHONWARNINGS": "ignore",
    }


def _run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HYDROTICK, *words],
        cwd=ROOT,
        env=_environment(home),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def _is_told(done: subprocess.CompletedProcess[str], *says: str) -> None:
    """It failed, in at most two lines: what happened, where, and what to do."""
    assert done.returncode == 1, done.stdout + done.stderr
    error, cure = done.stderr.splitlines()
    assert error.startswith("error[")
    assert cure.startswith("help: ")
    for words in says:
        assert words in done.stderr


def _is_intact(project: ProjectSettings, ticks: int) -> None:
    runner = TickRunner(project)
    assert runner.next_tick(CHAT) == ticks
    assert verify(runner.directory(CHAT)).problems == ()


def _status(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_run(home, "status", "chat", "--format", "json").stdout)
    return dict(found["flows"][0])


def _goes_on(project: ProjectSettings) -> None:
    done = _run(project.home, "backfill", "chat")
    assert done.returncode == 0, done.stderr
    _is_intact(project, TICKS)
    assert _status(project.home)["failed"] is None


class _Disk:
    """A small disk of its own, mounted somewhere."""

    def __init__(self, place: Path) -> None:
        self._place, self._filler = place, place / "filler"

    def mount(self) -> None:
        self._place.mkdir(parents=True)
        words = ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(self._place)]
        if subprocess.run(words, capture_output=True, check=False).returncode:
            pytest.skip("to mount a disk takes the rights of root")

    def unmount(self) -> None:
        subprocess.run(["umount", str(self._place)], check=False)

    def fill(self, but: int) -> None:
        """Takes all of it but so many bytes."""
        self.free()
        with self._filler.open("wb") as filler:
            there = os.statvfs(self._place)
            filler.write(b"\0" * (there.f_bavail * there.f_bsize - but))

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)

    def set_writable(self, writable: bool) -> None:
        how = "rw" if writable else "ro"
        subprocess.run(["mount", "-o", f"remount,{how}", str(self._place)], check=True)


@pytest.fixture(params=[".", "pipelines"])
def small_disk(
    tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[ProjectSettings, _Disk]]:
    """A home that is on a small disk, or that has the tables on one; eight ticks are committed."""
    home = tmp_path / "home"
    disk = _Disk(home / request.param)
    disk.mount()
    try:
        assert CHAT.land is not None
        CHAT.land(ProjectSettings(home=home).landing)
        last = CHAT.ticks.calendar.window(BEFORE - 1).key
        done = _run(home, "backfill", "chat", "--to", last)
        assert done.returncode == 0, done.stderr
        yield ProjectSettings(home=home), disk
    finally:
        disk.unmount()


@pytest.mark.slow
def test_a_disk_that_is_full_or_read_only(small_disk: tuple[ProjectSettings, _Disk]) -> None:
    project, disk = small_disk
    for left in (0, 20_000):
        disk.fill(but=left)
        _is_told(_run(project.home, "backfill", "chat"), "the disk is full", str(project.home))
        disk.free()
        _is_intact(project, BEFORE)
    disk.set_writable(False)
    done = _run(project.home, "backfill", "chat")
    _is_told(done, "the file system is read-only", str(project.home))
    assert _run(project.home, "status", "chat").returncode in (0, 1)
    disk.set_writable(True)
    _is_intact(project, BEFORE)
    status = _status(project.home)
    assert not status["stopped"]
    assert status["failed"] is None or not status["failed"]["judged"]
    _goes_on(project)


def _jvms(of: int) -> list[psutil.Process]:
    children = psutil.Process(of).children(recursive=True)
    return [child for child in children if child.name() == "java"]


@pytest.mark.slow
def test_a_jvm_that_is_killed_in_the_middle_of_a_tick(tmp_path: Path) -> None:
    project = ProjectSettings(home=tmp_path / "home")
    assert CHAT.land is not None
    CHAT.land(project.landing)
    lock = project.pipelines / "chat" / "_lock"
    with subprocess.Popen(
        [*HYDROTICK, "backfill", "chat"],
        cwd=ROOT,
        env=_environment(project.home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as command:
        _until(lambda: lock.exists() and bool(_jvms(command.pid)))
        time.sleep(6)
        for jvm in _jvms(command.pid):
            jvm.send_signal(signal.SIGKILL)
        out, err = command.communicate(timeout=SECONDS)
    done = subprocess.CompletedProcess((), command.returncode, out, err)
    _is_told(done, "Spark's JVM ended", "HYDROTICK_SPARK_MEMORY")
    _is_intact(project, TickRunner(project).next_tick(CHAT))
    status = _status(project.home)
    assert (status["failed"]["judged"], status["stopped"]) == (False, False)
    assert "is tried again" in status["next"]
    _goes_on(project)


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("rows_at_hand", [100, 0])
def test_a_landed_file_that_goes_away_while_it_is_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_hand: int
) -> None:
    assert spark is not None
    flow, runner = small.opened(tmp_path)
    settings = runner.settings.with_(small_write_rows=rows_at_hand)
    monkeypatch.setattr(type(runner), "settings", property(lambda _: settings))
    (landed,) = (runner.project.landing / "small" / "payments").glob("*.parquet")
    kept, compute = landed.read_bytes(), RangeJobs.compute
    windows = [small.TickAxis(flow.ticks).window(tick) for tick in (0, 1)]

    def computes(jobs: RangeJobs, *arguments: Any) -> Any:
        # What is at hand was read by now; Spark reads when it computes.
        landed.unlink(missing_ok=True)
        return compute(jobs, *arguments)

    if rows_at_hand:
        landed.unlink()
    else:
        monkeypatch.setattr(RangeJobs, "compute", computes)
    (report,) = runner.run(flow, windows[:1], lambda _: None)
    assert not report.committed
    assert not report.judged
    assert "a file went away while it was read" in report.problem
    assert landed.name in report.problem
    assert report.cure.startswith("see that nothing removes files")
    assert runner.next_tick(flow) == 0
    landed.write_bytes(kept)
    monkeypatch.setattr(RangeJobs, "compute", compute)
    with dg.DagsterInstance.ephemeral() as instance:
        assert small.Run(flow, runner, instance)(0, 1).success
    assert runner.next_tick(flow) == 2
