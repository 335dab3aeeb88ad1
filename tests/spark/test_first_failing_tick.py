"""Of several ticks of a range that fail, the first is told, whatever of a program fails there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hydro_core.compile import CompiledProgram, best_plan, compile_text, planned
from hydro_core.errors import DataError
from hydro_core.running import read_ticks
from hydro_core.spark.pipeline.pipeline import Pipeline
from tests.support.selection import alternately_slow
from tests.support.stored import FEW, MANY, batch

pytestmark = pytest.mark.spark

SCHEMA = 'a = source("k long, v long")\nb = source("k long, w long")\n'
FAILING = "6 // r.v"
PROGRAMS = {
    "a column": f"a -> with_columns(x=lambda r: {FAILING}) -> out",
    "a filter": f"a -> filter(lambda r: {FAILING} > 1) -> out",
    "a column of a history": f"a -> persist() -> with_columns(x=lambda r: {FAILING}) -> out",
    "behind a join": 'a -> join(right=h, on="k") -> filter(lambda r: r.w // r.v > 1) -> out\n'
    "h = b -> persist()",
    "an aggregate": f'a -> persist() -> aggregate(by="k", s=sum(lambda r: {FAILING})) -> out',
    "a fold": "a -> map(lambda r: (r.k, r.v)) -> persist()"
    " -> fold_keyed(0, lambda s, v: s + 6 // v, commutative=True) -> out",
    "a window": f'a -> window(2) -> aggregate(by="k", m=max(lambda r: {FAILING})) -> out',
    "a feedback": "x = union()\na -> filter(lambda r: 6 // r.v > -9) -> x\n"
    "x -> prev() -> filter(lambda r: r.v > 5) -> x\nx -> out",
}
TICKS = [
    {
        "a": [{"k": k, "v": 0 if t in (2, 4) and k == t else 7} for k in range(5)],
        "b": [{"k": t, "w": 1}],
    }
    for t in range(6)
]
"""In tick 2 and in tick 4 one row fails."""


def compiled(name: str) -> CompiledProgram:
    text = PROGRAMS[name]
    return compile_text("".join(s for s in SCHEMA.splitlines(True) if f"{s[0]} ->" in text) + text)


@pytest.mark.parametrize(
    ("name", "optimize", "rows"), alternately_slow(PROGRAMS, [True, False], ["many", "few"])
)
def test_the_first_is_told(
    name: str, optimize: bool, rows: str, tmp_path: Path, spark: SparkSession
) -> None:
    settings = FEW if rows == "few" else MANY
    program = compiled(name)
    plan = planned(program, best_plan(program) if optimize else None)
    items = {n: stream.item for n, stream in program.typed.inputs.items()}
    given = list(read_ticks(program.typed, [{n: t[n] for n in items} for t in TICKS]))
    pipeline = Pipeline(tmp_path / "pipeline", plan, settings, spark)
    with pytest.raises(DataError) as caught:
        pipeline.run_range(0, 5, {n: batch(n, of, given, 0, 5) for n, of in items.items()})
    assert re.search(r"\btick 2\b", caught.value.diagnostics[0].message), caught.value
    assert pipeline.last_committed == 1, "earlier ticks stay"
