"""The flights' outputs are what DuckDB computes from the raw data, day by day and as one range."""

from __future__ import annotations

from pathlib import Path

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from assets.flights.asset import FLIGHTS
from assets.flights.landing import DAYS, land
from hydrotick.cli.backfill import run_ticks
from hydrotick.instance.opening import open_instance
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.orchestration.flights_by_hand import QUERIES, ByHand

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

FIRST_DAYS = 4
LATER = (0, 1, 30, 31, 58, 180, 244, 303, 363, 364)
"""Among them the days of the clock changes, of the fewest flights, and of no weather."""


@pytest.fixture(scope="module")
def by_hand() -> ByHand:
    return ByHand()


@pytest.fixture(scope="module")
def first_days(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TickRunner:
    """The first days, each as a Dagster run."""
    assert spark is not None
    runner = TickRunner(ProjectSettings(home=tmp_path_factory.mktemp("flights")))
    land(runner.project.landing / "flights", days=FIRST_DAYS)
    done = list(run_ticks(FLIGHTS, runner, FIRST_DAYS - 1, lambda _: None))
    assert [tick.window.key for tick in done] == [f"2013-01-0{n}" for n in range(1, 5)]
    assert all(verdict.passed for tick in done for _, verdict in tick.report.verdicts)
    return runner


def wrong(by_hand: ByHand, runner: TickRunner, output: str, tick: int) -> tuple[int, int]:
    """How many rows of a tick are missing, and how many are too many."""
    rows = runner.pipeline(FLIGHTS).output(output, every=True)
    return by_hand.count(output, tick, rows.filter(pc.field("tick") == tick))


@pytest.mark.parametrize("tick", range(FIRST_DAYS))
@pytest.mark.parametrize("output", QUERIES)
def test_every_output_of_the_first_days(
    by_hand: ByHand, first_days: TickRunner, output: str, tick: int
) -> None:
    assert by_hand.output(output, tick).num_rows > 0
    assert wrong(by_hand, first_days, output, tick) == (0, 0)


def test_the_outputs_are_all_that_there_are(first_days: TickRunner) -> None:
    assert set(first_days.plan(FLIGHTS).graph.sinks) == set(QUERIES)


def test_dagster_has_every_day_with_its_checks(first_days: TickRunner) -> None:
    with open_instance(first_days.project.dagster_home) as instance:
        runs = instance.get_runs()
        assert [run.status.value for run in runs] == ["SUCCESS"] * FIRST_DAYS
        assert {run.tags["dagster/partition"] for run in runs} == {
            f"2013-01-0{n}" for n in range(1, FIRST_DAYS + 1)
        }


@pytest.mark.slow
def test_a_year_as_ranges(spark: SparkSession, by_hand: ByHand, tmp_path: Path) -> None:
    assert spark is not None
    runner = TickRunner(ProjectSettings(home=tmp_path))
    land(runner.project.landing / "flights")
    axis = FLIGHTS.ticks.calendar
    windows = [axis.window(tick) for tick in range(DAYS)]
    reports = list(runner.run(FLIGHTS, windows, log=lambda _: None))
    assert len(reports) == DAYS
    assert all(report.committed for report in reports), reports[-1].problem
    assert sum(report.rows["departures"] for report in reports) == 336_776
    found = {(o, t): wrong(by_hand, runner, o, t) for o in QUERIES for t in LATER}
    assert {where: count for where, count in found.items() if count != (0, 0)} == {}
