"""Outputs as tables where next to no rows are few: executors bring them to where the ledger is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hydro_core.settings import Settings
from hydro_core.spark.pipeline import publishing as larger_tables
from hydro_core.spark.store.outputs.published import PUBLISHED
from hydrotick.cli.backfill import run_ticks
from hydrotick.runner.runner import TickRunner
from tests.orchestration.test_output_tables import TABLE, Story, assert_same, begun

pytestmark = [pytest.mark.spark, pytest.mark.dagster]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


def holding(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Processes hold so many rows."""
    settings = Settings().with_(held_rows=rows)
    monkeypatch.setattr(TickRunner, "settings_for", lambda *_: settings)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [100, 101, 103, 104, 105])
def test_whatever_is_done_by_executors(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same where next to no rows are few."""
    holding(monkeypatch, seed % 3)
    story = Story(tmp_path, seed, monkeypatch)
    try:
        story.tell(8)
    except Exception as problem:
        raise AssertionError("\n".join(story.told)) from problem


def test_executors_change_what_a_process_would_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any reader finds the same; of what is written anew Delta tells that it has come and gone."""
    holding(monkeypatch, 1)
    flow, runner = begun(tmp_path)
    flow = replace(flow, outputs=dict.fromkeys(("totals", "everything"), TABLE))
    for tick in (0, 1):
        list(run_ticks(flow, runner, tick, lambda _: None))
    assert_same(flow, runner)
    place = runner.directory(flow) / PUBLISHED / "totals"
    changes = pa.table(DeltaTable(place).load_cdf(starting_version=0).read_all())
    signs = {"insert": 1, "delete": -1, "update_preimage": -1, "update_postimage": 1}
    there = Counter[tuple[str, int, int]]()
    for row in changes.to_pylist():
        there[row["user"], row["total"], row["n"]] += signs[row["_change_type"]]
    assert +there == {("ann", 11, 2): 1, ("bob", 2, 1): 1}


def test_a_table_that_executors_could_not_write_is_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holding(monkeypatch, 1)
    flow, runner = begun(tmp_path)
    flow = replace(flow, outputs={"totals": TABLE})

    def fails(*_: object, **__: object) -> None:
        raise PySparkException("an executor has ended")

    with monkeypatch.context() as patch:
        patch.setattr(larger_tables, "write_parquet", fails)
        list(run_ticks(flow, runner, 0, lambda _: None))
    assert runner.next_tick(flow) == 1
    assert runner.behind(flow) == ("totals",)
    assert list(runner.pipeline(flow).published.behind) == ["totals"]
    list(run_ticks(flow, runner, 1, lambda _: None))
    assert_same(flow, runner)
