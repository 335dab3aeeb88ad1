"""What a process holds after ranges and ticks is what it held before them."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.measure import plan_of
from hydro_core.errors import DataError
from hydro_core.settings import Settings
from hydro_core.spark.frames import materialize
from hydro_core.spark.inputs.batches import Batch, batch_of
from hydro_core.spark.pipeline.kept_plan import KEPT_PLANS
from hydro_core.spark.pipeline.pipeline import Pipeline
from tests.spark.pipelines import SETTINGS
from tests.support.refused import Refused

pytestmark = pytest.mark.spark

PROGRAM = """
lines = source("key long, amount long")
sums = lines -> persist() -> aggregate(by="key", total=sum("amount"))
sums -> changes() -> changed
sums -> map(lambda r: {"key": r.key, "part": 100 // (r.total - 7)}) -> parts
"""
ROWS = 200


@pytest.fixture
def by_spark() -> Settings:
    """Settings in which a range of some hundred rows is one of many."""
    return SETTINGS.with_(few_rows=ROWS // 2, small_write_rows=ROWS // 2)


def held_rows(spark: SparkSession) -> set[int]:
    """The numbers of the RDDs that the executors keep."""
    context: Any = spark.sparkContext._jsc
    return set(dict(context.getPersistentRDDs()))


def run_range(pipeline: Pipeline, amount: int = 8) -> None:
    """Runs two more ticks as a range."""
    first = pipeline.next_tick
    item = pipeline.plan.typed.inputs["lines"].item
    rows = pa.table({"key": list(range(ROWS)), "amount": [amount] * ROWS})
    ticks = pa.array([first + i % 2 for i in range(ROWS)], pa.int64())
    batches: dict[str, Batch] = {"lines": batch_of("lines", rows, item, ticks)}
    pipeline.run_range(first, first + 1, batches)


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was held, as it is."""
    found: list[str] = []
    note = materialize._note

    def noting(kept: Any) -> None:
        found.append(str(kept.schema))
        note(kept)

    monkeypatch.setattr(materialize, "_note", noting)
    return found


def test_a_range_leaves_no_rows_with_the_executors(
    tmp_path: Path, spark: SparkSession, by_spark: Settings, noted: list[str]
) -> None:
    pipeline = Pipeline(tmp_path, plan_of(PROGRAM), by_spark, spark)
    before = held_rows(spark)
    for _ in range(2):
        run_range(pipeline)
        assert held_rows(spark) <= before
    assert noted


def test_neither_does_a_range_that_fails(
    tmp_path: Path, spark: SparkSession, by_spark: Settings, noted: list[str], refused: Refused
) -> None:
    pipeline = Pipeline(tmp_path, plan_of(PROGRAM), by_spark, spark)
    before = held_rows(spark)
    with refused(DataError, "runtime", at="5:13"):
        run_range(pipeline, amount=7)
    assert noted
    assert held_rows(spark) <= before


def test_rows_of_a_kept_plan_are_gone_between_ticks_and_the_plan_stays(
    tmp_path: Path, spark: SparkSession
) -> None:
    pipeline = Pipeline(tmp_path, plan_of(PROGRAM), SETTINGS, spark)
    for tick in range(4):
        pipeline.run_tick(tick, {"lines": pa.table({"key": [tick % 2], "amount": [8]})})
        if tick == 1:
            known, plans = held_rows(spark), len(KEPT_PLANS)
    assert (held_rows(spark), len(KEPT_PLANS)) == (known, plans)


def test_the_plan_of_a_pipeline_that_is_gone_is_dropped(
    tmp_path: Path, spark: SparkSession
) -> None:
    gc.collect()
    before = len(KEPT_PLANS)
    pipeline = Pipeline(tmp_path, plan_of(PROGRAM), SETTINGS, spark)
    for tick in range(2):
        pipeline.run_tick(tick, {"lines": pa.table({"key": [tick], "amount": [8]})})
    assert len(KEPT_PLANS) == before + 1
    del pipeline
    gc.collect()
    assert len(KEPT_PLANS) == before
