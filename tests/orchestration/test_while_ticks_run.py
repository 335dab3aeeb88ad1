"""What somebody does to a flow while its ticks go on, and what ticks do meanwhile."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from hydro_core.cli.main import main, run_command
from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset, Ticks
from hydro_core.spark.pipeline.rework import COMPARED, correction
from hydro_core.spark.store.ledger.lock import WriterLock, long_work
from hydro_core.ticks.calendar import TickWindow
from hydrotick.code_location.factory import flow_definitions
from hydrotick.code_location.next_run import next_run
from hydrotick.code_location.records import corrections_tried
from hydrotick.deploy.planning import DeployOptions, plan_deployment
from hydrotick.deploy.switch import compare
from hydrotick.instance.run_tags import CORRECT, CORRECT_TAG, FLOW_TAG, JUDGED_TAG, range_tags
from hydrotick.runner.runner import TickRunner
from tests.orchestration.changing import DOUBLED, rewrite
from tests.orchestration.late import IN_TIME, LATE, OPEN, Late
from tests.orchestration.small import BATCHES, Run, contents, land, serve
from tests.orchestration.test_flows_that_feed import fed, peaks, run
from tests.support.refused import Refused

__all__ = ["fed"]

pytestmark = [pytest.mark.spark, pytest.mark.dagster]


@pytest.fixture(autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines use the shared session."""


def test_comparing_needs_no_right_to_write(
    served: tuple[FlowAsset, TickRunner], capsys: pytest.CaptureFixture[str]
) -> None:
    flow, runner = served
    rewrite(flow, DOUBLED)
    capsys.readouterr()
    with WriterLock(runner.directory(flow)):
        assert main(["plan", "small", "--compare", "3", "--format", "json"]) == 3
    planned = json.loads(capsys.readouterr().out)
    assert planned["outputs"]["totals"]["compared"] == {"added": 3, "removed": 3}
    assert not list((runner.directory(flow) / COMPARED).glob("*"))


def test_ticks_run_while_programs_are_compared(
    served: tuple[FlowAsset, TickRunner], refused: Refused
) -> None:
    flow, runner = served
    rewrite(flow, DOUBLED)
    change = plan_deployment(flow, runner, DeployOptions())
    assert change is not None
    quiet = compare(change, runner, 3, lambda _: None)
    other, ran = TickRunner(runner.project), list[str]()

    def meanwhile(_: Sequence[TickWindow]) -> None:
        window = flow.ticks.calendar.window(3)
        ran.extend(report.problem for report in other.run(flow, [window], lambda _: None))

    assert compare(change, runner, 3, meanwhile) == quiet
    assert ran == [""]
    assert other.next_tick(flow) == 4
    # What was killed in it is removed by who compares next; what goes on is not.
    left = runner.directory(flow) / COMPARED / "left"
    left.mkdir(parents=True)
    again = plan_deployment(flow, runner, DeployOptions())
    assert again is not None
    compare(again, runner, 1, lambda _: None)
    assert not left.exists()
    with refused(DataError, "state"):
        compare(change, runner, 3, lambda _: None)


def test_a_tick_waits_for_a_deployment_and_does_not_fail(
    served: tuple[FlowAsset, TickRunner],
) -> None:
    flow, runner = served
    deploying, done = threading.Event(), threading.Event()
    other = TickRunner(runner.project)

    def deploy() -> None:
        with correction(other.pipeline(flow), 2):
            deploying.set()
            done.wait(60)

    at_work = threading.Thread(target=deploy)
    at_work.start()
    assert deploying.wait(60)
    assert "a correction (process " in long_work(runner.directory(flow))
    # The sensor launches nothing into it.
    found = next_run(flow, runner, None)
    assert found.ticks is None
    assert not found.stopped
    assert found.says.startswith("it waits for a correction (process ")
    said: list[str] = []

    def log(line: str) -> None:
        said.append(line)
        threading.Timer(1.5, done.set).start()

    window, printed = flow.ticks.calendar.window(3), list[str]()
    runner.progress = printed.append
    (report,) = runner.run(flow, [window], log)
    at_work.join()
    assert report.committed
    assert printed[0] == said[0]
    assert said[0].startswith("it waits for a correction (process ")
    assert long_work(runner.directory(flow)) == ""


def test_a_tick_does_not_wait_for_a_process_that_was_killed(
    served: tuple[FlowAsset, TickRunner],
) -> None:
    flow, runner = served
    lock = runner.directory(flow) / "_lock"
    told = {"process": "elsewhere:1@2.3", "since": "today", "work": "a deployment"}
    lock.write_text(json.dumps(told))
    begin = time.monotonic()
    assert long_work(runner.directory(flow)) == ""
    assert time.monotonic() - begin < 1


def _ended(late: Late) -> FlowAsset:
    """The flow, of which the last tick is the last that is committed."""
    ticks = Ticks(datetime(2026, 1, 1, tzinfo=UTC), "1d", datetime(2026, 1, 5, tzinfo=UTC))
    return replace(late.flow, ticks=ticks)


