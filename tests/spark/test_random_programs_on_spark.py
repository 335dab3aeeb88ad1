"""Random programs on Spark give what the reference gives, however their ticks are cut into ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hydro_core.errors import HydroError
from tests.laws.programs import RandomProgram, random_program
from tests.spark.engines import cuts, on_reference, on_spark, program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS = range(1000, 1100)
pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", SEEDS)
def test_spark_is_the_reference(seed: int, spark: SparkSession) -> None:
    made = random_program(seed)
    ways = list(cuts(len(made.ticks)))
    # One way of cutting each, all of them over the seeds.
    compare(made, ways[seed % len(ways)], spark)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2000, 2060))
def test_every_cut_is_the_reference(seed: int, spark: SparkSession) -> None:
    made = random_program(seed)
    for ranges in cuts(len(made.ticks)):
        compare(made, ranges, spark)


def compare(made: RandomProgram, ranges: tuple[int, ...], spark: SparkSession) -> None:
    compiled = program(made.text, made.schemas, made.ticks)
    try:
        wanted = on_reference(compiled, made.ticks)
    except HydroError as error:
        with pytest.raises(HydroError) as caught:
            on_spark(compiled, made.ticks, ranges, spark)
        assert caught.value.code == error.code
        return
    assert repr(on_spark(compiled, made.ticks, ranges, spark)) == repr(wanted), str(made)
