"""Nexmark's queries on Spark, with events that come late: at each tick the stored output is what
DuckDB says of all events so far, tick by tick and as a range."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.judged import Ticks, answer, as_range, differences
from benchmarks.nexmark.data import events
from benchmarks.nexmark.programs import NAMES, Judge, program, sql
from hydro_core.compile import executable
from hydro_core.spark.pipeline.pipeline import Pipeline
from tests.spark.pipelines import SETTINGS
from tests.support.selection import mostly_slow

pytestmark = pytest.mark.spark

TICKS, EVENTS = 4, 20_000
SAMPLE = ("q05", "q09")
"""What runs in each test run: windows of time, the best of a join."""


@pytest.fixture(scope="module")
def ticks() -> Ticks:
    return events(EVENTS, TICKS)


@pytest.fixture(scope="module")
def judge(ticks: Ticks) -> Iterator[Judge]:
    with Judge(ticks) as found:
        yield found


@pytest.mark.parametrize("name", mostly_slow(NAMES, SAMPLE))
def test_answers_are_right_at_every_tick(
    name: str, ticks: Ticks, judge: Judge, tmp_path: Path, spark: SparkSession
) -> None:
    wanted = [judge.rows(sql(name), tick) for tick in range(ticks.count)]
    assert all(wanted), "there is something at each tick"
    assert differences(wanted[0], wanted[-1]), "something changes"
    plan = executable(program(name))
    singly, whole = (Pipeline(tmp_path / side, plan, SETTINGS, spark) for side in ("a", "b"))
    for tick in range(ticks.count):
        singly.run_tick(tick, ticks.batch(tick, plan.graph.sources))
        assert differences(answer(singly, tick), wanted[tick]) is None, tick
    as_range(whole, ticks, 0, ticks.count - 1)
    for tick, rows in enumerate(wanted):
        assert differences(answer(whole, tick), rows) is None, tick
