"""Joins of windows with histories in stored pipelines, tick by tick and in ranges: what leaves a
window takes back what it met.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.compile import compile_text, optimized
from hydro_core.plan.planner import plan
from hydro_core.spark.pipeline.pipeline import Pipeline
from tests.spark.engines import on_reference
from tests.spark.pipelines import SETTINGS
from tests.spark.test_partners import _run, _sorted

pytestmark = pytest.mark.spark

READ = 'a = source("k string, v long"); b = source("k string, w long"); pb = b -> persist()\n'
HOWS = ("inner", "left", "outer", "semi", "anti")
PROGRAMS = {
    **{
        f"window, {how}": f'x = a -> window(2) -> join(right=pb, on="k", how="{how}")\n'
        for how in HOWS
    },
    **{
        f"history, {how}": f'w = a -> window(3)\nx = pb -> join(right=w, on="k", how="{how}")\n'
        for how in HOWS
    },
    "latest": 'g = b -> latest(by="k", order="w")\nx = a -> window(2) -> join(right=g, on="k")\n',
    "one table": 'a -> persist() -> aggregate(by="k", n=count()) -> counted\n'
    "x = a -> window(2) -> filter(lambda r: (r.v or 0) > 0)"
    ' -> join(right=pb, on="k", how="semi")\n',
}
QUICK = {"window, anti", "one table"}
TICKS = 7
CUTS = [(1,) * TICKS, (2, 1, 1, 1, 2)]


def ticks(seed: int) -> list[dict[str, list[dict[str, Any]]]]:
    """Few keys, null among them; what is joined with comes in the first ticks above all."""
    rng = random.Random(seed)

    def rows(most: int, name: str, values: list[int | None]) -> list[dict[str, Any]]:
        keys = ["x", "y", "z", None]
        return [
            {"k": rng.choice(keys), name: rng.choice(values)} for _ in range(rng.randint(0, most))
        ]

    return [
        {"a": rows(3, "v", [None, 0, 1, 2]), "b": rows(4 if tick < 2 else 1, "w", [0, 1, 2])}
        for tick in range(TICKS)
    ]


@pytest.mark.parametrize("seed", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in PROGRAMS]
)
def test_what_leaves_takes_back_what_it_met(
    name: str, seed: int, tmp_path: Path, spark: SparkSession
) -> None:
    compiled, given = compile_text(f"{READ}{PROGRAMS[name]}x -> changes() -> out\n"), ticks(seed)
    wanted, made = on_reference(compiled, given), plan(optimized(compiled).typed)
    assert any(there["out"] for there in wanted)
    for cuts in CUTS:
        pipeline = Pipeline(tmp_path / str(len(cuts)), made, SETTINGS, spark)
        _run(pipeline, given, cuts)
        for tick, there in enumerate(wanted):
            rows = pipeline.output("out", tick).drop_columns("tick").to_pylist()
            found = [[row["_1"], row["_2"]] for row in rows]
            assert _sorted(found) == _sorted(there["out"]), (cuts, tick)
