"""Resident workers answer, execute runs with everything warm, and end when they are told to."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from hydro_core.processes import has_ended, this_process
from hydrotick.instance import dev_lock, prepare_instance
from hydrotick.instance.opening import open_instance
from hydrotick.instance.run_tags import PROCESS_TAG
from hydrotick.resident.calls import call, listen, workers_of
from hydrotick.resident.launcher import ResidentRunLauncher
from hydrotick.resident.pool import WorkerPool

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
    WorkerPool(found, 1).stop()


def test_a_process_is_known_by_its_host_and_start() -> None:
    host, _, name = this_process().rpartition(":")
    assert host == socket.gethostname()
    assert not has_ended(this_process())
    number = os.getpid()
    assert has_ended(f"{host}:{number}@1")
    assert has_ended("")
    with subprocess.Popen([sys.executable, "-c", "pass"]) as ended:
        ended.wait()
    assert has_ended(f"{host}:{ended.pid}@{number}")
    # Of another host nothing is known here; a name without one is of this.
    assert not has_ended(f"elsewhere:{number}@1")
    assert not has_ended(name)


def test_messages_pass_over_a_socket_with_a_long_path(home: Path) -> None:
    workers_of(home).mkdir()
    with listen(home, 3) as listening:
        answering = threading.Thread(target=_echo, args=(listening,))
        answering.start()
        assert call(home, 3, do="health", run="é") == {"do": "health", "run": "é"}
        answering.join()
    with pytest.raises(OSError, match="refused"):
        call(home, 3, do="health")


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
        far = instance.create_run_for_job(_job("says_who"), tags={PROCESS_TAG: "elsewhere:1@0"})
        assert launcher.check_run_worker_health(far).status.value == "UNKNOWN"


def _job(name: str) -> dg.JobDefinition:
    from tests.orchestration import resident_jobs

    return resident_jobs.defs.resolve_job_def(name)


def test_runs_share_a_process_and_one_can_be_stopped(home: Path) -> None:
    with open_instance(home) as instance:
        first = _launch(instance, "says_who")
        assert _end(instance, first) == "SUCCESS"
        second = _launch(instance, "says_who")
        assert _end(instance, second) == "SUCCESS"
        assert _said(instance, first) == _said(instance, second) != str(os.getpid())

        failing = _launch(instance, "fails")
        assert _end(instance, failing) == "FAILURE"
        endless = _launch(instance, "does_not_end")
        _until(lambda: _status(instance, endless) == "STARTED")
        run = instance.get_run_by_id(endless)
        assert run is not None
        assert instance.run_launcher.check_run_worker_health(run).status.value == "RUNNING"
        assert instance.run_launcher.terminate(endless)
        assert _end(instance, endless) == "CANCELED"

        last = _launch(instance, "says_who")
        assert _end(instance, last) == "SUCCESS"
        assert _said(instance, last) == _said(instance, first)


def test_a_run_that_does_not_end_keeps_none_of_another_flow_waiting(home: Path) -> None:
    with open_instance(home) as instance:
        endless = _launch(instance, "does_not_end", flow="slow")
        _until(lambda: _status(instance, endless) == "STARTED")
        other = _launch(instance, "says_who", flow="other")
        assert _end(instance, other) == "SUCCESS"
        pool = ResidentRunLauncher.pool.fget(instance.run_launcher)  # type: ignore[attr-defined]
        assert [(worker.run, worker.flow) for worker in pool.workers()] == [
            (endless, ""),
            ("", "other"),
        ]
        # The next run of a flow is executed where its last one was.
        again = _launch(instance, "says_who", flow="other")
        assert _end(instance, again) == "SUCCESS"
        assert _said(instance, again) == _said(instance, other)
        # Two runs at a time: no third is handed to anybody.
        full = WorkerPool(home, 1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hydrotick.resident.pool._SECONDS_FOR_A_PLACE", 1)
            only = _launch(instance, "does_not_end", flow="other")
            _until(lambda: _status(instance, only) == "STARTED")
            with pytest.raises(RuntimeError, match="busy with other runs"):
                full.hand_over("a run", "other", lambda _: False)
        for run in (endless, only):
            assert instance.run_launcher.terminate(run)
            assert _end(instance, run) == "CANCELED"


def test_the_workers_of_an_instance_are_as_many_as_its_runs_at_a_time(home: Path) -> None:
    with open_instance(home) as instance:
        launcher = instance.run_launcher
        assert isinstance(launcher, ResidentRunLauncher)
        assert launcher.pool._size == 2


def test_a_worker_stuck_after_its_run_is_replaced(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hydrotick.resident.pool._SECONDS_FOR_A_PLACE", 1)
    with open_instance(home) as instance:
        endless = _launch(instance, "does_not_end")
        _until(lambda: _status(instance, endless) == "STARTED")
        pool = WorkerPool(home, 1)
        (stuck,) = pool.workers()
        # As when somebody had Dagster take it for canceled, without waiting for its process.
        pool.hand_over("no run", "", lambda run: run == endless)
        assert has_ended(stuck.process)
        _until(lambda: [worker.run for worker in pool.workers()] == [""])


@pytest.mark.spark
def test_the_jvm_stays_from_run_to_run_and_is_replaced_when_it_was_killed(home: Path) -> None:
    with open_instance(home) as instance:
        runs = []
        for _ in range(2):
            runs.append(_launch(instance, "asks_spark"))
            assert _end(instance, runs[-1]) == "SUCCESS"
        jvm = _said(instance, runs[0], "Spark is")
        assert _said(instance, runs[1], "Spark is") == jvm
        os.kill(int(jvm), signal.SIGKILL)
        after = _launch(instance, "asks_spark")
        assert _end(instance, after) == "SUCCESS"
        assert _said(instance, after, "Spark is") != jvm
        assert _said(instance, after) == _said(instance, runs[0])


def test_there_is_one_worker_of_a_number_and_it_can_be_told_to_end(home: Path) -> None:
    pool = WorkerPool(home, 1)
    pool.start(0)
    (worker,) = pool.workers()
    second = subprocess.run(
        [sys.executable, "-m", "hydrotick.resident.worker", str(home), "0"],
        cwd=ROOT,
        check=True,
        timeout=SECONDS,
        capture_output=True,
    )
    assert not second.stderr
    pool.start(0)
    assert list(pool.workers()) == [worker]
    pool.stop()
    assert not list(pool.workers())
    assert has_ended(worker.process)


def test_a_worker_ends_when_the_dev_command_that_it_was_started_under_was_killed(
    home: Path,
) -> None:
    script = (
        "import sys, time; from pathlib import Path; from hydrotick.instance import dev_lock;"
        "assert dev_lock(Path(sys.argv[1])).take(); print(flush=True); time.sleep(600)"
    )
    words = [sys.executable, "-c", script, str(home)]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE) as dev:
        assert dev.stdout is not None
        dev.stdout.readline()
        assert dev_lock(home).holder()["process"].startswith(f"{socket.gethostname()}:{dev.pid}@")
        assert not dev_lock(home).take()
        with open_instance(home) as instance:
            endless = _launch(instance, "does_not_end")
            _until(lambda: _status(instance, endless) == "STARTED")
            (worker,) = WorkerPool(home, 1).workers()
            dev.kill()
            dev.wait()
            _until(lambda: has_ended(worker.process))
            # It was the end of its process, not a person: the tick may be tried again.
            assert _status(instance, endless) == "FAILURE"
    assert dev_lock(home).holder() == {}


def _launch(instance: dg.DagsterInstance, name: str, flow: str = "") -> str:
    """Creates a run as the UI does, with the place of its code, and hands it to the worker."""
    from dagster._core.definitions.reconstruct import reconstructable
    from dagster._core.launcher.base import LaunchRunContext

    from tests.orchestration import resident_jobs

    job = reconstructable(getattr(resident_jobs, name))
    run = instance.create_run_for_job(
        job.get_definition(),
        job_code_origin=job.get_python_origin(),
        status=dg.DagsterRunStatus.STARTING,
        tags={"flow": flow} if flow else {},
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


def _said(instance: dg.DagsterInstance, run_id: str, what: str = "executed by") -> str:
    (said,) = [
        log.user_message for log in instance.all_logs(run_id) if log.user_message.startswith(what)
    ]
    return said.rpartition(" ")[2]


def _until(holds: object) -> None:
    assert callable(holds)
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)
