"""Ranges in parts: long ones of plans that repeat rows, and those in which a tick fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from hydro_core.cli.main import main
from hydro_core.compile import compile_text
from hydro_core.errors import DataError
from hydro_core.plan.planner import plan
from hydro_core.running import read_ticks
from hydro_core.settings import Settings
from hydro_core.spark.executor.memory import Memory
from hydro_core.spark.inputs.batches import batch_of
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.session.session import few_rows_session
from tests.support.refused import Refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TEXT = """
a = source("long")
a -> map(lambda x: 10 // x) -> persist() -> sort() -> out
a -> persist() -> aggregate_all
aggregate_all = sort() -> enumerate() -> places
"""
VALUES = [1, 2, 5, 0, 3, 10]
SETTINGS = Settings().with_(master="local[2]", memory="1g")


def test_in_memory_the_ticks_before_are_kept(spark: SparkSession, refused: Refused) -> None:
    compiled = compile_text(TEXT)
    ticks = list(read_ticks(compiled.typed, [{"a": [x]} for x in VALUES]))
    memory = Memory(plan(compiled.typed), few_rows_session(spark), SETTINGS)
    found: list[Any] = []
    with refused(DataError, "runtime", at="3:10"):
        found.extend(memory.run(ticks))
    assert [tick["out"] for tick in found] == [[10], [5, 10], [2, 5, 10]]
    assert memory.next == 3
    [after] = memory.run(ticks[4:5])
    assert after["out"] == [2, 3, 5, 10]


def test_what_nobody_will_read_is_not_kept(spark: SparkSession) -> None:
    compiled = compile_text(TEXT)
    ticks = list(read_ticks(compiled.typed, [{"a": [x]} for x in VALUES[:2]]))
    memory = Memory(plan(compiled.typed), few_rows_session(spark), SETTINGS, end=2)
    list(memory.run(ticks[:1]))
    kept = dict(memory.kept)
    assert sum(rows.num_rows for rows in kept.values())
    [last] = memory.run(ticks[1:])
    assert last["out"] == [5, 10]
    assert memory.kept == kept


def pipeline(directory: Path, spark: SparkSession, **settings: Any) -> Pipeline:
    compiled = compile_text(TEXT)
    ready = plan(compiled.typed)
    return Pipeline(directory, ready, SETTINGS.with_(**settings), spark)


def batches(of: Pipeline, values: list[int]) -> dict[str, Any]:
    item = of.plan.typed.inputs["a"].item
    rows = pa.table({"item": pa.array(values, pa.int64())})
    return {"a": batch_of("a", rows, item, pa.array(range(len(values)), pa.int64()))}


def test_a_pipeline_commits_the_ticks_before(
    tmp_path: Path, spark: SparkSession, refused: Refused
) -> None:
    stored = pipeline(tmp_path / "flow", spark)
    with refused(DataError, "runtime", at="3:10"):
        stored.run_range(0, 5, batches(stored, VALUES))
    assert stored.last_committed == 2
    found = stored.output("out", every=True).to_pydict()
    # An ordered history is there as a whole in every tick.
    assert sorted(zip(found["tick"], found["item"], strict=True)) == [
        (0, 10),
        *((1, x) for x in (5, 10)),
        *((2, x) for x in (2, 5, 10)),
    ]


def test_a_long_range_that_repeats_rows_is_several_commits(
    tmp_path: Path, spark: SparkSession
) -> None:
    stored = pipeline(tmp_path / "flow", spark, repeated_ticks=2)
    commit = stored.run_range(0, 4, batches(stored, [1, 2, 5, 1, 1]))
    assert (commit.first, commit.last) == (4, 4)
    assert stored.ledger.commit_of(1) is not None
    assert stored.output("places").num_rows == 5


def test_of_several_ticks_of_files_that_fail_the_first_is_told(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    path, program, out = tmp_path / "rows.parquet", tmp_path / "p.hydro", tmp_path / "out"
    numbers = list(range(8))
    values = [1, 2, 3, 4, 5, 0, 7, 0]
    pyarrow.parquet.write_table(pa.table({"n": numbers, "v": values}), path)
    program.write_text("rows -> map(lambda r: 10 // r.v) -> out")
    words = ["run", str(program), "--input", f"rows={path}:n", "--out", str(out)]
    told = []
    for engine in ("reference", "spark"):
        assert main([*words, "--engine", engine, "--format", "json"]) == 1
        said = capsys.readouterr()
        told.append(json.loads(said.out)["error"]["message"])
        assert list(out.iterdir()) == []
    assert "in tick 5" in told[0]
    assert told[1] == told[0]
    assert "ticks 1 to 4 of 8; out: out 4" in said.err
    assert "tick 5 of 8; out: out 1" in said.err
    assert "tick 6" not in said.err
