"""Rows of one value that are taken out of stored pipelines: as if their inputs never had it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hydro_core.compile import best_plan, compile_text, planned
from hydro_core.spark.pipeline.forgetting import by_key, erase, rows_there, take_out
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.verify import verify
from hydro_core.spark.store.lookups import lookup_files
from hydro_core.spark.store.lookups.lookup_files import LOOKUPS
from tests.spark.pipelines import SETTINGS, Batch

pytestmark = pytest.mark.spark

HEAD = """
a = source("user string, n long")
b = source("user string, m long")
c = source("k long, name string")
"""
ONE_BY_ONE = {
    "states and orders": """
a -> persist() -> aggregate(by="user", total=sum("n"), most=max("n")) -> totals
a -> prev() -> before
a -> sort() -> in_order
a -> map(lambda r: (r.n, r.user)) -> persist() -> sort() -> all_in_order
a -> window(2) -> aggregate(by="user", mid=median("n")) -> lately
a -> persist() -> unique() -> delta() -> seen
""",
    "joins": """
paid = b -> persist()
a -> persist() -> join(right=paid, on="user") -> delta() -> met
a -> persist() -> join(right=paid, on="user", how="anti") -> alone
""",
    "what others have": """
names = c -> persist() -> rename(n="k")
a -> join(right=names, on="n") -> named
c -> aggregate(most=max("k")) -> others
""",
}
TOGETHER = {
    "a total": 'a -> persist() -> aggregate(total=sum("n")) -> whole',
    "a place": "a -> sort() -> enumerate() -> places",
    "no key": 'a -> persist() -> select("n") -> numbers',
    "the lacking": 'c -> rename(n="k") -> join(right=a, on="n", how="left") -> perhaps',
}
KEYS = {"a": ("user",), "b": ("user",)}


@pytest.fixture(scope="module", autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines without a session of their own use the shared one."""


@pytest.fixture(autouse=True)
def _all_files_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are looked up in copies of files, which are to go as well."""
    monkeypatch.setattr(lookup_files, "INDEXED_ROWS", 1)


def opened(directory: Path, program: str) -> Pipeline:
    compiled = compile_text(HEAD + program)
    return Pipeline(directory, planned(compiled, best_plan(compiled)), SETTINGS)


def batch(seed: int, without: str = "") -> Batch:
    rng = Random(seed)
    tables = {}
    for name, columns in {"a": ("user", "n"), "b": ("user", "m")}.items():
        rows = [(rng.choice(["ann", "bob", "cat", None]), rng.randrange(3)) for _ in range(6)]
        rows = [row for row in rows if row[0] != without or not without]
        schema = pa.schema([(columns[0], pa.string()), (columns[1], pa.int64())])
        tables[name] = pa.Table.from_pylist(
            [dict(zip(columns, row, strict=True)) for row in rows], schema=schema
        )
    tables["c"] = pa.table({"k": [seed % 3, 1], "name": ["ann", "x"]})
    return tables


def run(pipeline: Pipeline, first: int, last: int, without: str = "") -> Pipeline:
    known = set(pipeline.plan.graph.sources)
    for tick in range(first, last + 1):
        found = batch(tick, without)
        pipeline.run_tick(tick, {name: rows for name, rows in found.items() if name in known})
    return pipeline


def contents(pipeline: Pipeline) -> Mapping[str, list[str]]:
    last = pipeline.last_committed or 0
    found = {}
    for spec in pipeline.tables:
        of_state = spec.is_log and spec.role == "state"
        read = pipeline.store.rows if of_state else pipeline.store.arrow
        rows = read(spec.name, last if of_state else 0, last).drop_columns(
            ["ord"] if "ord" in spec.arrow_schema.names else []
        )
        found[spec.name] = sorted(map(repr, rows.to_pylist()))
    return found


@pytest.mark.parametrize("program", ONE_BY_ONE)
def test_what_is_left_is_what_the_others_make(tmp_path: Path, program: str) -> None:
    text = ONE_BY_ONE[program]
    mine = run(opened(tmp_path / "mine", text), 0, 3)
    never = run(opened(tmp_path / "never", text), 0, 3, "ann")
    found = by_key(mine, {n: p for n, p in KEYS.items() if n in mine.plan.graph.sources}, "ann")
    assert found.obstacles == ()
    assert sum(rows_there(mine, found).values())
    copies = tmp_path / "mine" / LOOKUPS
    if program == "joins":
        assert any(b"ann" in file.read_bytes() for file in copies.iterdir())
    with mine.lock:
        take_out(mine, found, (), {})
        assert contents(mine) == contents(never)
        erase(mine)
    assert not copies.exists()
    assert contents(opened(tmp_path / "mine", text)) == contents(never)
    assert verify(tmp_path / "mine").problems == ()
    run(mine, 4, 5, "ann")
    assert contents(mine) == contents(run(never, 4, 5, "ann"))


@pytest.mark.parametrize("program", TOGETHER)
def test_what_brings_values_together_is_not_taken_apart(tmp_path: Path, program: str) -> None:
    pipeline = opened(tmp_path, TOGETHER[program])
    assert by_key(pipeline, {"a": ("user",)}, "ann").obstacles
