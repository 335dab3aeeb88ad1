"""A run launcher that hands runs to the worker of the instance's home, where one is at work.

Where none is, runs are launched as Dagster's default launcher does it. Either way they are ordinary
runs; in the worker, whose processes execute them here, they find Dagster and Spark loaded.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.execution.api import execute_run_iterator
from dagster._core.launcher.base import CheckRunHealthResult, LaunchRunContext, WorkerStatus
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._serdes import ConfigurableClassData
from dagster._utils.hosted_user_process import recon_job_from_origin
from dagster._utils.interrupts import capture_interrupts, pop_captured_interrupt

from hydro_core.machine.locks import has_ended, host_of, this_process

from ..instance.run_tags import flow_of, process_of, process_tag
from .wire import ask, place_in


class WorkerRunLauncher(dg.DefaultRunLauncher):
    """Launches runs in the worker of the instance's home, else in processes of their own."""

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> WorkerRunLauncher:
        return cls(inst_data=inst_data, **config_value)

    def launch_run(self, context: LaunchRunContext) -> None:
        run = context.dagster_run
        answer = self._ask(do="run", run=run.run_id, flow=flow_of(run), home=str(self._home))
        if answer.get("kind") == "taken":
            self._instance.report_engine_event("Handed the run to the worker.", run)
            return
        super().launch_run(context)

    def terminate(self, run_id: str) -> bool:
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        if self._ask(do="cancel", run=run_id).get("done"):
            return True
        return bool(super().terminate(run_id))

    @property
    def supports_check_run_worker_health(self) -> bool:
        """It can tell a run that goes on from one whose process is gone."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Health of the run by the process that its tag names."""
        process = process_of(run)
        if process is None and GRPC_INFO_TAG in run.tags:
            # The code server that has started its process tells of its end.
            return CheckRunHealthResult(WorkerStatus.RUNNING, "a process of its own")
        if process is None or has_ended(process):
            says = f"its process has ended: {process}" if process else ""
            return CheckRunHealthResult(WorkerStatus.NOT_FOUND, says)
        if host_of(process) == host_of(this_process()):
            return CheckRunHealthResult(WorkerStatus.RUNNING, f"process {process}")
        # One on another host, or in another container: the worker knows.
        running = self._ask(do="status").get("running")
        if running is None:
            return CheckRunHealthResult(WorkerStatus.UNKNOWN, f"process {process}; no worker says")
        is_running = any(job["run"] == run.run_id for job in running)
        status = WorkerStatus.RUNNING if is_running else WorkerStatus.NOT_FOUND
        return CheckRunHealthResult(status, f"process {process}, as the worker says")

    @property
    def _home(self) -> Path:
        return Path(self._instance.root_directory)

    def _ask(self, **message: Any) -> dict[str, Any]:
        try:
            return ask(place_in(self._home.parent), **message)
        except (OSError, ValueError):
            return {}


def execute_run(home: str, run_id: str, is_wanted: Callable[[], bool]) -> None:
    """Executes a run of the instance at `home` to its end, whatever that is: afterwards Dagster has
    it as finished. `is_wanted` says whether nobody has cancelled it by now.
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
            instance.add_run_tags(run_id, process_tag(run_id, this_process()))
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
