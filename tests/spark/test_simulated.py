"""Simulated pipelines give what the program gives, and one that forgets is caught."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.compile import compile_text
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.prepared import PreparedRange
from hydro_core.ticks.calendar import Calendar
from hydro_core.validation.simulation.pipelines import on_pipelines
from hydro_core.validation.simulation.simulate import Simulation, SimulationResult, Subject
from tests.spark.pipelines import SETTINGS

pytestmark = pytest.mark.spark

WINDOWS = Calendar(datetime(2024, 1, 1, tzinfo=UTC), "1d").window
PROGRAM = """
pay = source("user string, amount long")
pay -> persist() -> aggregate(by="user", total=sum("amount")) -> totals
pay -> map(lambda p: (p.user, p.amount)) -> sort() -> in_order
pay -> map(lambda p: p.amount) -> persist() -> amounts
"""


def simulated(runs: int, seconds: float) -> SimulationResult:
    subject = Subject(compile_text(PROGRAM), WINDOWS, SETTINGS)
    pipelines = on_pipelines(subject.program, WINDOWS, SETTINGS)
    return Simulation(subject, pipelines).run(runs, 1, seconds, lambda _: None)


def test_ranges_and_crashes_do_not_matter(spark: SparkSession) -> None:
    found = simulated(4, 0)
    assert found.failed is None
    assert found.crashes > 1
    assert found.ticks > found.ranges > found.runs


@pytest.mark.slow
def test_a_range_that_loses_its_last_tick_is_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = Pipeline.prepare

    def loses(self: Pipeline, first: int, last: int, batches: Any, **given: Any) -> PreparedRange:
        if first < last:
            batches = {name: batch.within(first, last - 1) for name, batch in batches.items()}
        return prepare(self, first, last, batches, **given)

    monkeypatch.setattr(Pipeline, "prepare", loses)
    found = simulated(10, 20).failed
    assert found is not None
    assert found.difference.way == "pipeline"
    assert found.case.ranges == (2,)
    assert found.case.crash is None
