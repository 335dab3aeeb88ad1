"""Random programs that order the rows of keys: however ticks are cut, Spark gives what the
reference says, and tells its changes as it does.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from hydro_core.compile import optimized
from hydro_core.validation.simulation.pipelines import on_pipelines
from tests.laws.ordered_histories import ordered_history
from tests.spark.pipelines import SETTINGS
from tests.spark.test_keyed_histories import WINDOWS, check, in_memory, seeds

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", seeds(6, 0, 300))
def test_in_memory(seed: int, spark: SparkSession) -> None:
    made = ordered_history(seed)
    check(made, seed, lambda compiled: in_memory(optimized(compiled), spark))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1060))
def test_as_written(seed: int, spark: SparkSession) -> None:
    check(ordered_history(seed), seed, lambda compiled: in_memory(compiled, spark))


@pytest.mark.parametrize("seed", seeds(1, 2000, 2040))
def test_on_tables(seed: int, spark: SparkSession) -> None:
    made = ordered_history(seed)
    check(made, seed, lambda compiled: on_pipelines(compiled, WINDOWS, SETTINGS))
