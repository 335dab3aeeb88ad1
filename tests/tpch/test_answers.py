"""TPC-H's queries on Spark, with rows that come late and are corrected: at each tick the stored
output is DuckDB's answer over all rows so far, tick by tick and as a range."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.judged import Ticks, answer, as_range, differences
from benchmarks.tpch.judge import Judge
from benchmarks.tpch.programs import FIRST, NAMES, first_of, program
from tests.support.selection import mostly_slow
from tests.tpch.answers import judged, opened, small_ticks, tick_by_tick

pytestmark = pytest.mark.spark

SCALE = 0.01
TICKS = 4
BY_TICKS, BY_RANGES = ("q13", "q22"), ("q16",)
"""What runs in each test run: a padded join, a changing scalar; a semi join of dimensions."""


@pytest.fixture(scope="module")
def ticks(tmp_path_factory: pytest.TempPathFactory) -> Ticks:
    return small_ticks(SCALE, TICKS, tmp_path_factory.mktemp("tpch") / "data")


@pytest.fixture(scope="module")
def judge(ticks: Ticks) -> Iterator[Judge]:
    with Judge(ticks) as found:
        yield found


@pytest.mark.parametrize("name", mostly_slow(NAMES, BY_TICKS))
def test_tick_by_tick_the_answers_are_right(
    name: str, ticks: Ticks, judge: Judge, tmp_path: Path, spark: SparkSession
) -> None:
    wanted = judged(judge, name, ticks.count)
    pipeline = opened(tmp_path, program(name, small=True), spark)
    for tick in tick_by_tick(pipeline, ticks):
        assert differences(answer(pipeline, tick), wanted[tick]) is None, tick


@pytest.mark.parametrize("name", mostly_slow(NAMES, BY_RANGES))
def test_in_a_range_the_answers_are_right(
    name: str, ticks: Ticks, judge: Judge, tmp_path: Path, spark: SparkSession
) -> None:
    wanted = judged(judge, name, ticks.count)
    pipeline = opened(tmp_path, program(name, small=True), spark)
    as_range(pipeline, ticks, 0, ticks.count - 1)
    for tick, rows in enumerate(wanted):
        assert differences(answer(pipeline, tick), rows) is None, tick


@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST)
def test_what_is_read_first_is_right(
    name: str, ticks: Ticks, judge: Judge, tmp_path: Path, spark: SparkSession
) -> None:
    text = first_of(name, small=True)
    wanted = judged(judge, name, ticks.count)
    pipeline = opened(tmp_path, text, spark)
    most = int(text.rpartition("limit(")[2].partition(")")[0])
    for tick in tick_by_tick(pipeline, ticks):
        found = answer(pipeline, tick)
        assert len(found) == min(most, len(wanted[tick]))
        assert set(found) <= set(wanted[tick])
