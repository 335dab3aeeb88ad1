"""Random programs that join histories, windows and results by a condition, or in time."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from hydro_core.compile import optimized
from hydro_core.validation.simulation.pipelines import on_pipelines
from tests.laws.conditions import CONDITIONS, NEAREST
from tests.laws.keyed_histories import BY_KEY, OVER_TIME, PER_ITEM, KeyedHistory, keyed_history
from tests.spark.pipelines import SETTINGS
from tests.spark.test_keyed_histories import WINDOWS, check, in_memory, seeds

pytestmark = pytest.mark.spark


def program(seed: int) -> KeyedHistory:
    two = NEAREST if seed % 2 else CONDITIONS
    return keyed_history(seed, kinds=(OVER_TIME, BY_KEY, BY_KEY, PER_ITEM, two, two))


@pytest.mark.parametrize("seed", seeds(4, 0, 150))
def test_in_memory(seed: int, spark: SparkSession) -> None:
    check(program(seed), seed, lambda compiled: in_memory(optimized(compiled), spark))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1030))
def test_as_written(seed: int, spark: SparkSession) -> None:
    check(program(seed), seed, lambda compiled: in_memory(compiled, spark))


@pytest.mark.parametrize("seed", seeds(1, 2000, 2020))
def test_on_tables(seed: int, spark: SparkSession) -> None:
    check(program(seed), seed, lambda compiled: on_pipelines(compiled, WINDOWS, SETTINGS))
