"""A resident worker: executes one run at a time, with everything warm from the run before.

It listens from the start and loads Dagster then. A run is executed in the main thread, where it can
be interrupted. When the project's files have changed, the worker becomes a new process before it
executes a run, so none executes old code. When nothing is to be done for long, or the
`hydrotick dev` that it was started under has ended, it ends.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socketserver
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydro_core.processes import FileLock, has_ended, this_process
from hydro_core.project.discover import ASSETS, SETTINGS, project_root

from ..instance import dev_lock
from ..instance.run_tags import PROCESS_TAG
from .calls import listen, workers_of
from .pool import SECONDS_TO_END

if TYPE_CHECKING:
    import dagster as dg

IDLE_SECONDS = 900
"""A worker that waits holds a gigabyte; a quarter of an hour is longer than a look at the UI."""

_PACKAGES = ("hydro_core", "hydrotick")
_SECONDS_TO_LOOK = 1.0


class WorkerLoop:
    """The run that is executed, and whether there is to be another."""

    def __init__(self) -> None:
        self._given: queue.Queue[tuple[str, str]] = queue.Queue()
        self._lock = threading.Lock()
        self._current = ""
        self._flow = ""
        self._stopped = False
        self._code = code_state()

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer to one message; called from other threads."""
        done = False
        run = message.get("run", "")
        match message.get("do"):
            case "run":
                done = self.take(run, message["flow"])
            case "cancel" if run == self._current:
                done = True
                self._interrupt()
            case "stop":
                self.stop()
        return {
            "ready": True,
            "done": done,
            "process": this_process(),
            "run": self._current,
            "flow": self._flow,
        }

    def take(self, run_id: str, flow: str) -> bool:
        """Takes a run to execute, if it executes none."""
        with self._lock:
            if self._current or self._stopped:
                return False
            self._current = run_id
        self._given.put((run_id, flow))
        return True

    def stop(self) -> None:
        """Ends the run that is executed, and the worker after it."""
        self._stopped = True
        self._interrupt()

    def work(self, instance: dg.DagsterInstance) -> tuple[str, str] | None:
        """Executes runs until it is to end; gives one that a new process is to execute."""
        idle_since = time.monotonic()
        while not self._stopped and time.monotonic() - idle_since < IDLE_SECONDS:
            try:
                run_id, flow = self._given.get(timeout=0.5)
            except queue.Empty:
                continue
            except KeyboardInterrupt:
                # It was meant for a run that had ended by then.
                continue
            if code_state() != self._code:
                return run_id, flow
            try:
                execute(instance, run_id)
            finally:
                self._current, self._flow = "", flow
            idle_since = time.monotonic()
        return None

    def _interrupt(self) -> None:
        if self._current:
            os.kill(os.getpid(), signal.SIGINT)


def execute(instance: dg.DagsterInstance, run_id: str) -> None:
    """Executes a run to its end, whatever that is: afterwards Dagster has it as finished."""
    import dagster as dg
    from dagster._utils.interrupts import pop_captured_interrupt

    run = instance.get_run_by_id(run_id)
    if run is None or run.is_finished:
        return
    # One that came too late for the run before is not meant for this one.
    pop_captured_interrupt()
    problem = "It ended without saying how."
    try:
        if run.status is not dg.DagsterRunStatus.CANCELING:
            instance.add_run_tags(run_id, {PROCESS_TAG: this_process()})
            _execute(instance, run_id)
    except KeyboardInterrupt:
        problem = "It was interrupted before it began."
    except Exception as error:  # noqa: BLE001 - one run's ruin must not be that of the next
        traceback.print_exc()
        problem = f"The run could not be executed: {error}"
    run = instance.get_run_by_id(run_id)
    if run is None or run.is_finished:
        return
    if run.status is dg.DagsterRunStatus.CANCELING:
        instance.report_run_canceled(run)
    else:
        instance.report_run_failed(run, problem)


def _execute(instance: dg.DagsterInstance, run_id: str) -> None:
    from dagster._core.execution.api import execute_run_iterator
    from dagster._utils.hosted_user_process import recon_job_from_origin

    run = instance.get_run_by_id(run_id)
    if run is None or run.job_code_origin is None:
        raise ValueError("the run does not say where its code is")
    for _ in execute_run_iterator(recon_job_from_origin(run.job_code_origin), run, instance):
        pass


def code_state() -> frozenset[tuple[str, int, int]]:
    """The files of hydrotick and of the project with their times and sizes, whether they are
    loaded by now or not.
    """
    specs = [find_spec(name) for name in _PACKAGES]
    roots = {Path(root) for spec in specs if spec for root in spec.submodule_search_locations or ()}
    root = project_root(os.environ)
    if root is not None:
        roots |= {root / ASSETS, root / SETTINGS}
    return frozenset(
        (str(file), stat.st_mtime_ns, stat.st_size)
        for root in roots
        for file in ([root] if root.is_file() else root.rglob("*"))
        if file.suffix != ".pyc" and file.is_file()
        for stat in (file.stat(),)
    )


def main(home: Path, number: int, inherited: int | None, given: tuple[str, str] | None) -> None:
    """Works for the instance of `home`, unless another worker of this number does.

    Args:
        home: the instance's directory.
        number: which of its workers this is.
        inherited: the open file of the worker's lock, where another process gave it on.
        given: a run and its flow to begin with.
    """
    lock = FileLock(workers_of(home) / f"{number}.lock")
    if inherited is None and not lock.take():
        return
    worker = WorkerLoop()
    if given:
        worker.take(*given)
    with listen(home, number) as listening:
        _serve(worker, listening)
        _follow(worker, dev_lock(home).holder().get("process"))
        with _instance(worker) as instance:
            left = worker.work(instance)
    if left:
        file = lock.file if inherited is None else inherited
        assert file is not None
        os.set_inheritable(file, True)
        words = ["-m", "hydrotick.resident.worker", str(home), str(number), str(file), *left]
        os.execv(sys.executable, [sys.executable, *words])  # noqa: S606 - there is no shell in it
    os._exit(0)


@contextmanager
def _instance(worker: WorkerLoop) -> Iterator[dg.DagsterInstance]:
    import dagster as dg
    from dagster._utils.interrupts import capture_interrupts

    with dg.DagsterInstance.get() as instance, capture_interrupts():
        signal.signal(signal.SIGTERM, lambda *_: worker.stop())
        yield instance


def _serve(worker: WorkerLoop, listening: Any) -> None:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            answer = worker.answer(json.loads(self.rfile.readline()))
            self.wfile.write((json.dumps(answer) + "\n").encode())

    server = socketserver.ThreadingTCPServer(("", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()


def _follow(worker: WorkerLoop, leader: str | None) -> None:
    """Ends the worker when the process that it works for has ended, even if that was killed."""

    def follow(leader: str) -> None:
        while not has_ended(leader):
            time.sleep(_SECONDS_TO_LOOK)
        worker.stop()
        time.sleep(SECONDS_TO_END)
        os._exit(1)

    if leader:
        threading.Thread(target=follow, args=(leader,), daemon=True).start()


def _arguments(words: list[str]) -> tuple[Path, int, int | None, tuple[str, str] | None]:
    home, number, *rest = words
    if not rest:
        return Path(home), int(number), None, None
    file, run_id, flow = rest
    return Path(home), int(number), int(file), (run_id, flow)


if __name__ == "__main__":
    main(*_arguments(sys.argv[1:]))
