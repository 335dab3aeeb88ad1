"""Late right rows of an as-of join: which left rows are handed to Spark, and what comes of it."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.work import RowCounter
from hydro_core.compile import compile_text, optimized
from hydro_core.plan.lookups import lookups
from hydro_core.plan.planner import plan
from hydro_core.spark.pipeline.pipeline import Pipeline
from tests.spark.engines import on_reference, on_spark
from tests.spark.pipelines import SETTINGS

pytestmark = pytest.mark.spark

PROGRAM = """l = source("k long, at {place}, n long")
r = source("k long, since {place}, price long")
rs = r -> persist()
l -> persist() -> {filtered}join_asof(right=rs, on="k", {how}) -> changes() -> out
"""
SIDES = {"l": ("k", "at", "n"), "r": ("k", "since", "price")}
ROWS, APART = 600, 10


def _pipeline(text: str, directory: Path, spark: SparkSession) -> Pipeline:
    return Pipeline(directory, plan(optimized(compile_text(text)).typed), SETTINGS, spark)


def _batch(rows: dict[str, list[tuple[int, ...]]]) -> dict[str, pa.Table]:
    return {
        name: pa.table(
            {
                column: pa.array([row[i] for row in rows.get(name, [])], pa.int64())
                for i, column in enumerate(columns)
            }
        )
        for name, columns in SIDES.items()
    }


@pytest.mark.parametrize("direction", ["backward", "forward"])
def test_a_late_right_row_is_handed_the_left_rows_up_to_the_next_one(
    direction: str, tmp_path: Path, spark: SparkSession
) -> None:
    text = PROGRAM.format(place="long", filtered="", how=f'direction="{direction}"')
    pipeline = _pipeline(text, tmp_path, spark)
    rights = [(1, at, at) for at in range(0, ROWS, APART)]
    lefts = [(1, at, at) for at in range(ROWS)]
    pipeline.run_tick(0, _batch({"l": lefts, "r": rights}))
    with RowCounter(spark).counting() as touched:
        pipeline.run_tick(1, _batch({"r": [(1, ROWS // 2 + 5, -1)]}))
    changed = pipeline.output("out", 1).num_rows
    assert changed == APART, "five rows go and five come"
    assert len(rights) < touched.read <= len(rights) + 2 * APART, "not all left rows of the key"


PLACES = {
    "long": lambda n: n,
    "date": lambda n: (date(2020, 1, 1) + timedelta(days=n)).isoformat(),
}


@pytest.mark.parametrize(
    ("place", "how", "filtered"),
    [
        ("long", 'direction="backward"', ""),
        ("date", 'direction="forward", how="inner"', "filter(lambda r: r.n != 1) -> "),
    ],
)
def test_late_rows_of_both_sides_give_what_the_definitions_say(
    place: str, how: str, filtered: str, spark: SparkSession
) -> None:
    text = PROGRAM.format(place=place, filtered=filtered, how=how)
    rng, made = Random(7), PLACES[place]

    def row(columns: tuple[str, ...]) -> dict[str, Any]:
        at = rng.choice([None, *range(12)])
        values = rng.choice([None, 1, 2]), None if at is None else made(at), rng.randint(0, 3)
        return dict(zip(columns, values, strict=True))

    ticks: list[Any] = [
        {name: [row(columns) for _ in range(rng.randint(0, 5))] for name, columns in SIDES.items()}
        for _ in range(6)
    ]
    compiled = compile_text(text)
    plan_ = optimized(compiled)
    needed = lookups(plan(plan_.typed), plan_.typed.graph.sinks).values()
    assert any(one.bounds and one.bounds.last for slot in needed for one in slot.found)
    wanted = on_reference(compiled, ticks)
    for ranges in ((1,) * 6, (2, 4)):
        assert on_spark(plan_, ticks, ranges, spark) == wanted, ranges
