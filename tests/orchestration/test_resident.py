"""The resident worker answers, executes runs in one process and ends when told to."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from orchestration.instance import prepare_instance
from orchestration.processes import PROCESS_TAG, is_alive, this_process
from orchestration.resident.calls import call, listen
from orchestration.resident.launcher import ResidentRunLauncher, start_worker, stop_worker
from orchestration.ticking import open_instance

pytestmark = pytest.mark.dagster

ROOT = Path(__file__).parents[2]
JOBS = "tests.orchestration.resident_jobs"
SECONDS = 120


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Longer than the path of a socket may be.
    found = prepare_instance(tmp_path / ("a" * 100) / "dagster")
    monkeypatch.setenv("DAGSTER_HOME", str(found))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    yield found
    stop_worker(found)


def test_a_process_is_known_by_its_start() -> None:
    assert is_alive(this_process())
    number = os.getpid()
    assert not is_alive(f"{number}@1")
    assert not is_alive("")
    with subprocess.Popen([sys.executable, "-c", "pass"]) as ended:
        ended.wait()
    assert not is_alive(f"{ended.pid}@{number}")


def test_messages_pass_over_a_socket_with_a_long_path(home: Path) -> None:
    with listen(home) as listening:
        answering = threading.Thread(target=_echo, args=(listening,))
        answering.start()
        assert call(home, do="health", run="é") == {"do": "health", "run": "é"}
        answering.join()
    with pytest.raises(OSError, match="refused"):
        call(home, do="health")


def _echo(listening: socket.socket) -> None:
    connection, _ = listening.accept()
    with connection, connection.makefile("rwb") as lines:
        lines.write(lines.readline())


def test_without_a_worker_runs_are_not_healthy(home: Path) -> None:
    with open_instance(home) as instance:
        launcher = instance.run_launcher
        assert isinstance(launcher, ResidentRunLauncher)
        run = instance.create_run_for_job(_job("says_who"))
        assert launcher.check_run_worker_health(run).status.value == "NOT_FOUND"
        tagged = instance.create_run_for_job(_job("says_who"), tags={PROCESS_TAG: this_process()})
        assert launcher.check_run_worker_health(tagged).status.value == "RUNNING"
        gone = instance.create_run_for_job(_job("says_who"), tags={PROCESS_TAG: "1@0"})
        assert launcher.check_run_worker_health(gone).status.value == "NOT_FOUND"


def _job(name: str) -> dg.JobDefinition:
    from tests.orchestration import resident_jobs

    return resident_jobs.defs.resolve_job_def(name)


def test_runs_share_a_process_and_one_can_be_stopped(home: Path) -> None:
    with open_instance(home) as instance:
        first, second = (_launch(instance, "says_who") for _ in range(2))
        assert [_end(instance, run) for run in (first, second)] == ["SUCCESS", "SUCCESS"]
        assert _said(instance, first) == _said(instance, second) != str(os.getpid())

        failing = _launch(instance, "fails")
        endless, waiting = _launch(instance, "does_not_end"), _launch(instance, "says_who")
        assert _end(instance, failing) == "FAILURE"
        _until(lambda: _status(instance, endless) == "STARTED")
        assert instance.run_launcher.terminate(waiting)
        assert instance.run_launcher.terminate(endless)
        assert _end(instance, endless) == "CANCELED"
        assert _end(instance, waiting) == "CANCELED"

        last = _launch(instance, "says_who")
        assert _end(instance, last) == "SUCCESS"
        assert _said(instance, last) == _said(instance, first)


def test_there_is_one_worker_and_it_can_be_told_to_end(home: Path) -> None:
    start_worker(home)
    worker = call(home, do="health")["state"]
    second = subprocess.run(
        [sys.executable, "-m", "orchestration.resident.worker", str(home)],
        cwd=ROOT,
        check=True,
        timeout=SECONDS,
        capture_output=True,
    )
    assert not second.stderr
    start_worker(home)
    assert call(home, do="health")["state"] == worker
    stop_worker(home)
    _until(lambda: not _listens(home))


def _listens(home: Path) -> bool:
    try:
        call(home, do="health")
    except OSError:
        return False
    return True


def _launch(instance: dg.DagsterInstance, name: str) -> str:
    """Creates a run as the UI does, with the place of its code, and hands it to the worker."""
    from dagster._core.definitions.reconstruct import reconstructable
    from dagster._core.launcher.base import LaunchRunContext

    from tests.orchestration import resident_jobs

    job = reconstructable(getattr(resident_jobs, name))
    run = instance.create_run_for_job(
        job.get_definition(),
        job_code_origin=job.get_python_origin(),
        status=dg.DagsterRunStatus.STARTING,
    )
    instance.run_launcher.launch_run(LaunchRunContext(run, workspace=None))
    return run.run_id


def _status(instance: dg.DagsterInstance, run_id: str) -> str:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status.value


def _end(instance: dg.DagsterInstance, run_id: str) -> str:
    ends = {"SUCCESS", "FAILURE", "CANCELED"}
    _until(lambda: _status(instance, run_id) in ends)
    return _status(instance, run_id)


def _said(instance: dg.DagsterInstance, run_id: str) -> str:
    (said,) = [
        log.user_message
        for log in instance.all_logs(run_id)
        if log.user_message.startswith("executed by")
    ]
    return said.rpartition(" ")[2]


def _until(holds: object) -> None:
    assert callable(holds)
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)
