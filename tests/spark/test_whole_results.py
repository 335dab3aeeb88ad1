"""Results that a tick reads whole are handed over as what is there, not as every change of it.

The greatest of a column is looked up (`test_extremes.py`), that of a function is not.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.measure import plan_of
from hydro_core.spark.pipeline import jobs as stored_rows
from hydro_core.spark.pipeline.jobs import whole_results as slots_of
from hydro_core.spark.pipeline.kept_plan import KeptPlan, TickRows
from hydro_core.spark.pipeline.pipeline import Pipeline
from tests.spark.pipelines import SETTINGS

PROGRAM = """
sales = source("who long, amount long")
totals = sales -> persist() -> aggregate(by="who", total=sum("amount"))
greatest = totals -> aggregate(total=max(lambda r: r.total))
totals -> join(right=greatest, on="total") -> best
"""
BEFORE = PROGRAM.replace("totals -> join", "totals -> prev() -> join")
KEYS = 7


def given(tick: int) -> dict[str, pa.Table]:
    rng = Random(tick)
    rows = [{"who": rng.randrange(KEYS), "amount": rng.randrange(-9, 9)} for _ in range(5)]
    return {
        "sales": pa.Table.from_pylist(
            rows, pa.schema([("who", pa.int64()), ("amount", pa.int64())])
        )
    }


def wanted(ticks: int) -> list[tuple[int, int]]:
    totals: dict[int, int] = {}
    for tick in range(ticks):
        for row in given(tick)["sales"].to_pylist():
            totals[row["who"]] = totals.get(row["who"], 0) + row["amount"]
    return sorted((who, n) for who, n in totals.items() if n == max(totals.values()))


def test_what_is_read_of_earlier_ticks_is_not_summed_up() -> None:
    assert [slot.stream.node for slot in slots_of(plan_of(PROGRAM))] == ["totals"]
    assert not list(slots_of(plan_of(BEFORE)))


@pytest.mark.spark
def test_a_tick_is_handed_a_row_a_key(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_rows, "KEPT_ROWS", 1)
    handed: list[int] = []
    run = KeptPlan.run

    def counted(self: KeptPlan, rows: TickRows) -> object:
        handed.append(max(rows.stored(slot).num_rows for slot in pipeline.plan.slots))
        return run(self, rows)

    monkeypatch.setattr(KeptPlan, "run", counted)
    pipeline = Pipeline(tmp_path, plan_of(PROGRAM), SETTINGS, spark)
    for tick in range(9):
        pipeline.run_tick(tick, given(tick))
        there = pipeline.output("best", tick).to_pylist()
        assert sorted((row["who"], row["total"]) for row in there) == wanted(tick + 1)
    [log] = [t for t in pipeline.store.tables.values() if t.spec.role == "state"]
    assert log.rows > 2 * KEYS
    assert handed
    assert max(handed) <= KEYS
