"""Runs ticks as Dagster runs in this process: what `demo` and `backfill` share.

Each tick is a run of the flow's job for one partition, recorded in the project's instance, so the
UI shows it like any other. Spark starts once, with the first tick.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import dagster as dg

from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow

from ..code_location.factory import project_definitions
from ..code_location.records import end_orphans, refuse_lost_pipeline, unrecorded
from ..instance.opening import open_instance
from ..instance.run_here import RunHere, run_here
from ..instance.run_tags import CORRECT, CORRECT_TAG
from ..quality.changed import CorrectionResult
from ..runner.correction import CorrectionPlan
from ..runner.report import TickReport
from ..runner.runner import TickRunner


@dataclass(frozen=True, slots=True)
class TickDone:
    """Ticks that one run committed: the first and the last, the report of the last, and seconds."""

    first: TickWindow
    window: TickWindow
    report: TickReport
    seconds: float


def run_ticks(
    flow: FlowAsset,
    runner: TickRunner,
    last: int,
    started: Callable[[TickWindow], None],
    *,
    together: int = 1,
) -> Iterator[TickDone]:
    """Runs the ticks after the last committed one up to `last`, and gives each when it is done.

    `started` is called with each tick before it runs; `together` says how many make one run. Before
    the first, what a killed process left behind in Dagster's records is put right.

    Raises:
        DataError: a tick failed; the ticks before it are committed, it is not.
    """
    calendar = flow.ticks.calendar
    with _job_of(flow, runner) as (job, instance):
        for tick in range(runner.next_tick(flow), last + 1, together):
            first, window = calendar.window(tick), calendar.window(min(tick + together - 1, last))
            started(first)
            begin = time.monotonic()
            result = run_here(job, instance, (first.key, window.key))
            report = runner.last_report(flow)
            if not result.success or report is None or not report.committed:
                raise _failed(flow, first, report, result)
            yield TickDone(first, window, report, time.monotonic() - begin)


def correct_ticks(flow: FlowAsset, runner: TickRunner, planned: CorrectionPlan) -> CorrectionResult:
    """Computes committed ticks again in one run, and says what that has done.

    Raises:
        DataError: one of them failed; everything is as it was.
    """
    with _job_of(flow, runner) as (job, instance):
        keys = planned.asked.key, planned.last.key
        result = run_here(job, instance, keys, {CORRECT_TAG: CORRECT})
        report = runner.last_report(flow)
        if not result.success or report is None or report.corrected is None:
            raise _failed(flow, planned.asked, report, result)
        return report.corrected


def record_deployed(flow: FlowAsset, runner: TickRunner) -> None:
    """Records the ticks that another deployment has restated, and what else is not recorded yet."""
    with open_instance(runner.project.dagster_home) as instance:
        record_committed(flow, runner, instance)


@contextmanager
def _job_of(
    flow: FlowAsset, runner: TickRunner
) -> Iterator[tuple[dg.JobDefinition, dg.DagsterInstance]]:
    """The flow's job and the instance that records it, with what was left behind put right."""
    with open_instance(runner.project.dagster_home) as instance:
        end_orphans(instance, flow)
        refuse_lost_pipeline(instance, flow, runner)
        # What is wrong with a program is said by it, and not by Dagster.
        runner.deployments.prepared(flow)
        job = project_definitions([flow], runner).resolve_job_def(f"{flow.name}_job")
        record_committed(flow, runner, instance)
        yield job, instance


def record_committed(
    flow: FlowAsset, runner: TickRunner, instance: dg.DagsterInstance
) -> list[tuple[TickWindow, TickWindow]]:
    """Ticks that were committed, but not recorded before the process ended, are recorded now.

    Gives them, as ranges. It takes one run, which computes nothing.
    """
    missing = unrecorded(flow, runner, instance)
    if missing:
        job = project_definitions([flow], runner).resolve_job_def(f"{flow.name}_job")
        first, last = missing[0]
        run_here(job, instance, (first.key, last.key))
    left = unrecorded(flow, runner, instance) if missing else []
    return [ticks for ticks in missing if ticks not in left]


def _failed(
    flow: FlowAsset, first: TickWindow, report: TickReport | None, result: RunHere
) -> Exception:
    name = f"tick {(report.window if report else first).key} of `{flow.name}`"
    if report is None or report.committed:
        return RuntimeError(f"{name} failed: {result.reason}")
    return DataError.of(
        "runtime",
        f"{name} failed: {report.problem}",
        help=report.cure
        or "mend its cause and run it again; the ticks before it are committed and stay",
    )