def _launched(flow: FlowAsset, runner: TickRunner, instance: dg.DagsterInstance) -> object:
    (sensor,) = flow_definitions(flow, runner).sensors
    return sensor(dg.build_sensor_context(instance=instance))


def test_a_flow_that_has_ended_is_corrected_when_rows_land(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    late = Late(tmp_path, "correct")
    late.land(IN_TIME)
    late.flow = _ended(late)
    done = Run(late.flow, late.runner, instance)(0, OPEN - 1)
    assert done.success
    skipped = _launched(late.flow, late.runner, instance)
    assert isinstance(skipped, dg.SkipReason)
    assert "complete" in str(skipped.skip_message)
    late.land(LATE)
    found = next_run(late.flow, late.runner, instance)
    assert found.again
    assert found.says == (
        "the ticks 2026-01-02 to 2026-01-04 are computed again: rows came or changed for them"
    )
    asked = _launched(late.flow, late.runner, instance)
    assert isinstance(asked, dg.RunRequest)
    assert asked.tags == {
        FLOW_TAG: "small",
        CORRECT_TAG: CORRECT,
        **range_tags("2026-01-02", "2026-01-04"),
    }
    assert Run(late.flow, late.runner, instance)(1, OPEN - 1, tags={CORRECT_TAG: CORRECT}).success
    assert not next_run(late.flow, late.runner, instance).again
    totals = late.runner.pipeline(late.flow).output("totals", every=True).to_pylist()
    assert {(row["tick"], row["user"], row["total"]) for row in totals} >= {
        (1, "dan", 7),
        (1, "ann", 16),
        (2, "eve", 4),
    }


def test_a_correction_that_fails_is_tried_less_often_or_stops(
    tmp_path: Path, instance: dg.DagsterInstance
) -> None:
    late = Late(tmp_path, "correct")
    late.land(IN_TIME)
    late.flow = _ended(late)
    assert Run(late.flow, late.runner, instance)(0, OPEN - 1).success
    late.land(LATE)
    job = dg.JobDefinition(name="small_job", graph_def=dg.GraphDefinition("small_job"))
    tags = {FLOW_TAG: "small", CORRECT_TAG: CORRECT, **range_tags("2026-01-02", "2026-01-04")}
    tried = instance.create_run_for_job(job, tags=tags)
    instance.report_run_failed(tried)
    (attempt,) = corrections_tried(late.flow, late.runner, instance)
    assert attempt.run.run_id == tried.run_id
    found = next_run(late.flow, late.runner, instance)
    assert (found.ticks, found.stopped) == (None, False)
    assert "it is tried again after" in found.says
    instance.add_run_tags(tried.run_id, {JUDGED_TAG: tried.run_id})
    found = next_run(late.flow, late.runner, instance)
    assert (found.ticks, found.stopped) == (None, True)


def test_a_flow_behind_one_that_was_corrected_is_corrected(
    fed: tuple[FlowAsset, FlowAsset, TickRunner],
) -> None:
    small, second, runner = fed
    assert run(small, runner, 0, 1) == ["", ""]
    assert run(second, runner, 0, 1) == ["", ""]
    land(runner.project, [*BATCHES[:1], [("ann", 40)], *BATCHES[2:]])
    reports = runner.correct(small, small.ticks.calendar.window(1), lambda _: None)
    assert {report.problem for report in reports} == {""}
    found = next_run(second, runner, None)
    assert found.again
    assert found.ticks is not None
    assert [window.tick for window in found.ticks] == [1, 1]
    list(runner.correct(second, found.ticks[0], lambda _: None))
    assert peaks(second, runner) == [(0, "ann", 1), (0, "bob", 2), (1, "ann", 41)]
    assert not next_run(second, runner, None).again


def test_a_flow_behind_one_that_was_deployed_is_corrected(
    fed: tuple[FlowAsset, FlowAsset, TickRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    small, second, runner = fed
    assert run(small, runner, 0, 1) == ["", ""]
    assert run(second, runner, 0, 1) == ["", ""]
    rewrite(small, DOUBLED)
    serve(monkeypatch, [small, second], runner.project)
    assert main(["deploy", "small", "--yes"]) == 0
    found = next_run(second, runner, None)
    assert found.again
    assert found.ticks is not None
    assert found.ticks[0].tick == 0


def test_backfill_computes_again_what_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    late = Late(tmp_path, "correct")
    late.land(IN_TIME)
    late.flow = _ended(late)
    serve(monkeypatch, [late.flow], late.project)
    assert run_command(["backfill", "small"]) == 0
    assert "computed again" not in capsys.readouterr().out
    late.land(LATE)
    assert run_command(["backfill", "small"]) == 0
    said = capsys.readouterr().out
    assert "rows came or changed for 2026-01-01 to 2026-01-04" in said
    assert "which are computed again" in said
    assert any("eve" in row for rows in contents(late.flow, late.runner).values() for row in rows)
