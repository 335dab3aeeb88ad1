"""Whole runs of Dagster, executed in a process of a worker: what `hydrotick dev` launches."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from functools import cache

import dagster as dg
from dagster._core.execution.api import execute_run_iterator
from dagster._utils.hosted_user_process import recon_job_from_origin
from dagster._utils.interrupts import capture_interrupts, pop_captured_interrupt

from hydro_core.machine.processes import this_process

from ..instance.run_tags import PROCESS_TAG


def execute_run(home: str, run_id: str, is_wanted: Callable[[], bool]) -> None:
    """Executes a run to its end, whatever that is: afterwards Dagster has it as finished.

    Args:
        home: that of the run's instance.
        run_id: the run.
        is_wanted: whether nobody has cancelled it by now.
    """
    with capture_interrupts():
        # One that came too late for the work before is not meant for this.
        pop_captured_interrupt()
        if is_wanted():
            _executed(_instance(home), run_id)
        else:
            _ended(_instance(home), run_id, "It was interrupted before it began.")


@cache
def _instance(home: str) -> dg.DagsterInstance:
    # The shipped settings name the directory by Dagster's own variable.
    os.environ["DAGSTER_HOME"] = home
    return dg.DagsterInstance.get()


def _executed(instance: dg.DagsterInstance, run_id: str) -> None:
    run = instance.get_run_by_id(run_id)
    if run is None or run.is_finished:
        return
    problem = "It ended without saying how."
    try:
        if run.status is not dg.DagsterRunStatus.CANCELING:
            instance.add_run_tags(run_id, {PROCESS_TAG: this_process()})
            _execute(instance, run_id)
    except KeyboardInterrupt:
        problem = "It was interrupted before it began."
    except BaseException as error:  # noqa: BLE001 - one run's ruin must not be that of the next
        traceback.print_exc()
        problem = f"The run could not be executed: {type(error).__name__}: {error}"
    _ended(instance, run_id, problem)


def _ended(instance: dg.DagsterInstance, run_id: str, problem: str) -> None:
    run = instance.get_run_by_id(run_id)
    if run is None or run.is_finished:
        return
    if run.status is dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run)
    else:
        instance.report_run_failed(run, problem)


def _execute(instance: dg.DagsterInstance, run_id: str) -> None:
    run = instance.get_run_by_id(run_id)
    if run is None or run.job_code_origin is None:
        raise ValueError("the run does not say where its code is")
    for _ in execute_run_iterator(recon_job_from_origin(run.job_code_origin), run, instance):
        pass
