"""The shared vectors on Spark: tick by tick, as one range, and as two that follow each other.

As they are written, and as the optimizer plans them for ranges. Every run takes few that have all
operators with all kinds of inputs; `make test-all` takes all.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from hydro_core.errors import HydroError
from tests.golden.vectors import Vector, calendar_of, key, vectors
from tests.spark.coverage import compiled, covering, errors_of
from tests.spark.engines import Json, on_spark
from tests.support.selection import mostly_slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VECTORS = vectors("dfir", "fuzz", "ordered")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.vectors,
    pytest.mark.skipif(not VECTORS, reason="the shared vectors are not here"),
]


def check(
    vector: Vector, ranges: tuple[int, ...], spark: SparkSession, *, optimize: bool = False
) -> None:
    ticks = vector.get("ticks", [{}])
    if "error" in vector:
        with pytest.raises(HydroError) as caught:
            on_spark(compiled(vector, optimize=optimize), ticks, ranges, spark, calendar_of(vector))
        assert caught.value.code in errors_of(vector)
        return
    found = on_spark(compiled(vector, optimize=optimize), ticks, ranges, spark, calendar_of(vector))
    compare(vector, found)


def compare(vector: Vector, found: Json) -> None:
    for got, wanted in zip(found, vector["expect"], strict=True):
        assert got.keys() == wanted.keys()
        for name, items in wanted.items():
            collect = list if name in vector.get("ordered", []) else Counter
            assert collect(map(key, got[name])) == collect(map(key, items))


def halves(vector: Vector) -> tuple[int, int]:
    first = len(vector["ticks"]) // 2
    return first, len(vector["ticks"]) - first


def fails_on_spark(vector: Vector) -> bool:
    """Whether an error is one of a tick: others are the compiler's, which has tests of its own."""
    try:
        compiled(vector, optimize=False)
    except HydroError:
        return False
    return "error" in vector


COVERING = [*covering(VECTORS, optimize=False), *filter(fails_on_spark, VECTORS)]


@pytest.mark.parametrize("vector", mostly_slow(VECTORS, COVERING), ids=lambda v: v["name"])
def test_tick_by_tick(vector: Vector, spark: SparkSession) -> None:
    check(vector, (1,) * len(vector.get("ticks", [{}])), spark)


LONG = [v for v in VECTORS if len(v.get("ticks", [])) > 1]


@pytest.mark.slow
@pytest.mark.parametrize("optimize", [False, True], ids=["written", "optimized"])
@pytest.mark.parametrize("vector", LONG, ids=lambda v: v["name"])
def test_every_one_as_a_range(vector: Vector, optimize: bool, spark: SparkSession) -> None:
    check(vector, (len(vector["ticks"]),), spark, optimize=optimize)


@pytest.mark.slow
@pytest.mark.parametrize("optimize", [False, True], ids=["written", "optimized"])
@pytest.mark.parametrize("vector", LONG, ids=lambda v: v["name"])
def test_two_ranges(vector: Vector, optimize: bool, spark: SparkSession) -> None:
    check(vector, halves(vector), spark, optimize=optimize)


@pytest.mark.parametrize("vector", covering(LONG, optimize=False), ids=lambda v: v["name"])
def test_one_range_of_every_operator_and_kind(vector: Vector, spark: SparkSession) -> None:
    check(vector, (len(vector["ticks"]),), spark)


@pytest.mark.parametrize("vector", covering(LONG, optimize=True), ids=lambda v: v["name"])
def test_two_ranges_of_every_operator_and_kind(vector: Vector, spark: SparkSession) -> None:
    check(vector, halves(vector), spark, optimize=True)
