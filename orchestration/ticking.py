"""Runs ticks as Dagster runs in this process: what `demo` and `backfill` share.

Each tick is a run of the flow's job for one partition, recorded in the project's instance, so the UI shows it like any
other. Spark starts once, with the first tick.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from assets.spec import FlowAsset
from hydro_core.errors import DataError, Diagnostic
from orchestration.instance import prepare_instance
from orchestration.runner import TickReport, TickRunner
from orchestration.sensors import IN_FLIGHT
from orchestration.ticks import TickAxis, Window

_PROCESS = "hydrotick/process"


@dataclass(frozen=True, slots=True)
class TickDone:
    """A tick that is committed, with its report and how many seconds its run took."""

    window: Window
    report: TickReport
    seconds: float


def open_instance(directory: Path) -> dg.DagsterInstance:
    """The project's Dagster instance; it is made where there is none."""
    # The shipped settings name the directory by Dagster's own variable.
    os.environ["DAGSTER_HOME"] = str(prepare_instance(directory))
    return dg.DagsterInstance.get()


def run_ticks(
    flow: FlowAsset,
    runner: TickRunner,
    job: dg.JobDefinition,
    last: int,
    started: Callable[[Window], None],
) -> Iterator[TickDone]:
    """Runs the ticks after the last committed one up to `last`, each as a Dagster run, and gives each when done.

    Raises:
        DataError: a tick failed; the ticks before it are committed, it is not.
    """
    axis = TickAxis(flow.ticks)
    with open_instance(runner.project.dagster_home) as instance:
        _end_orphans(instance, flow)
        runner.warm_up()
        for tick in range(runner.next_tick(flow), last + 1):
            window = axis.window(tick)
            started(window)
            begin = time.monotonic()
            result = job.execute_in_process(
                partition_key=window.key,
                instance=instance,
                raise_on_error=False,
                tags={_PROCESS: str(os.getpid())},
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            )
            report = runner.last_report(flow)
            if not result.success or report is None or not report.committed:
                raise _failed(flow, window, report, result)
            yield TickDone(window, report, time.monotonic() - begin)


def _end_orphans(instance: dg.DagsterInstance, flow: FlowAsset) -> None:
    """Runs whose process is gone (killed, say) are shown as failed, not as running for ever."""
    open_runs = dg.RunsFilter(tags={"flow": flow.name}, statuses=IN_FLIGHT)
    for record in instance.get_run_records(open_runs):
        process = record.dagster_run.tags.get(_PROCESS)
        if process is not None and not Path(f"/proc/{process}").exists():
            instance.report_run_failed(record.dagster_run, "its process ended before the tick did")


def _failed(
    flow: FlowAsset, window: Window, report: TickReport | None, result: dg.ExecuteInProcessResult
) -> Exception:
    if report is None:
        return RuntimeError(f"tick {window.key} of `{flow.name}` failed: {_reason(result)}")
    return DataError(
        Diagnostic(
            code="runtime",
            message=f"tick {window.key} of `{flow.name}` failed: {report.problem}",
            help="mend its cause and run it again; the ticks before it are committed and stay",
        )
    )


def _reason(result: dg.ExecuteInProcessResult) -> str:
    """What the failed step raised, the innermost cause first."""
    for event in result.all_events:
        if event.is_step_failure and event.step_failure_data.error is not None:
            error = event.step_failure_data.error
            while error.cause is not None:
                error = error.cause
            return error.to_string()
    return "the run failed"
