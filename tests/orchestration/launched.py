"""Runs launched as companies launch them: an instance of one's own, with Dagster's own launcher, a
code server, and a process for each run; beside it a worker.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
from dagster._cli.job import _create_run
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import PythonFileTarget

from hydrotick.cli.init import put_project
from hydrotick.instance.run_tags import PARTITION, range_tags
from hydrotick.worker.wire import WorkerPlace, ask, place_in

SECONDS = 180
COMMAND = [sys.executable, "-m", "hydro_core.cli.main"]

DEFINITIONS = """
from pathlib import Path
import dagster as dg
from hydrotick import load_definitions

flows = dg.AssetSelection.groups("totals").without_checks()
several = dg.define_asset_job("several", flows, executor_def=dg.multiprocess_executor)
defs = dg.Definitions.merge(dg.Definitions(jobs=[several]), load_definitions(Path({shop!r})))
"""


class Company:
    """A project below `at`, in a Dagster instance whose settings are not ours."""

    def __init__(self, at: Path) -> None:
        self.shop, self.home = at / "shop", at / "shop" / "data"
        put_project(self.shop, "totals")
        self.definitions = at / "definitions.py"
        self.definitions.write_text(DEFINITIONS.format(shop=str(self.shop)))
        self.dagster = at / "dagster"
        self.dagster.mkdir()
        (self.dagster / "dagster.yaml").write_text("telemetry: {enabled: false}\n")

    @property
    def environment(self) -> dict[str, str]:
        """What all processes of the company have."""
        return {
            "DAGSTER_HOME": str(self.dagster),
            "HYDROTICK_HOME": str(self.home),
            "HYDROTICK_SPARK_MASTER": "local[2]",
        }

    @property
    def place(self) -> WorkerPlace:
        """Where the worker is asked."""
        return place_in(self.home)

    @contextmanager
    def worker(self, *words: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
        """`hydrotick worker`, which answers; it is killed in the end."""
        log = self.home.with_suffix(".worker.log")
        with (
            log.open("ab") as output,
            subprocess.Popen(
                [*COMMAND, "worker", *words],
                cwd=self.shop,
                env={**os.environ, **self.environment, **environment},
                stdout=output,
                stderr=output,
            ) as process,
        ):
            try:
                until(lambda: process.poll() is not None or self.status())
                assert process.poll() is None, log.read_text()
                yield process
            finally:
                below = psutil.Process(process.pid).children(recursive=True)
                process.kill()
                for one in below:
                    with suppress(psutil.Error):
                        one.kill()

    def status(self) -> dict[str, Any]:
        """How the worker is; empty where it does not answer."""
        try:
            return ask(self.place, do="status")
        except OSError:
            return {}

    @contextmanager
    def launcher(self, **environment: str) -> Iterator[Launches]:
        """What launches runs: Dagster's default launcher, with a code server."""
        with ExitStack() as stack:
            stack.enter_context(_environ({**self.environment, **environment}))
            instance = stack.enter_context(dg.DagsterInstance.get())
            target = PythonFileTarget(str(self.definitions), None, str(self.shop), "company")
            context = WorkspaceProcessContext(instance, target)
            # Behind its end, which tells the code server to end.
            stack.callback(context._grpc_server_registry.wait_for_processes)
            stack.enter_context(context)
            yield Launches(instance, context)


class Launches:
    """Launches runs in an instance, and says how they ended."""

    def __init__(self, instance: dg.DagsterInstance, context: WorkspaceProcessContext) -> None:
        self.instance, self._context = instance, context

    def launch(self, key: str, job: str = "totals_job", last: str | None = None) -> str:
        """Launches a job for a tick, or for those up to `last`; gives the run."""
        workspace = self._context.create_request_context()
        location = workspace.get_code_location("company")
        (repository,) = location.get_repositories().values()
        run = _create_run(
            instance=self.instance,
            code_location=location,
            remote_repo=repository,
            remote_job=repository.get_full_job(job),
            run_config={},
            tags={PARTITION: key} if last is None else range_tags(key, last),
            op_selection=None,
            run_id=None,
        )
        self.instance.launch_run(run.run_id, workspace)
        return run.run_id

    def run(self, key: str, job: str = "totals_job") -> str:
        """Launches a job for one tick and waits for its end; gives the run."""
        run = self.launch(key, job)
        self.end(run)
        return run

    def status(self, run: str) -> str:
        """How a run is."""
        found = self.instance.get_run_by_id(run)
        assert found is not None
        return found.status.value

    def tags(self, run: str) -> Mapping[str, str]:
        """What a run is tagged with."""
        found = self.instance.get_run_by_id(run)
        assert found is not None
        return found.tags

    def end(self, run: str) -> str:
        """How a run ended, for which it is waited."""
        until(lambda: self.status(run) in {"SUCCESS", "FAILURE", "CANCELED"})
        return self.status(run)

    def metadata(self, run: str) -> Mapping[str, Any]:
        """What a run recorded of the output."""
        kind = dg.DagsterEventType.ASSET_MATERIALIZATION
        events = [log.get_dagster_event() for log in self.instance.all_logs(run, of_type=kind)]
        (event,) = [e for e in events if e.asset_key == dg.AssetKey(["totals", "totals"])]
        return {name: value.value for name, value in event.materialization.metadata.items()}

    def says(self, run: str) -> str:
        """All that a run has logged."""
        logs = self.instance.all_logs(run)
        errors = [
            log.dagster_event.step_failure_data.error.to_string()
            for log in logs
            if log.dagster_event is not None
            and log.dagster_event.is_step_failure
            and log.dagster_event.step_failure_data.error is not None
        ]
        return "\n".join([*(log.user_message for log in logs), *errors])


class JvmsSeen:
    """The JVMs that a company's processes started while it was watched: the processes above."""

    def __init__(self, company: Company) -> None:
        self._home, self._ended = str(company.home), threading.Event()
        self.above: dict[int, set[int]] = {}
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> JvmsSeen:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            for process in psutil.process_iter(["name"]):
                with suppress(psutil.Error):
                    if process.info["name"] == "java":
                        ours = process.environ().get("HYDROTICK_HOME") == self._home
                        above = {one.pid for one in process.parents()}
                        self.above |= {process.pid: above} if ours else {}


@contextmanager
def _environ(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def until(holds: Callable[[], object], every: float = 0.25) -> None:
    """Waits until it holds, which is asked every so many seconds."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(every)


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
