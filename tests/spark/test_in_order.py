"""Sorted streams on Spark: what is gone through in an order, and what is made of its keys."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks.work import RowCounter
from hydro_core.compile import compile_text, optimized
from hydro_core.optimize.optimizer import optimize
from tests.spark.engines import on_reference, on_spark, program
from tests.spark.test_ordered_growth import ROWS, rows
from tests.tpch.answers import opened

pytestmark = pytest.mark.spark

EQUAL_ITEMS = """
s = a -> sort() -> scan(9, lambda acc, x: acc - x)
s -> out
s -> map(lambda x: {"k": 0, "v": x})
  -> aggregate(by="k", n=count_distinct("v"), all=collect_list("v")) -> listed
s -> limit(2) -> first
a -> persist() -> sort_by_key(lambda x: x % 3, descending=True) -> limit(3) -> high
a -> persist() -> map(lambda x: (x % 2, x)) -> sort() -> limit(1) -> least
"""


def test_what_equal_items_give_stands_in_the_order_in_which_they_are_gone_through(
    spark: SparkSession,
) -> None:
    ticks = [{"a": [1, 2, 1, 1]}, {"a": [0, 3, 3, 0, 3]}]
    compiled = program(EQUAL_ITEMS, {"a": "long"}, ticks)
    wanted = on_reference(compiled, ticks)
    assert wanted[0]["out"] == [8, 7, 6, 4]
    for made in (compiled, optimized(compiled)):
        found = on_spark(made, ticks, (1, 1), spark)
        assert found == wanted


STEP = "lambda acc, r: (acc * 2 + (r.v or 0)) % 1000"
OF_SORTED = f"""
s = a -> persist() -> sort_by_key(lambda r: r.v, descending=True)
s -> limit(2, by="k") -> top
s -> limit(2) -> first
s -> filter(lambda r: r.m != 1) -> scan_keyed(1, {STEP}, by="k") -> delta() -> scanned
s -> fold_keyed(1, {STEP}, by=["k", "m"]) -> changes() -> folded
a -> window(2) -> map(lambda r: (r.k, r.v or 0)) -> sort()
  -> reduce_keyed(lambda x, y: (x * 3 - y) % 100) -> reduced
a -> persist() -> sort() -> unique_keyed(by="k") -> aggregate(by="m", n=count()) -> unique
"""


def test_what_is_made_of_sorted_streams_is_what_the_definitions_say(spark: SparkSession) -> None:
    rng = Random(3)

    def row() -> dict[str, Any]:
        return {"k": rng.choice(["x", "y", None]), "m": rng.choice([0, 1]), "v": rng.choice(V)}

    ticks: list[Any] = [{"a": [row() for _ in range(rng.randint(0, 5))]} for _ in range(5)]
    compiled = program(OF_SORTED, {"a": "k string, m long, v long"}, ticks)
    made = optimized(compiled)
    used = {node.op.name for node in made.typed.graph}
    sorted_ops = {f"sorted_{op}_keyed" for op in ("scan", "fold", "reduce")}
    assert sorted_ops | {"running_top"} <= used
    wanted = on_reference(compiled, ticks)
    for ranges in ((1,) * 5, (2, 3)):
        found = on_spark(made, ticks, ranges, spark)
        for tick, (got, want) in enumerate(zip(found, wanted, strict=True)):
            for name, items in want.items():
                assert _sorted(got[name]) == _sorted(items), (ranges, tick, name)
            assert got["top"] == want["top"], "an output in an order"


V = (None, 0, 1, 1, 2, 5)


def _sorted(items: Any) -> list[str]:
    return sorted(map(repr, items))


STEPS = 'sort_by_key(lambda r: r.at) -> {op}(0, lambda acc, r: acc * 2 - r.v, by="k") -> changes()'


@pytest.mark.parametrize("op", ["fold_keyed", "scan_keyed"])
def test_a_tick_is_handed_the_rows_of_the_keys_that_come(
    op: str, tmp_path: Path, spark: SparkSession
) -> None:
    text = f"{ROWS}a -> persist() -> {STEPS.format(op=op)} -> out"
    assert not optimize(compile_text(text).typed).notes
    pipeline = opened(tmp_path, text, spark)
    pipeline.run_tick(0, rows(range(40), range(4)))
    with RowCounter(spark).counting() as touched:
        pipeline.run_tick(1, rows(range(2), range(2, 3)))
    assert touched.read == 8, "four rows of each of two keys"
