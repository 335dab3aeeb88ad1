"""Who has the greatest of stored totals is right at every tick, of few rows handed to Spark."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.measure import plan_of
from benchmarks.work import RowCounter
from hydro_core.compile import optimized
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rework import correction
from hydro_core.spark.store.lookups import lookup_files
from hydro_core.spark.store.lookups import search as extremes
from tests.spark.engines import Json, on_reference, on_spark, program
from tests.spark.pipelines import SETTINGS

pytestmark = pytest.mark.spark

PROGRAM = """
sales = source("who long, amount long")
people = source("id long, name string, version long")
totals = sales -> persist() -> aggregate(by="who", total=sum("amount"))
greatest = totals -> aggregate(total=max("total"))
least = totals -> aggregate(low=min("total"))
known = people -> persist() -> latest(by="id", order="version")
totals -> join(right=greatest, on="total") -> join(right=known, on={"who": "id"})
  -> select("who", "total", "name") -> best
totals -> join(right=least, on={"total": "low"}, how="semi") -> worst
totals -> top(3, order="total", descending=True) -> join(right=known, on={"who": "id"})
  -> select("who", "total", "name") -> first
"""
KEYS, TICKS = 40, 8
Batch = dict[str, pa.Table]


def given(tick: int, late: int = 0) -> Batch:
    """Some sales, most of which go on from those of before; all in the first tick."""
    rng = Random(tick)
    who = range(KEYS) if tick == 0 else [rng.randrange(KEYS) for _ in range(3)]
    sales = [{"who": key, "amount": rng.randrange(-9, 9)} for key in who]
    sales += [{"who": tick % 5, "amount": 40 if tick % 3 else -40}, {"who": 7, "amount": late}]
    people = [
        {"id": key, "name": f"{key} at {tick}", "version": tick}
        for key in (range(KEYS) if tick == 0 else (tick % 5, tick))
    ]
    return {
        "sales": pa.Table.from_pylist(
            sales, pa.schema([("who", pa.int64()), ("amount", pa.int64())])
        ),
        "people": pa.Table.from_pylist(people),
    }


def wanted(batches: list[Batch]) -> dict[str, list[dict[str, Any]]]:
    totals: dict[int, int] = {}
    names: dict[int, str] = {}
    for batch in batches:
        for row in batch["sales"].to_pylist():
            totals[row["who"]] = totals.get(row["who"], 0) + row["amount"]
        names |= {row["id"]: row["name"] for row in batch["people"].to_pylist()}
    rows = [{"who": who, "total": n} for who, n in sorted(totals.items())]
    first = sorted(rows, key=lambda r: (-r["total"], r["who"]))[:3]
    most, least = max(totals.values()), min(totals.values())
    best = [r for r in rows if r["total"] == most]
    named = {
        name: [r | {"name": names[r["who"]]} for r in of]
        for name, of in (("best", best), ("first", first))
    }
    return named | {"worst": [r for r in rows if r["total"] == least]}


def check(pipeline: Pipeline, batches: list[Batch]) -> None:
    for name, right in wanted(batches).items():
        found = pipeline.output(name, len(batches) - 1).to_pylist()
        rows = sorted(({k: v for k, v in r.items() if k != "tick"} for r in found), key=str)
        assert rows == sorted(right, key=str), (name, len(batches))


def test_the_greatest_is_right_after_whatever_was_done(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup_files, "INDEXED_ROWS", 1)
    monkeypatch.setattr(extremes, "FIRST_TAKEN", 2)
    pipeline = Pipeline(tmp_path, plan_of(PROGRAM), SETTINGS, spark)
    batches: list[Batch] = []
    for tick in range(TICKS):
        batches.append(given(tick))
        with RowCounter(spark).counting() as touched:
            pipeline.run_tick(tick, batches[tick])
        check(pipeline, batches)
        assert tick == 0 or touched.read < KEYS, tick
        if tick == TICKS // 2:
            pipeline.compact()
    # A late sale lets another one be the greatest, and a tick go on from there.
    again = TICKS - 2
    with correction(pipeline, again) as rework:
        for tick in (again, again + 1):
            batches[tick] = given(tick, late=90 if tick == again else 0)
            rework.staging.run_tick(tick, batches[tick])
        rework.replace()
    check(pipeline, batches)
    batches.append(given(TICKS, late=-200))
    pipeline.run_tick(TICKS, batches[TICKS])
    check(pipeline, batches)


IN_MEMORY = """
last = a -> persist() -> latest(by="k", order="at") -> select("k", "v")
most = last -> aggregate(v=max("v"))
last -> join(right=most, on="v") -> best
most -> greatest
last -> top(2, order="v", descending=True) -> first
names = b -> persist() -> latest(by="k", order="at") -> select("k", w=lambda r: r.v)
having = last -> join(right=most, on="v", how="semi")
names -> join(right=having, on="k") -> joined
"""


VALUES: dict[str, list[Any]] = {
    "double": [None, 0.0, -0.0, float("nan"), 1.5],
    "string": [None, "", "A", "\U0001f600", "\uffff"],
}


@pytest.mark.slow
@pytest.mark.parametrize("of", VALUES)
def test_ranges_and_nasty_values_are_what_the_definitions_say(of: str, spark: SparkSession) -> None:
    values, rng = VALUES[of], Random(of)

    def rows(tick: int, many: int) -> list[dict[str, Any]]:
        return [
            {"k": rng.randrange(6), "v": rng.choice(values), "at": 10 * tick + i}
            for i in range(many)
        ]

    ticks = [{"a": rows(t, rng.choice([0, 1, 4])), "b": rows(t, 2)} for t in range(9)]
    written = program(IN_MEMORY, dict.fromkeys("ab", f"k long, v {of}, at long"), ticks)
    made = optimized(written)
    right = on_reference(written, ticks)
    for ranges in [(1,) * 9, (1, 3, 2, 3)]:
        assert text(on_spark(made, ticks, ranges, spark)) == text(right), ranges


def text(found: Json) -> str:
    """Which of two equal zeros an output has is not said."""
    return repr(found).replace("-0.0", "0.0")
