"""Rows that come late into keys of `over`: stored pipelines give what the definitions give, tick by
tick and in ranges, corrected and in large files whose rows are looked up; and read what changes.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hydro_core.compile import CompiledProgram, compile_text, optimized
from hydro_core.plan.planner import plan
from hydro_core.reference.interpreter import run_ticks
from hydro_core.running import read_ticks
from hydro_core.spark.inputs.batches import batch_of
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rework import correction
from hydro_core.spark.pipeline.rows import output_items
from hydro_core.spark.store.lookups import lookup_files
from hydro_core.spark.store.lookups.lookup_files import LOOKUPS
from hydro_core.types.arrow import to_arrow
from hydro_core.types.values import canonical
from tests.spark.pipelines import SETTINGS

pytestmark = pytest.mark.spark

Row = dict[str, Any]
SOURCE = 'a = source("k string, m long, at double, v long")\n'
COLUMNS = (
    "n=row_number(), r=rank(), d=dense_rank(), "
    'l=lag("v", 2, default=-1), t=running(sum("v")), mean=running(avg("v")), '
    'best=running(max_by("v", "m")), near=rolling(sum("v"), rows=3)'
)
ORDERS = (
    'by="k", order="at"',
    'by=["k", "m"], order="v", descending=True',
    'by="k", order=["at", "m"]',
    'by="m", order="k", descending=True',
)
OTHERS = {
    ORDERS[0]: ", s=session(gap=1.0)",
    ORDERS[1]: ', p=running(sum("v"), peers=True), after=lead("v", 2), f=running(count())',
    ORDERS[3]: ', p=running(avg("v"), peers=True), w=running(max_by("v", "at"), peers=True)',
}
TICKS, FIRST = 6, 60


def program(order: str) -> str:
    return f"{SOURCE}a -> persist() -> over({order}, {COLUMNS}{OTHERS.get(order, '')}) -> out"


def made(rng: random.Random, rows: int) -> list[Row]:
    """Rows of few keys; nulls, ties, and rows that are equal in all."""
    found: list[Row] = []
    for _ in range(rows):
        row = {
            "k": rng.choice([None, "a", "b"]),
            "m": rng.choice([None, 0, 1]),
            "at": rng.choice([None, 0.0, -0.0, float("nan"), *(n / 2 for n in range(9))]),
            "v": rng.choice([None, *range(6)]),
        }
        found += [row] * rng.choice([1, 1, 1, 2])
    return found


def batches(seed: int) -> list[list[Row]]:
    rng = random.Random(seed)
    return [made(rng, FIRST), *(made(rng, rng.randrange(4)) for _ in range(TICKS - 1))]


def by_definition(of: CompiledProgram, ticks: Sequence[list[Row]]) -> list[Counter[Any]]:
    given = read_ticks(of.typed, [{"a": rows} for rows in ticks])
    return [bag(found["out"]) for found in run_ticks(of.typed, of.strata, given)]


def bag(items: Sequence[Any]) -> Counter[Any]:
    # Which of two equal zeros an output has is not said.
    return Counter(repr(canonical(item)).replace("-0.0", "0.0") for item in items)


def stored(pipeline: Pipeline, ticks: int = TICKS) -> list[Counter[Any]]:
    spec = pipeline.output_tables["out"]
    return [bag(output_items(pipeline.output("out", tick), spec)) for tick in range(ticks)]


def run(
    pipeline: Pipeline, of: CompiledProgram, ticks: Sequence[list[Row]], first: int, last: int
) -> None:
    """The ticks as one range."""
    item = of.typed.inputs["a"].item
    rows = [(tick, row) for tick in range(first, last + 1) for row in ticks[tick]]
    column: Any = to_arrow([row for _, row in rows], item)
    table = pa.Table.from_struct_array(column)
    given = {"a": batch_of("a", table, item, pa.array([tick for tick, _ in rows], pa.int64()))}
    pipeline.run_range(first, last, given)


WAYS = [
    pytest.param(order, large, marks=() if large and i < 2 else pytest.mark.slow)
    for i, order in enumerate(ORDERS)
    for large in (True, False)
]
"""Of large files rows are looked up by hashes beside them."""


@pytest.mark.parametrize(("order", "large"), WAYS)
def test_ticks_ranges_and_corrections(
    order: str, large: bool, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup_files, "INDEXED_ROWS", 1 if large else 1 << 15)
    of, ticks = compile_text(program(order)), batches(len(order))
    pipeline = Pipeline(tmp_path, plan(optimized(of).typed), SETTINGS, spark)
    assert any(node.op.name == "running_over" for node in pipeline.plan.graph)
    for first, last in ((0, 0), (1, 1), (2, 3), (4, 4), (5, 5)):
        run(pipeline, of, ticks, first, last)
    assert stored(pipeline) == by_definition(of, ticks)
    assert (tmp_path / LOOKUPS).exists() == large
    ticks[4] = made(random.Random(0), 3)
    with correction(pipeline, 4) as rework:
        for tick in range(rework.first, TICKS):
            run(rework.staging, of, ticks, tick, tick)
        rework.replace()
    assert stored(pipeline) == by_definition(of, ticks)
    ticks.append(made(random.Random(1), 2))
    run(pipeline, of, ticks, TICKS, TICKS)
    assert stored(pipeline, TICKS + 1) == by_definition(of, ticks)
