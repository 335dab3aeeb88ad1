"""Items of many columns of which a few are read: Spark takes those out of them, wherever it can."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Column, DataFrame, SparkSession

import hydro_core.spark
from hydro_core.compile import best_plan, compile_text, optimized, planned
from hydro_core.errors import DataError, InternalSparkError
from hydro_core.plan.planner import in_parts
from hydro_core.spark.executor import memory
from hydro_core.spark.executor.shell import attempt
from hydro_core.spark.frames import relation
from hydro_core.spark.pipeline.pipeline import Pipeline
from tests.spark.engines import assert_same, program
from tests.spark.pipelines import SETTINGS
from tests.support.selection import alternately_slow

pytestmark = pytest.mark.spark

AGGREGATES = (
    'median("v")',
    'collect_list("v")',
    'collect_set("v")',
    'stddev("v")',
    'count_distinct("v")',
)
TICKS = [
    {"k": [1, 2, t], "v": [t, 5, 7], "w": ["a", "b", "c"], "x": ["d", "e", "f"]} for t in range(3)
]


def of_histories(aggregate: str) -> str:
    return f"""
orders = source("k long, v long, w string, x string")
orders -> persist() -> aggregate(by="k", m={aggregate}) -> a
orders -> persist() -> b
"""


def rows(tick: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return pa.table(tick).to_pylist()


def stored(directory: Path, text: str, spark: SparkSession, few: int, *, written: bool) -> Pipeline:
    compiled = compile_text(text)
    plan = planned(compiled, None if written else best_plan(compiled))
    return Pipeline(directory, plan, SETTINGS.with_(few_rows=few, small_write_rows=few), spark)


@pytest.mark.parametrize(
    ("aggregate", "few", "written"),
    alternately_slow(AGGREGATES[:1] + AGGREGATES[3:], [100_000, 0], [True, False]),
)
def test_a_stored_history_beside_what_is_made_of_a_few_of_its_columns(
    aggregate: str, few: int, written: bool, tmp_path: Path, spark: SparkSession
) -> None:
    pipeline = stored(tmp_path, of_histories(aggregate), spark, few, written=written)
    for tick, given in enumerate(TICKS):
        pipeline.run_tick(tick, {"orders": pa.table(given)})
        found = {row["k"]: row["m"] for row in pipeline.output("a").to_pylist()}
        assert found.keys() == {k for given in TICKS[: tick + 1] for k in given["k"]}
        assert pipeline.output("b", every=True).num_rows == 3 * (tick + 1)


JOINED = """
l = source("k long, p decimal(15,2), q decimal(15,2)")
c = source("k long, s string, v long")
custs = c -> persist() -> latest(by="k", order="v")
joined = l -> persist() -> join(right=custs, on="k")
joined -> aggregate(by=["k"], r=sum(lambda x: x.p * (1 - x.q))) -> out
"""
LINES = [
    {
        "l": [{"k": k, "p": f"{t}.50", "q": "0.10"} for k in (1, 2)],
        "c": [{"k": t, "s": "a", "v": t}],
    }
    for t in range(4)
]


@pytest.mark.parametrize("optimize", [False, True], ids=["written", "optimized"])
def test_a_history_beside_the_latest_of_another_is_one_range(
    optimize: bool, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_once(first: int, last: int, longest: int | None, run: Any) -> Any:
        yield run(first, last)

    # Nothing that fails is searched for.
    monkeypatch.setattr("hydro_core.spark.executor.shell.in_parts", at_once)
    of = program(JOINED, {}, LINES)
    assert_same(optimized(of) if optimize else of, LINES, [(4,), (2, 2)], spark)


def test_an_internal_error_of_spark_is_told_at_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what Spark makes of a generator that is given columns as they come."""

    def as_they_come(frame: DataFrame, columns: list[str | Column], *, reads: Any) -> DataFrame:
        return frame.select(*columns)

    tried: list[tuple[int, int]] = []

    def counted(storage: Any, first: int, last: int) -> Any:
        tried.append((first, last))
        return attempt(storage, first, last)

    def runs(storage: Any, first: int, last: int, longest: int | None) -> Any:
        return in_parts(first, last, longest, lambda start, end: counted(storage, start, end))

    for module in (relation,):
        monkeypatch.setattr(module, "exploded", as_they_come)
    monkeypatch.setattr("hydro_core.spark.lower.keyed.exploded", as_they_come)
    monkeypatch.setattr(memory, "run_ticks", runs)
    of = program(JOINED, {}, LINES)
    with pytest.raises(InternalSparkError, match="INTERNAL_ERROR_ATTRIBUTE_NOT_FOUND") as caught:
        assert_same(of, LINES, [(4,)], spark)
    assert tried == [(0, 3)]
    assert not isinstance(caught.value, DataError)
    assert "_extract_" in str(caught.value).partition("\n")[0]
    assert caught.value.__cause__ is not None


def test_an_internal_error_leaves_a_pipeline_as_it_was(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = stored(tmp_path, of_histories(AGGREGATES[0]), spark, 100_000, written=True)
    pipeline.run_tick(0, {"orders": pa.table(TICKS[0])})
    with monkeypatch.context() as patched:
        patched.setattr(
            relation, "exploded", lambda frame, columns, *, reads: frame.select(*columns)
        )
        with pytest.raises(InternalSparkError):
            pipeline.run_tick(1, {"orders": pa.table(TICKS[1])})
    assert pipeline.last_committed == 0
    pipeline.run_tick(1, {"orders": pa.table(TICKS[1])})
    assert pipeline.output("b", every=True).num_rows == 6


GENERATORS = {"explode", "explode_outer", "inline", "inline_outer", "posexplode", "stack"}


def test_every_generator_gets_its_columns_in_one_way() -> None:
    folder = Path(hydro_core.spark.__path__[0])
    for file in folder.rglob("*.py"):
        names = [
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call)
        ]
        generators = sum(name in GENERATORS for name in names)
        assert generators == names.count("exploded"), file
