"""Killed anywhere and started again, ticks leave what they leave uninterrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from random import Random

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from assets.flights.asset import FLIGHTS
from hydrotick.cli.backfill import run_ticks
from hydrotick.code_location.asset_specs import asset_key
from hydrotick.instance.opening import open_instance
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.orchestration import small
from tests.orchestration.flights_by_hand import QUERIES, ByHand
from tests.orchestration.test_flights import wrong

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

ROOT = Path(__file__).parents[2]
TICKS = 4
DAYS = 3


@pytest.fixture(scope="module")
def uninterrupted(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, list[str]]:
    assert spark is not None
    flow, runner = small.opened(tmp_path_factory.mktemp("uninterrupted"))
    list(run_ticks(flow, runner, TICKS - 1, lambda _: None))
    return small.contents(flow, runner)


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("computing", marks=pytest.mark.slow),
        pytest.param("state/payments", marks=pytest.mark.slow),
        "tables",
        pytest.param("ledger", marks=pytest.mark.slow),
    ],
)
def test_killed_within_a_tick(
    uninterrupted: Mapping[str, list[str]], tmp_path: Path, moment: str
) -> None:
    small.opened(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.orchestration.killed", str(tmp_path), "1", moment],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        check=False,
        timeout=300,
    )
    assert done.returncode == -signal.SIGKILL
    flow, runner = small.opened(tmp_path)
    assert runner.next_tick(flow) == (2 if moment == "ledger" else 1)
    assert _statuses(runner.project) == {"2026-01-01": "SUCCESS", "2026-01-02": "STARTED"}

    list(run_ticks(flow, runner, TICKS - 1, lambda _: None))
    assert small.contents(flow, runner) == uninterrupted
    with open_instance(runner.project.dagster_home) as instance:
        statuses = [run.status for run in instance.get_runs()]
        assert statuses.count(dg.DagsterRunStatus.FAILURE) == 1
        assert statuses.count(dg.DagsterRunStatus.SUCCESS) == len(statuses) - 1
        for asset in ("state/payments", "totals", "before"):
            key = asset_key(flow, asset)
            assert len(instance.get_materialized_partitions(key)) == TICKS


def _statuses(project: ProjectSettings) -> dict[str, str]:
    with open_instance(project.dagster_home) as instance:
        return {run.tags["dagster/partition"]: run.status.value for run in instance.get_runs()}


@pytest.mark.slow
def test_the_demo_killed_at_any_time(tmp_path: Path) -> None:
    moments = Random(tmp_path.name)
    home = tmp_path / "home"
    command = [sys.executable, "-m", "hydro_core.cli.main", "demo", "--days", str(DAYS)]
    environment = {**os.environ, "HYDROTICK_HOME": str(home)}
    runner = TickRunner(ProjectSettings(home=home))
    for _ in range(3):
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE) as demo:
            before = runner.next_tick(FLIGHTS)
            end = time.monotonic() + 300
            # The first tick takes long to begin; from there on any moment will do.
            while not (home / "pipelines" / "flights" / "_lock").exists():
                assert time.monotonic() < end
                time.sleep(0.1)
            time.sleep(moments.uniform(0, 20))
            demo.kill()
        assert TickRunner(ProjectSettings(home=home)).next_tick(FLIGHTS) >= before
    done = subprocess.run(
        command, cwd=ROOT, env=environment, check=True, timeout=600, capture_output=True
    )
    assert b"Who keeps New York waiting" in done.stdout
    by_hand = ByHand()
    runner = TickRunner(ProjectSettings(home=home))
    assert runner.next_tick(FLIGHTS) == DAYS
    for output in QUERIES:
        for tick in range(DAYS):
            assert wrong(by_hand, runner, output, tick) == (0, 0)
