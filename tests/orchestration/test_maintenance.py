"""After every maintenance command, the next tick runs in Dagster, and its laws are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hydro_core.spark.pipeline import Pipeline
from hydro_core.spark.store_table import StoredTable
from orchestration.quality.suites import PERSIST
from tests.orchestration.small import Run, contents, opened

pytestmark = [pytest.mark.spark, pytest.mark.dagster]

TICKS = 4


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as found:
        yield found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[str]]:
    flow, runner = opened(tmp_path_factory.mktemp("expected"))
    with dg.DagsterInstance.ephemeral() as found:
        assert Run(flow, runner, found)(0, TICKS - 1).success
    return contents(flow, runner)


def compact_twice(pipeline: Pipeline) -> None:
    pipeline.compact(keep_hours=0)
    pipeline.compact()


MAINTENANCE: Mapping[str, Callable[[Pipeline], object]] = {
    "compact": lambda pipeline: pipeline.compact(),
    "compact, keep nothing": lambda pipeline: pipeline.compact(keep_hours=0),
    "compact twice": compact_twice,
    "rewind": lambda pipeline: pipeline.rewind(0),
    "rewind to before the first": lambda pipeline: pipeline.rewind(-1),
}


@pytest.mark.parametrize("command", MAINTENANCE)
def test_ticks_run_after_it(
    tmp_path: Path,
    instance: dg.DagsterInstance,
    expected: Mapping[str, list[str]],
    command: str,
) -> None:
    flow, runner = opened(tmp_path)
    run = Run(flow, runner, instance)
    assert run(0).success
    assert run(1).success
    MAINTENANCE[command](runner.pipeline(flow))
    for tick in range(runner.next_tick(flow), TICKS):
        result = run(tick)
        assert result.success
        assert not run.failed(result)
        assert len(run.checks(result)) == 8
    assert contents(flow, runner) == expected


def test_a_row_that_is_lost_after_it_fails_its_law(
    tmp_path: Path, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, runner = opened(tmp_path)
    run = Run(flow, runner, instance)
    assert run(0).success
    pipeline = runner.pipeline(flow)
    pipeline.compact()
    append = StoredTable.append
    monkeypatch.setattr(StoredTable, "append", lambda table, rows: append(table, rows.slice(1)))
    result = run(1)
    assert not result.success
    assert f"payments_state:{PERSIST}" in run.failed(result)
    assert runner.next_tick(flow) == 1


def test_a_pipeline_that_ran_without_checks_goes_on_with_them(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    """Commits of the API carry no facts; those before a tick are then taken from the tables."""
    flow, runner = opened(tmp_path)
    rows = pa.table({"user": ["ann", "bob"], "amount": [1, 2]})
    runner.pipeline(flow).run_tick(0, {"payments": rows})
    run = Run(flow, runner, instance)
    result = run(1)
    assert result.success
    assert not run.failed(result)
