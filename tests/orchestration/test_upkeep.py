"""Tables that are compacted by a schedule of their flow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from hydro_core.spark.pipeline.copies import verify
from hydrotick.code_location.factory import project_definitions
from hydrotick.quality.judge import measure
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import contents, opened

pytestmark = [pytest.mark.spark, pytest.mark.dagster]


def _definitions(runner: TickRunner, flow: object, **said: object) -> dg.Definitions:
    project = replace(runner.project, **said)
    return project_definitions([flow], TickRunner(project))


def test_none_asks_for_it_unless_the_settings_do(tmp_path: Path) -> None:
    flow, runner = opened(tmp_path)
    assert not _definitions(runner, flow).schedules
    found = _definitions(runner, flow, compact="weekly", sensors_run=True)
    (schedule,) = found.schedules
    assert isinstance(schedule, dg.ScheduleDefinition)
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("0 3 * * 0", "UTC")
    assert schedule.default_status is dg.DefaultScheduleStatus.RUNNING
    job = found.resolve_job_def("small_compact")
    assert job.get_node_named("small__compact").definition.pool == "small"
    dg.Definitions.validate_loadable(found)


def test_it_joins_files_and_changes_no_row(tmp_path: Path, spark: SparkSession) -> None:
    assert spark
    flow, runner = opened(tmp_path)
    job = _definitions(runner, flow, compact="daily").resolve_job_def("small_compact")
    with dg.DagsterInstance.ephemeral() as instance:
        # Before the first tick there is nothing to do, which is fine.
        assert job.execute_in_process(instance=instance).success
        assert not runner.directory(flow).exists()
        for tick in range(4):
            window = flow.ticks.calendar.window(tick)
            assert all(report.committed for report in runner.run(flow, [window], lambda _: None))
        before, rows = verify(runner.directory(flow), measure), contents(flow, runner)
        assert job.execute_in_process(instance=instance).success
    after = verify(runner.directory(flow), measure)
    assert not after.problems
    assert after.files < before.files
    assert contents(flow, TickRunner(runner.project)) == rows
