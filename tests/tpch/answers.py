"""TPC-H's queries as pipelines, and whether what they store is what DuckDB says of all rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from benchmarks.judged import Row, Ticks, differences
from benchmarks.tpch.data import as_ticks, made
from benchmarks.tpch.judge import Judge
from benchmarks.tpch.programs import sql
from hydro_core.compile import compile_text, optimized
from hydro_core.plan.planner import plan
from hydro_core.settings import Settings
from hydro_core.spark.pipeline.pipeline import Pipeline

SETTINGS = Settings().with_(master="local[2]", memory="1g")


def small_ticks(scale: float, ticks: int, directory: Path) -> Ticks:
    """A few ticks, in each of which thirty rows of four dimensions are corrected."""
    later = np.arange(1, ticks)
    often = {n: np.repeat(later, 30) for n in ("customer", "part", "supplier", "partsupp")}
    seldom = {"nation": later[1::2], "region": later[2::2]}
    return as_ticks(made(scale, directory), np.ones(ticks), often | seldom, late=0.02)


def opened(directory: Path, text: str, spark: SparkSession) -> Pipeline:
    """A pipeline of a program by its optimized plan."""
    return Pipeline(directory, plan(optimized(compile_text(text)).typed), SETTINGS, spark)


def tick_by_tick(pipeline: Pipeline, ticks: Ticks) -> Iterator[int]:
    """Runs the ticks; gives each when it is committed."""
    for tick in range(ticks.count):
        pipeline.run_tick(tick, ticks.batch(tick, pipeline.plan.graph.sources))
        yield tick


def judged(judge: Judge, name: str, ticks: int) -> list[list[Row]]:
    """What is right at each tick: it is not the same at all of them, and not always nothing."""
    found = [judge.rows(sql(name, small=True), tick) for tick in range(ticks)]
    assert any(differences(rows, found[-1]) for rows in found), "nothing changes from tick to tick"
    return found
