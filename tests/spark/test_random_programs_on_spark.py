"""Random programs on Spark give what the reference gives, however their ticks are cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from hydro_core.errors import HydroError
from tests.laws.programs import RandomProgram, random_program
from tests.spark.engines import Json, cuts, on_reference, on_spark, program
from tests.support.selection import mostly_slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("seed", mostly_slow(range(1000, 1100), 10))
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
    wanted = outcome(lambda: on_reference(compiled, made.ticks))
    assert outcome(lambda: on_spark(compiled, made.ticks, ranges, spark)) == wanted, str(made)


def outcome(run: Callable[[], Json]) -> str:
    """The outputs, or the code of the error; as text, in which NaN equals NaN."""
    try:
        return repr(run())
    except HydroError as error:
        return error.code
