"""A worker executes whole runs, with everything warm, and ends when it is told to."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import pytest

from hydro_core.machine.locks import has_ended, this_process
from hydrotick.instance import prepare_instance
from hydrotick.instance.opening import open_instance
from hydrotick.instance.run_tags import PROCESS_TAG
from hydrotick.project.settings import ProjectSettings
from hydrotick.project.settings_file import WorkerSettings
from hydrotick.worker.launcher import WorkerRunLauncher
from hydrotick.worker.service import WorkerService
from hydrotick.worker.wire import WorkerPlace, ask, connect, listen, place_in

pytestmark = pytest.mark.dagster

ROOT = Path(__file__).parents[2]
SECONDS = 120


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Longer than the path of a socket may be.
    found = prepare_instance(tmp_path / ("a" * 100) / "dagster")
    monkeypatch.setenv("DAGSTER_HOME", str(found))
    monkeypatch.setenv("HYDROTICK_HOME", str(found.parent))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return found


@pytest.fixture
def worker(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    with _worker(home) as process:
        yield process
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0


@contextmanager
def _worker(home: Path) -> Iterator[subprocess.Popen[bytes]]:
    words = [sys.executable, "-m", "hydro_core.cli.main", "worker"]
    with subprocess.Popen(words, cwd=ROOT) as process:
        try:
            _until(lambda: process.poll() is not None or _status(home))
            yield process
        finally:
            process.kill()


def _status(home: Path) -> dict[str, Any]:
    try:
        return ask(place_in(home.parent), do="status")
    except OSError:
        return {}


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
    place = place_in(home.parent)
    with listen(place) as listening:
        assert place.path is not None
        assert place.path.stat().st_mode & 0o777 == 0o600
        answering = threading.Thread(target=_echo, args=(listening,))
        answering.start()
        said = {"protocol": 1, "token": None}
        assert ask(place, do="status", run="é") == {**said, "do": "status", "run": "é"}
        answering.join()
    with pytest.raises(OSError, match="refused"):
        connect(place)


def _echo(listening: socket.socket) -> None:
    connection, _ = listening.accept()
    with connection, connection.makefile("rwb") as lines:
        lines.write(lines.readline())


def test_without_a_worker_runs_are_not_healthy(home: Path) -> None:
    with open_instance(home) as instance:
        launcher = instance.run_launcher
        assert isinstance(launcher, WorkerRunLauncher)
        run = instance.create_run_for_job(_job("says_who"))
        assert launcher.check_run_worker_health(run).status.value == "NOT_FOUND"
        tagged = instance.create_run_for_job(_job("says_who"), tags={PROCESS_TAG: this_process()})
        assert launcher.check_run_worker_health(tagged).status.value == "RUNNING"
        gone = instance.create_run_for_job(_job("says_who"), tags={PROCESS_TAG: "1@0"})
        assert launcher.check_run_worker_health(gone).status.value == "NOT_FOUND"
        far = instance.create_run_for_job(_job("says_who"), tags={PROCESS_TAG: "elsewhere:1@0"})
        assert launcher.check_run_worker_health(far).status.value == "UNKNOWN"


def _health(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    return str(instance.run_launcher.check_run_worker_health(run).status.value)


def _job(name: str) -> dg.JobDefinition:
    from tests.orchestration import worker_jobs

    return worker_jobs.defs.resolve_job_def(name)


def test_runs_share_a_process_and_one_can_be_stopped(
    home: Path, worker: subprocess.Popen[bytes]
) -> None:
    with open_instance(home) as instance:
        first = _launch(instance, "says_who")
        assert _end(instance, first) == "SUCCESS"
        second = _launch(instance, "says_who")
        assert _end(instance, second) == "SUCCESS"
        assert _said(instance, first) == _said(instance, second) != str(worker.pid)

        failing = _launch(instance, "fails")
        assert _end(instance, failing) == "FAILURE"
        leaving = _launch(instance, "leaves")
        assert _end(instance, leaving) == "FAILURE"
        endless = _launch(instance, "does_not_end")
        _until(lambda: _state(instance, endless) == "STARTED")
        run = instance.get_run_by_id(endless)
        assert run is not None
        assert instance.run_launcher.check_run_worker_health(run).status.value == "RUNNING"
        # A container has a host name of its own.
        far = {PROCESS_TAG: f"elsewhere:{run.tags[PROCESS_TAG].rpartition(':')[2]}"}
        assert _health(instance, run.with_tags({**run.tags, **far})) == "RUNNING"
        ended = instance.get_run_by_id(first)
        assert ended is not None
        assert _health(instance, ended.with_tags({**ended.tags, **far})) == "NOT_FOUND"
        assert instance.run_launcher.terminate(endless)
        assert _end(instance, endless) == "CANCELED"

        last = _launch(instance, "says_who")
        assert _end(instance, last) == "SUCCESS"
        assert _said(instance, last) == _said(instance, first)


@pytest.mark.usefixtures("worker")
def test_flows_take_turns(home: Path) -> None:
    with open_instance(home) as instance:
        endless = _launch(instance, "does_not_end", flow="slow")
        other = _launch(instance, "says_who", flow="other")
        assert _end(instance, other) == "SUCCESS"
        # The next run of a flow is executed where its last one was; one of the busy flow waits.
        waiting = _launch(instance, "says_who", flow="slow")
        again = _launch(instance, "says_who", flow="other")
        assert _end(instance, again) == "SUCCESS"
        assert _said(instance, again) == _said(instance, other)
        assert [job["run"] for job in _status(home)["waiting"]] == [waiting]
        # Two flows at a time: no third begins before one has ended.
        only = _launch(instance, "does_not_end", flow="other")
        third = _launch(instance, "says_who", flow="third")
        _until(lambda: _state(instance, only) == "STARTED")
        assert {job["run"] for job in _status(home)["waiting"]} == {waiting, third}
        assert len(_status(home)["processes"]) == 2
        for run in (endless, only):
            assert instance.run_launcher.terminate(run)
            assert _end(instance, run) == "CANCELED"
        assert {_end(instance, run) for run in (waiting, third)} == {"SUCCESS"}


@pytest.mark.spark
@pytest.mark.usefixtures("worker")
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


def test_there_is_one_worker_of_a_home(home: Path, worker: subprocess.Popen[bytes]) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "hydro_core.cli.main", "worker"],
        cwd=ROOT,
        check=False,
        timeout=SECONDS,
        capture_output=True,
        text=True,
    )
    assert second.returncode == 1
    assert f"another worker is at work on {home.parent}: process" in second.stderr
    assert worker.poll() is None


def test_a_worker_that_was_killed_leaves_no_process(home: Path) -> None:
    with _worker(home) as worker, open_instance(home) as instance:
        endless = _launch(instance, "does_not_end")
        _until(lambda: _state(instance, endless) == "STARTED")
        (process,) = (one["process"] for one in _status(home)["processes"])
        worker.kill()
        worker.wait()
        _until(lambda: not psutil.pid_exists(process))
        # It was the end of its process, not a person: the tick may be tried again.
        assert _state(instance, endless) == "FAILURE"


def test_a_process_that_holds_more_than_it_may_is_ended(home: Path) -> None:
    # Python with Dagster holds more than that.
    bounded = WorkerSettings(flows=1, memory="32m")
    settings = ProjectSettings(home=home.parent, root=ROOT, worker=bounded)
    said: list[str] = []
    service = WorkerService(settings, said.append)
    working = threading.Thread(target=service.work)
    with listen(place_in(home.parent)) as listening, open_instance(home) as instance:
        service.serve(listening, None)
        working.start()
        endless = _launch(instance, "does_not_end", flow="slow")
        _until(lambda: service.status()["counts"]["ends"])
        assert service.status()["counts"]["ends"] == [["slow", "gone", 1]]
        run = instance.get_run_by_id(endless)
        assert run is not None
        assert instance.run_launcher.check_run_worker_health(run).status.value == "NOT_FOUND"
        service.stop()
        working.join()
    (why,) = said
    assert why.endswith(" MiB of 32 (`memory` of `[worker]`)")


def test_a_worker_that_drains_ends_what_goes_on_and_takes_no_more(home: Path) -> None:
    with _worker(home) as worker, open_instance(home) as instance:
        going = _launch(instance, "takes_a_while")
        _until(lambda: _state(instance, going) == "STARTED")
        worker.send_signal(signal.SIGTERM)
        _until(lambda: not _status(home)["takes"])
        place: WorkerPlace = place_in(home.parent)
        assert ask(place, do="run", run="", flow="", home="")["why"] == "it ends"
        assert worker.wait(SECONDS) == 0
        assert _state(instance, going) == "SUCCESS"


def _launch(instance: dg.DagsterInstance, name: str, flow: str = "") -> str:
    """Creates a run as the UI does, with the place of its code, and hands it to the worker."""
    from dagster._core.definitions.reconstruct import reconstructable
    from dagster._core.launcher.base import LaunchRunContext

    from tests.orchestration import worker_jobs

    job = reconstructable(getattr(worker_jobs, name))
    run = instance.create_run_for_job(
        job.get_definition(),
        job_code_origin=job.get_python_origin(),
        status=dg.DagsterRunStatus.STARTING,
        tags={"flow": flow} if flow else {},
    )
    instance.run_launcher.launch_run(LaunchRunContext(run, workspace=None))
    return run.run_id


def _state(instance: dg.DagsterInstance, run_id: str) -> str:
    run = instance.get_run_by_id(run_id)
    assert run is not None
    return run.status.value


def _end(instance: dg.DagsterInstance, run_id: str) -> str:
    ends = {"SUCCESS", "FAILURE", "CANCELED"}
    _until(lambda: _state(instance, run_id) in ends)
    return _state(instance, run_id)


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
