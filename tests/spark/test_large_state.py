"""State that is too large to be held in memory: rows are looked up in its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from benchmarks.measure import plan_of
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.store import store
from hydro_core.spark.store.cached_rows import RowCache
from hydro_core.spark.store.delta.table import ROWS_OF_A_GROUP
from hydro_core.spark.store.lookups.lookup_files import LOOKUPS
from tests.spark.pipelines import SETTINGS, Batch

pytestmark = pytest.mark.spark

PROGRAM = """
orders = source("o long, c long, amount long")
lines  = source("o long, part string, n long")
sold = lines -> persist() -> aggregate(by=["o", "part"], n=sum("n"))
orders -> persist()
  -> join(right=sold, on="o")
  -> aggregate(by="part", n=sum("n"), amount=sum("amount")) -> delta() -> by_part
lines -> filter(lambda r: r.n > 8) -> join(right=known, on="o") -> large
known = orders -> persist()
"""
LOAD, KEYS = 40_000, 20_000


def given(tick: int, rows: int) -> Batch:
    rng = np.random.default_rng(tick)
    first = tick * LOAD
    of = np.arange(first, first + rows)
    key = rng.integers(0, max(first + rows, 1), rows)
    return {
        "orders": pa.table({"o": of, "c": of % KEYS, "amount": rng.integers(0, 99, rows)}),
        "lines": pa.table(
            {"o": key, "part": [f"p{n % 5}" for n in key], "n": rng.integers(0, 10, rows)}
        ),
    }


def contents(pipeline: Pipeline) -> dict[str, list[str]]:
    return {
        name: sorted(map(repr, pipeline.output(name, every=True).to_pylist()))
        for name in ("by_part", "large")
    }


def groups(pipeline: Pipeline) -> list[int]:
    """The rows of each row group of the state's files."""
    tables: list[Any] = [t for t in pipeline.store.tables.values() if t.spec.role == "state"]
    footers = [pq.read_metadata(file.path) for table in tables for file in table.files()]
    return [f.row_group(i).num_rows for f in footers for i in range(f.num_row_groups)]


@pytest.mark.slow
def test_rows_of_large_tables_are_looked_up_as_those_that_are_held(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for most, lookups in ((1 << 26, 0), (100_000, 0), (1 << 26, 1 << 30)):
        monkeypatch.setattr(store, "ROW_CACHE", RowCache(most))
        settings = SETTINGS.with_(small_write_rows=5_000, lookup_bytes=lookups)
        place = tmp_path / f"{most}-{lookups}"
        pipeline = Pipeline(place, plan_of(PROGRAM), settings, spark)
        pipeline.run_tick(0, given(0, LOAD))
        assert max(groups(pipeline)) <= 2 * ROWS_OF_A_GROUP
        for tick in range(1, 3):
            pipeline.run_tick(tick, given(tick, 30))
        pipeline.compact(keep_hours=0)
        assert max(groups(pipeline)) <= ROWS_OF_A_GROUP
        assert len(groups(pipeline)) > len(pipeline.state_tables)
        for tick in range(3, 5):
            pipeline.run_tick(tick, given(tick, 30))
        found.append(contents(pipeline))
        assert (place / LOOKUPS).exists() == bool(lookups)
    assert found[0] == found[1] == found[2]
    assert len(found[0]["large"]) > LOAD // 20
