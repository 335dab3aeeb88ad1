"""A run launcher that hands runs to the resident worker, which it starts when there is none."""

from __future__ import annotations

import os
import sys
import time
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

from orchestration.processes import PROCESS_TAG, is_alive
from orchestration.resident.calls import call

_SECONDS_TO_START = 60


class ResidentRunLauncher(RunLauncher[dg.DagsterInstance], ConfigurableClass):
    """Launches runs in the resident worker of the instance's home."""

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        self._inst_data = inst_data
        super().__init__()

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        """How the instance's settings name this class."""
        return self._inst_data

    @classmethod
    def config_type(cls) -> Mapping[str, Any]:
        """It takes no settings."""
        return {}

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> ResidentRunLauncher:
        """The launcher as the instance's settings ask for it."""
        return cls(inst_data=inst_data, **config_value)

    @property
    def _home(self) -> Path:
        return Path(self._instance.root_directory)

    def launch_run(self, context: LaunchRunContext) -> None:
        """Hands the run to the worker; the run fails to launch, with the reason, if that fails."""
        run = context.dagster_run
        self._instance.report_engine_event("Handing the run to the resident worker.", run)
        start_worker(self._home)
        call(self._home, do="run", run=run.run_id)

    def terminate(self, run_id: str) -> bool:
        """Interrupts the run, or takes it out of the queue."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        self._instance.report_run_canceling(run)
        return bool(call(self._home, do="cancel", run=run_id).get("known"))

    @property
    def supports_check_run_worker_health(self) -> bool:
        """It can tell a run that goes on from one whose process is gone."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Whether the process of the run is there: the worker, or the one that its tag names."""
        process = run.tags.get(PROCESS_TAG)
        if process is not None:
            known, state = is_alive(process), f"process {process}"
        else:
            try:
                answer = call(self._home, do="health", run=run.run_id)
            except OSError as error:
                answer = {"known": False, "state": f"there is no resident worker: {error}"}
            known, state = answer["known"], answer["state"]
        return CheckRunHealthResult(
            WorkerStatus.RUNNING if known else WorkerStatus.NOT_FOUND, state
        )


def start_worker(home: Path) -> None:
    """Starts the worker of `home` unless it is there, and waits until it answers.

    Raises:
        RuntimeError: it does not start; its log says why.
    """
    if _answers(home):
        return
    log = home / "worker.log"
    worker = _spawn(home, log)
    end = time.monotonic() + _SECONDS_TO_START
    ended = False
    while not _answers(home):
        # One that finds another worker at work ends at once, and all is well.
        ended = ended or os.waitpid(worker, os.WNOHANG)[0] == worker
        if time.monotonic() > end:
            raise RuntimeError(f"the resident worker does not start; see {log}")
        time.sleep(0.1)


def stop_worker(home: Path) -> None:
    """Ends the worker of `home`, and with it the run that it executes; fine if there is none."""
    try:
        call(home, do="stop")
    except OSError:
        return


def _spawn(home: Path, log: Path) -> int:
    """Starts a process that goes on when this one ends."""
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    words = [sys.executable, "-m", "orchestration.resident.worker", str(home)]
    return os.posix_spawn(sys.executable, words, os.environ, file_actions=files, setsid=True)


def _answers(home: Path) -> bool:
    try:
        return bool(call(home, do="health", run="").get("ready"))
    except OSError:
        return False
