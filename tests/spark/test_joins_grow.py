"""The stored rows that a late tick of a join is handed: no more where four times as many came
before, whatever the join keeps and however its rows match.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.work import RowCounter
from hydro_core.compile import compile_text, optimized
from hydro_core.plan.planner import plan
from hydro_core.spark.pipeline.pipeline import Pipeline
from tests.spark.pipelines import SETTINGS

pytestmark = pytest.mark.spark

SCHEMAS = """l = source("k long, at long, n long"); r = source("k long, since long, price long")
ls = l -> persist(); rs = r -> persist()
"""
WHERE = "where=lambda l, r: r.since <= l.at and l.at <= r.since + 5"
JOINS = {
    **{how: f'join(right=rs, on="k", how="{how}", {WHERE})' for how in (
        "inner", "left", "right", "outer", "semi", "anti"
    )},
    "asof": 'join_asof(right=rs, on="k")',
    "nearest": 'join_asof(right=rs, on="k", direction="nearest", within=3, how="inner")',
}  # fmt: skip
QUICK = {"outer", "asof"}
ENDS = {
    "changes": "changes() -> out",
    "running": 'aggregate(by="k", n=count()) -> out',
    "batch": "",
}
LITTLE, MUCH, LATE = 500, 2000, 10


def batch(first: int, rows: int) -> dict[str, pa.Table]:
    """Rows of both sides, as many of each key: a key has two of each."""
    numbers = np.arange(first, first + rows)
    keys, times = numbers // 2, numbers % 7
    return {
        "l": pa.table({"k": keys, "at": times, "n": numbers}),
        "r": pa.table({"k": keys, "since": times, "price": numbers}),
    }


def handed(program: str, before: int, directory: Path, spark: SparkSession) -> int:
    """The stored rows that Spark is handed in a late tick, which meets a few keys of before."""
    pipeline = Pipeline(directory, plan(optimized(compile_text(program)).typed), SETTINGS, spark)
    pipeline.run_tick(0, batch(0, before))
    with RowCounter(spark).counting() as touched:
        pipeline.run_tick(1, batch(before // 2, LATE))
    return touched.read


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in JOINS]
)
def test_a_late_tick_is_handed_what_it_meets(
    name: str, end: str, tmp_path: Path, spark: SparkSession
) -> None:
    left, last = ("l", "out") if end == "batch" else ("ls", ENDS[end])
    if end == "batch" and name in ("right", "outer"):
        pytest.skip("the rows of the history that no new row meets are all there again")
    program = f"{SCHEMAS}{left} -> {JOINS[name]} -> {last}"
    little, much = (
        handed(program, before, tmp_path / str(before), spark) for before in (LITTLE, MUCH)
    )
    assert 0 < little <= much <= 1.5 * little + 10, (little, much)


def after_a_window(program: str, before: int, directory: Path, spark: SparkSession) -> int:
    """The stored rows that Spark is handed in a tick in which rows leave alone; what comes of it is
    the same as without lookups.
    """
    made, found, gone = plan(optimized(compile_text(program)).typed), [], []
    for few in (1, SETTINGS.spark.few_rows):
        pipeline = Pipeline(directory / str(few), made, SETTINGS.with_(few_rows=few), spark)
        few_rows = {"l": batch(before - LATE // 2, LATE)["l"]}  # half of them find nobody
        pipeline.run_tick(0, few_rows | {"r": batch(0, before)["r"]})
        pipeline.run_tick(1, {"l": batch(before // 4, LATE)["l"]})
        with RowCounter(spark).counting() as touched:
            pipeline.run_tick(2, {})
        found.append(touched.read)
        gone.append(sorted(map(repr, pipeline.output("out").to_pylist())))
    assert gone[0] == gone[1] != []
    return found[1]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "semi" else pytest.mark.slow) for n in JOINS]
)
def test_a_history_is_looked_up_by_what_leaves_a_window(
    name: str, tmp_path: Path, spark: SparkSession
) -> None:
    if name in ("right", "outer"):
        pytest.skip("the rows of the history that no row of the window meets are all there again")
    program = f"{SCHEMAS}l -> window(2) -> {JOINS[name]} -> changes() -> out"
    little, much = (
        after_a_window(program, before, tmp_path / str(before), spark) for before in (LITTLE, MUCH)
    )
    assert 2 * LATE < little <= much <= 1.5 * little + 10, (little, much)
