"""Rows are looked up by those alone that find a partner, whatever becomes of partners."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hydro_core.compile import compile_text, optimized
from hydro_core.plan.planner import plan
from hydro_core.spark.inputs.batches import batch_of
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.store.lookups import search as searches
from hydro_core.types.arrow import arrow_type
from tests.spark.engines import on_reference
from tests.spark.pipelines import SETTINGS

pytestmark = pytest.mark.spark

READ = """
lines = source("p long, s long, n long")
parts = source("p long, brand string, version long")
offers = source("p long, s long, stock long, version long")
suppliers = source("s long, nation long, version long")
l = lines -> persist()
ps = parts -> persist() -> latest(by="p", order="version")
os = offers -> persist() -> latest(by=["p", "s"], order="version")
ss = suppliers -> persist() -> latest(by="s", order="version")
wanted = ps -> filter(lambda p: p.brand == "red")
usual = l -> aggregate(by="p", usual=avg("n"))
sold = l -> aggregate(by=["p", "s"], sold=sum("n"))
"""
PROGRAMS = {
    "usual of wanted": 'l -> join(right=wanted, on="p") -> join(right=usual, on="p")'
    " -> filter(lambda r: r.n < r.usual) -> aggregate(total=sum('n')) -> out",
    "other names": 'named = wanted -> rename(q="p") -> select("q")\n'
    'l -> join(right=named, on={"p": "q"}) -> join(right=usual, on="p") -> out',
    "semi": 'l -> join(right=wanted, on="p", how="semi") -> join(right=usual, on="p") -> out',
    "anti": 'l -> join(right=wanted, on="p", how="anti") -> join(right=usual, on="p") -> out',
    "left": 'l -> join(right=wanted, on="p", how="left") -> join(right=usual, on="p") -> out',
    "filters twice": 'few = wanted -> filter(lambda p: p.p % 2 == 0) -> select("p")\n'
    'l -> join(right=few, on="p") -> join(right=usual, on="p") -> out',
    "in plenty": 'plenty = os -> join(right=wanted, on="p", how="semi")'
    ' -> join(right=sold, on=["p", "s"]) -> filter(lambda r: r.stock > r.sold)\n'
    'ss -> join(right=plenty, on="s", how="semi") -> select("s", "nation") -> out',
    "offers of wanted": 'of_wanted = os -> join(right=wanted, on="p", suffix="_p")\n'
    'sold -> join(right=of_wanted, on=["p", "s"])'
    ' -> aggregate(by="brand", total=sum("sold"), stock=sum("stock")) -> out',
    "of both": "near = ss -> filter(lambda s: s.nation < 2)\n"
    'of = sold -> join(right=wanted, on="p") -> join(right=near, on="s", suffix="_s")\n'
    'of -> join(right=os, on=["p", "s"], suffix="_o")'
    ' -> aggregate(by="nation", k=count(), m=max("stock")) -> out',
}
SOONEST = {"usual of wanted", "left", "of both"}
"""Those that every run of the tests asks."""
TICKS = 7
CUTS = [(1,) * TICKS, (3, 1, 1, 2)]
Ticks = list[dict[str, list[dict[str, Any]]]]


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [name if name in SOONEST else pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS],
)
def test_each_of_them_is_right_however_its_ticks_are_cut(
    name: str, seed: int, tmp_path: Path, spark: SparkSession
) -> None:
    compiled = compile_text(f"{READ}{PROGRAMS[name]}\n")
    ticks = _ticks(random.Random(seed), compiled.graph.sources)
    wanted = on_reference(compiled, ticks)
    made = plan(optimized(compiled).typed)
    for cuts in CUTS:
        pipeline = Pipeline(tmp_path / str(len(cuts)), made, SETTINGS, spark)
        _run(pipeline, ticks, cuts)
        for tick, there in enumerate(wanted):
            found = pipeline.output("out", tick).drop_columns("tick").to_pylist()
            assert _sorted(found) == _sorted(there["out"]), (cuts, tick)


@pytest.mark.parametrize("name", ["semi", "other names"])
def test_of_parts_that_nobody_wants_no_earlier_line_is_looked_up(
    name: str, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: dict[str, int] = {}
    rows_of = searches.StoredSearch.rows

    def counted(search: searches.StoredSearch, arrived: Any, *, is_tick: bool) -> Any:
        given = rows_of(search, arrived, is_tick=is_tick)
        found.update({slot: rows.num_rows for slot, rows in given.items()})
        return given

    monkeypatch.setattr(searches.StoredSearch, "rows", counted)
    parts = [{"p": p, "brand": "red" if p == 0 else "blue", "version": 0} for p in range(50)]
    lines = [{"p": p, "s": 0, "n": n} for p in range(50) for n in range(20)]
    compiled = compile_text(f"{READ}{PROGRAMS[name]}\n")
    pipeline = Pipeline(tmp_path, plan(optimized(compiled).typed), SETTINGS, spark)
    one_each = [{"p": p, "s": 1, "n": 7} for p in range(50)]
    corrected = [{"p": 9, "brand": "red", "version": 1}, {"p": 10, "brand": "blue", "version": 1}]
    ticks: Ticks = [
        {"lines": lines, "parts": parts},
        {"lines": one_each, "parts": []},
        {"lines": one_each[:5], "parts": corrected},
    ]
    _run(pipeline, ticks[:2], (1, 1))
    # Those of the one part that is wanted.
    assert found["lines"] == 20
    _run(pipeline, ticks[2:], (1,), first=2)
    # And those of the parts that are corrected, of which one is wanted now.
    assert found["lines"] == 3 * 21


def _ticks(chance: random.Random, inputs: Iterable[str]) -> Ticks:
    """Few keys, so that they meet; at most one version of a key in a tick, and each is newer."""

    def of(tick: int) -> dict[str, list[dict[str, Any]]]:
        few = range(chance.choice([0, 1, 2, 4]))
        new = {
            "lines": [
                {"p": chance.randrange(6), "s": chance.randrange(4), "n": chance.randrange(9)}
                for _ in few
            ],
            "parts": [
                {"p": p, "brand": chance.choice(["red", "red", "blue"]), "version": tick}
                for p in chance.sample(range(6), chance.choice([0, 1, 3]))
            ],
            "offers": [
                {"p": p, "s": s, "stock": chance.randrange(12), "version": tick}
                for p, s in chance.sample([(p, s) for p in range(6) for s in range(4)], 3)
            ],
            "suppliers": [
                {"s": s, "nation": chance.randrange(4), "version": tick}
                for s in chance.sample(range(4), chance.choice([0, 1, 2]))
            ],
        }
        return {name: rows for name, rows in new.items() if name in set(inputs)}

    return [of(tick) for tick in range(TICKS)]


def _run(pipeline: Pipeline, ticks: Ticks, cuts: Sequence[int], first: int = 0) -> None:
    start = 0
    for length in cuts:
        some, start = range(start, start + length), start + length
        batches = {}
        for name, source in pipeline.plan.typed.inputs.items():
            rows = [(first + t, row) for t in some for row in ticks[t].get(name, [])]
            schema = pa.schema(list(arrow_type(source.item)))
            table = pa.Table.from_pylist([row for _, row in rows], schema=schema)
            batches[name] = batch_of(
                name, table, source.item, pa.array([t for t, _ in rows], pa.int64())
            )
        pipeline.run_range(first + some.start, first + some.stop - 1, batches)


def _sorted(rows: Iterable[Any]) -> list[str]:
    return sorted(map(repr, rows))
