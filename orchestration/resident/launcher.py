"""A run launcher that hands runs to resident workers, which it starts when they are needed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.launcher.base import (
    CheckRunHealthResult,
    LaunchRunContext,
    RunLauncher,
    WorkerStatus,
)
from dagster._serdes import ConfigurableClass, ConfigurableClassData

from hydro_core.processes import has_ended, host_of, this_process

from ..instance.run_tags import PROCESS_TAG, flow_of
from .pool import WorkerPool


class ResidentRunLauncher(RunLauncher[dg.DagsterInstance], ConfigurableClass):
    """Launches runs in resident workers of the instance's home, as many as may run at a time."""

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        self._inst_data = inst_data
        super().__init__()

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """How the instance's settings name this class."""
        return self._inst_data

    @classmethod
    def config_type(cls) -> Mapping[str, Any]:
        """It takes no settings: `concurrency.runs.max_concurrent_runs` limits its workers."""
        return {}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> ResidentRunLauncher:
        """The launcher as the instance's settings ask for it."""
        return cls(inst_data=inst_data, **config_value)

    @property
    def pool(self) -> WorkerPool:
        """The workers of this instance."""
        queue = self._instance.get_concurrency_config().run_queue_config
        limit = -1 if queue is None else queue.max_concurrent_runs
        return WorkerPool(Path(self._instance.root_directory), limit if limit > 0 else sys.maxsize)

    def launch_run(self, context: LaunchRunContext) -> None:
        """Hands the run to a worker; the run fails to launch, with the reason, if that fails."""
        run = context.dagster_run
        worker = self.pool.hand_over(run.run_id, flow_of(run), self._is_finished)
        said = f"Handed the run to resident worker {worker.number} ({worker.process})."
        self._instance.report_engine_event(said, run)

    def terminate(self, run_id: str) -> bool:
        """Interrupts the run."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        return self.pool.cancel(run_id)

    @property
    def supports_check_run_worker_health(self) -> bool:
        """It can tell a run that goes on from one whose process is gone."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Whether the process of the run is there: the one that its tag names."""
        process = run.tags.get(PROCESS_TAG, "")
        if has_ended(process):
            return CheckRunHealthResult(
                WorkerStatus.NOT_FOUND, f"its process has ended: {process}" if process else ""
            )
        here = host_of(process) == host_of(this_process())
        return CheckRunHealthResult(
            WorkerStatus.RUNNING if here else WorkerStatus.UNKNOWN, f"process {process}"
        )

    def _is_finished(self, run_id: str) -> bool:
        run = self._instance.get_run_by_id(run_id)
        return run is None or run.is_finished
