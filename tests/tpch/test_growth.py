"""The stored rows that Spark is handed in a late tick of TPC-H's queries: as many, whether much or
little came before, where the tick looks up what it meets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from benchmarks.judged import Ticks, as_range
from benchmarks.tpch.data import as_ticks, made
from benchmarks.tpch.programs import NAMES, program
from benchmarks.work import RowCounter
from tests.tpch.answers import opened

pytestmark = pytest.mark.spark

LITTLE, MUCH = 0.0025, 0.01
ORDERS, CORRECTIONS = 20, 3
"""What the late tick brings: orders, and corrections of each of four dimensions."""
GROWS = {
    "q11": "the value of each part is compared with the whole, which has changed",
    "q22": "all customers are compared with the mean, which has changed",
}
"""Queries whose ticks go through all of something, and what that is."""
MORE = 2.0
"""What it is handed of four times the history: chance says which keys it meets."""


def late_tick(scale: float, directory: Path) -> Ticks:
    """All of a scale factor but a few orders, and a tick of these and of corrections."""
    tables = made(scale, directory)
    shares = np.array([tables["orders"].num_rows - ORDERS, ORDERS])
    once = np.full(CORRECTIONS, 1)
    return as_ticks(
        tables, shares, dict.fromkeys(("customer", "part", "supplier", "partsupp"), once)
    )


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> list[Ticks]:
    place = tmp_path_factory.mktemp("tpch")
    return [late_tick(scale, place / str(scale)) for scale in (LITTLE, MUCH)]


def handed(name: str, ticks: Ticks, directory: Path, spark: SparkSession) -> int:
    """The stored rows that Spark is handed in the late tick of a query."""
    pipeline = opened(directory, program(name, small=True), spark)
    as_range(pipeline, ticks, 0, 0)
    with RowCounter(spark).counting() as touched:
        pipeline.run_tick(1, ticks.batch(1, pipeline.plan.graph.sources))
    return touched.read


def test_what_is_looked_up_is_counted(tmp_path: Path, spark: SparkSession) -> None:
    """Of a count that is always 0 nothing would ever grow."""
    assert handed("q03", late_tick(LITTLE, tmp_path / "data"), tmp_path / "pipeline", spark) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.xfail(reason=GROWS[n]) if n in GROWS else ())
        for n in NAMES
    ],
)
def test_a_late_tick_is_handed_what_it_meets(
    name: str, histories: list[Ticks], tmp_path: Path, spark: SparkSession
) -> None:
    little, much = (
        handed(name, ticks, tmp_path / str(i), spark) for i, ticks in enumerate(histories)
    )
    assert much <= MORE * little + 10, (little, much)
