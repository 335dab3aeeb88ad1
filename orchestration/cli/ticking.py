"""Runs ticks as Dagster runs in this process: what `demo` and `backfill` share.

Each tick is a run of the flow's job for one partition, recorded in the project's instance, so the
UI shows it like any other. Spark starts once, with the first tick.

Somebody sits in front of it. So Ctrl-C is recorded as what it is, a run that somebody terminated,
and not as a failure, which would be tried again by the flow's sensor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run_iterator
from dagster._core.utils import make_new_run_id
from dagster._utils.interrupts import check_captured_interrupt
from dagster_shared.error import SerializableErrorInfo

from hydro_core.errors import DataError
from hydro_core.machine.processes import this_process
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow

from ..code_location.factory import project_definitions
from ..code_location.records import end_orphans, refuse_lost_pipeline, unrecorded
from ..instance.opening import open_instance
from ..instance.run_tags import CORRECT, CORRECT_TAG, PARTITION, process_tag, range_tags
from ..quality.changed import CorrectionResult
from ..runner.correction import CorrectionPlan
from ..runner.report import TickReport
from ..runner.runner import TickRunner

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_INTERRUPTS = ("DagsterExecutionInterruptedError", "KeyboardInterrupt")
_SAYS = "Somebody interrupted it where it was started (Ctrl-C)."


@dataclass(frozen=True, slots=True)
class RunHere:
    """A run that has ended: whether all of it succeeded, and what the first failed step raised,
    from the outermost error to its cause.
    """

    success: bool
    errors: Sequence[SerializableErrorInfo]

    @property
    def reason(self) -> str:
        """Why it failed: the innermost cause."""
        return self.errors[-1].to_string() if self.errors else "the run failed"


def run_here(
    job: dg.JobDefinition,
    instance: dg.DagsterInstance,
    keys: tuple[str, str],
    more: Mapping[str, str] | None = None,
) -> RunHere:
    """Executes a job for the ticks from one key to another, as one run of this process.

    Args:
        instance: where the run is recorded.
        keys: those of the first and the last tick.
        more: tags of the run beside those that it needs.

    Raises:
        KeyboardInterrupt: Ctrl-C came; the run is recorded as terminated, unless it was done by
            then.
    """
    ticks = {PARTITION: keys[0]} if keys[0] == keys[1] else range_tags(*keys)
    number = make_new_run_id()
    tags = {**job.run_tags, **process_tag(number, this_process()), **ticks, **(more or {})}
    run = instance.create_run_for_job(job, run_id=number, run_config=_QUIET, tags=tags)
    interrupted = False
    errors: list[SerializableErrorInfo] = []
    try:
        for event in execute_run_iterator(InMemoryJob(job), run, instance):
            # Dagster asks how the run stands before it says how it has ended.
            if not errors:
                errors = list(_errors(event))
                if any(error.cls_name in _INTERRUPTS for error in errors):
                    interrupted = True
                    instance.report_run_canceling(run, _SAYS)
            # What comes between two steps is noted by Dagster, and forgotten with the run.
            interrupted |= check_captured_interrupt()
    except KeyboardInterrupt:
        if not _ended(instance, run).is_finished:
            instance.report_run_canceled(run, _SAYS)
        raise
    if interrupted:
        raise KeyboardInterrupt
    return RunHere(_ended(instance, run).is_success, errors)


def _ended(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRun:
    return instance.get_run_by_id(run.run_id) or run


def _errors(event: dg.DagsterEvent) -> Iterator[SerializableErrorInfo]:
    """What a failed step raised, and then its causes."""
    error = event.step_failure_data.error if event.is_step_failure else None
    while error is not None:
        yield error
        error = error.cause


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
