"""What a machine does to a tick is told in a line or two, costs nothing, and is tried again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from hydro_core.spark.pipeline.jobs import RangeJobs
from hydrotick.code_location.sensors import failed_run
from hydrotick.runner.runner import TickRunner
from tests.orchestration import small

pytestmark = [pytest.mark.spark, pytest.mark.dagster]


@pytest.mark.parametrize("rows_at_hand", [100, 0])
def test_a_landed_file_that_goes_away_while_it_is_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_hand: int
) -> None:
    assert spark is not None
    flow, runner = small.opened(tmp_path)
    settings = runner.settings.with_(small_write_rows=rows_at_hand)
    monkeypatch.setattr(type(runner), "settings", property(lambda _: settings))
    (landed,) = (runner.project.landing / "small" / "payments").glob("*.parquet")
    kept, compute = landed.read_bytes(), RangeJobs.compute
    windows = [flow.ticks.calendar.window(tick) for tick in (0, 1)]

    def computes(jobs: RangeJobs, *arguments: Any) -> Any:
        # What is at hand was read by now; Spark reads when it computes.
        landed.unlink(missing_ok=True)
        return compute(jobs, *arguments)

    if rows_at_hand:
        landed.unlink()
    else:
        monkeypatch.setattr(RangeJobs, "compute", computes)
    (report,) = runner.run(flow, windows[:1], lambda _: None)
    assert not report.committed
    assert not report.judged
    assert "a file went away while it was read" in report.problem
    assert landed.name in report.problem
    assert report.cure.startswith("see that nothing removes files")
    assert runner.next_tick(flow) == 0
    landed.write_bytes(kept)
    monkeypatch.setattr(RangeJobs, "compute", compute)
    with dg.DagsterInstance.ephemeral() as instance:
        assert small.Run(flow, runner, instance)(0, 1).success
    assert runner.next_tick(flow) == 2


def test_a_state_whose_log_is_gone_is_why_the_tick_fails(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert spark is not None
    flow, runner = small.opened(tmp_path)
    with dg.DagsterInstance.ephemeral() as instance:
        run = small.Run(flow, runner, instance)
        assert run(0, 0).success
        for entry in runner.directory(flow).glob("state/*/_delta_log/*"):
            entry.unlink()
        again = TickRunner(runner.project)
        failed = small.Run(flow, again, instance)(1, 1)
        assert not failed.success
        said = failed_run(instance, instance.get_runs(limit=1)[0])
    assert "cannot be read" in said.cause
    assert "the table " in said.cause
    assert said.cure.startswith("`hydrotick reset` and then `hydrotick backfill`")
