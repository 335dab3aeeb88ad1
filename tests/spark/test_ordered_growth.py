"""What a tick of `over` and `top` is handed of what is stored: the last rows of the keys that come,
however long these are; of a key of which one comes late those behind it, and the last before.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.work import RowCounter
from hydro_core.engines import Options
from hydro_core.lang.resolve import parse
from hydro_core.running import run_json
from hydro_core.spark.inputs.batches import batch_of
from hydro_core.spark.store.lookups import lookup_files
from hydro_core.spark.store.lookups.conditions import MatchedRows
from hydro_core.spark.store.store import Store
from tests.tpch.answers import opened

pytestmark = pytest.mark.spark

ROWS = 'a = source("k long, at long, v long")\n'
OVER = (
    'a -> persist() -> over(by="k", order="at", n=row_number(), r=rank(), before=lag("v", 2),'
    ' total=running(sum("v")), mean=running(avg("v")), last=rolling(sum("v"), rows=3),'
    " s=session(gap=5)) -> changes() -> out"
)
TOP = 'a -> persist() -> top(3, by="k", order="v", descending=True) -> changes() -> out'
KEYS, NEW = 50, 5
LITTLE, MUCH = 4, 16
"""Rows of each key before the tick."""


def rows(keys: range, at: range) -> dict[str, pa.Table]:
    """A row of each key at each time."""
    pairs = [(k, t) for t in at for k in keys]
    return {
        "a": pa.table(
            {
                "k": [k for k, _ in pairs],
                "at": [t for _, t in pairs],
                "v": [t % 7 for _, t in pairs],
            }
        )
    }


def handed(text: str, length: int, at: int, directory: Path, spark: SparkSession) -> int:
    """The stored rows that Spark is handed in a tick with a row of a few keys."""
    pipeline = opened(directory, ROWS + text, spark)
    pipeline.run_tick(0, rows(range(KEYS), range(length - 1)))
    pipeline.run_tick(1, rows(range(KEYS), range(length - 1, length)))
    with RowCounter(spark).counting() as touched:
        pipeline.run_tick(2, rows(range(NEW), range(at, at + 1)))
    return touched.read


@pytest.mark.parametrize("text", [OVER, TOP], ids=["over", "top"])
def test_appended_rows_meet_the_tails_of_their_keys(
    text: str, tmp_path: Path, spark: SparkSession
) -> None:
    little, much = (
        handed(text, length, length + 3, tmp_path / str(length), spark) for length in (LITTLE, MUCH)
    )
    assert 0 < much <= little + NEW, (little, much)


def test_a_late_row_meets_those_behind_it(tmp_path: Path, spark: SparkSession) -> None:
    """As many, whether much or little stands before it; near the start nearly all of the key."""
    little, much = (
        handed(OVER, length, length - 3, tmp_path / str(length), spark) for length in (LITTLE, MUCH)
    )
    assert 0 < much <= little + NEW, (little, much)
    early = handed(OVER, MUCH, -1, tmp_path / "early", spark)
    assert early >= much + NEW * (MUCH - 6), (much, early)


@pytest.mark.parametrize("least", [1, 1 << 15], ids=["large files", "small files"])
def test_marks_that_came_and_went_in_a_range_are_not_found(
    least: int, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a range of many ticks as few rows are looked up as behind one of few."""
    monkeypatch.setattr(lookup_files, "INDEXED_ROWS", least)
    little, much = (
        found_behind(ticks, tmp_path / str(ticks), spark, monkeypatch) for ticks in (LITTLE, MUCH)
    )
    # Of each key that comes the last two rows are marked: they came, and went nowhere.
    assert 2 * NEW <= much <= little, (little, much)


def found_behind(
    ticks: int, directory: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> int:
    """The changes that a tick finds behind one range, with a row of each key in each tick."""
    pipeline, found = opened(directory, ROWS + OVER, spark), []
    table = rows(range(KEYS), range(ticks))["a"]
    item = pipeline.plan.typed.inputs["a"].item
    pipeline.run_range(
        0, ticks - 1, {"a": batch_of("a", table, item, table["at"].combine_chunks())}
    )
    met = Store.met

    def counted(store: Store, name: str, wanted: MatchedRows) -> pa.Table:
        there = met(store, name, wanted)
        found.append(there.num_rows)
        return there

    with monkeypatch.context() as patched:
        patched.setattr(Store, "met", counted)
        pipeline.run_tick(ticks, rows(range(NEW), range(ticks, ticks + 1)))
    return sum(found)


def test_a_column_may_be_called_as_a_stored_aggregate() -> None:
    """The aggregate so far of equal rows, of which the shown values are the same, has its own."""
    text = ROWS + (
        'a -> persist() -> over(by="k", order="at", total=running(sum("v"), peers=True),'
        " total_so_far=rank(), mean=running(avg('v'), peers=True), mean_so_far_count=rank()) -> out"
    )
    batches = [[[1, 1, 10], [1, 1, 5]], [[1, 2, 3], [2, 1, 1]], [[1, 3, 4], [1, 2, 2]]]
    ticks = [{"a": [dict(zip(("k", "at", "v"), r, strict=True)) for r in b]} for b in batches]
    wanted = run_json(parse(text), {}, ticks, Options(optimized=False))
    for given, shown in zip(
        wanted, run_json(parse(text), {}, ticks, Options("spark")), strict=True
    ):
        assert sorted(map(repr, given["out"])) == sorted(map(repr, shown["out"]))
