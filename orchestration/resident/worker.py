"""The resident worker: executes runs one after the other, with everything warm.

It listens from the start and loads Dagster then. A run is executed in the main thread, where it can
be interrupted. When the project's files change, the worker becomes a new process, so that a run
never executes old code; when nothing is to be done for long, it ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import queue
import signal
import socketserver
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestration.resident.calls import listen

if TYPE_CHECKING:
    import dagster as dg

IDLE_SECONDS = 900
"""A worker that waits holds a gigabyte; a quarter of an hour is longer than a look at the UI."""

_PACKAGES = ("hydro_core", "assets", "orchestration")


class Worker:
    """The runs that wait, and the one that is executed."""

    def __init__(self, home: Path, waiting: Iterable[str]) -> None:
        self.home = home
        self._queue: queue.Queue[str] = queue.Queue()
        self._waiting: set[str] = set()
        self._current: str | None = None
        self._stopped = False
        self._code = code_state()
        for run_id in waiting:
            self._add(run_id)

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """The answer to one message; called from other threads."""
        run_id = message.get("run", "")
        known = run_id in self._waiting or run_id == self._current
        match message.get("do"):
            case "run" if not known:
                self._add(run_id)
            case "cancel" if known:
                self._cancel(run_id)
            case "stop":
                self._stopped = True
                self._interrupt()
        state = f"worker {os.getpid()}: executes {self._current}, {len(self._waiting)} wait"
        return {"ready": True, "known": known, "state": state}

    def work(self, instance: dg.DagsterInstance) -> list[str]:
        """Executes runs until it is to stop; gives those that a new process is to go on with."""
        idle_since = time.monotonic()
        while not self._stopped and time.monotonic() - idle_since < IDLE_SECONDS:
            try:
                run_id = self._queue.get(timeout=0.5)
            except queue.Empty:
                continue
            except KeyboardInterrupt:
                # It was meant for a run that had ended by then.
                continue
            if code_state() != self._code:
                return [run_id, *self._queue.queue]
            self._execute(instance, run_id)
            idle_since = time.monotonic()
        return []

    def _add(self, run_id: str) -> None:
        self._waiting.add(run_id)
        self._queue.put(run_id)

    def _cancel(self, run_id: str) -> None:
        # One that waits is seen to be canceled when its turn comes.
        if run_id == self._current:
            self._interrupt()

    def _interrupt(self) -> None:
        if self._current is not None:
            os.kill(os.getpid(), signal.SIGINT)

    def _execute(self, instance: dg.DagsterInstance, run_id: str) -> None:
        import dagster as dg

        run = instance.get_run_by_id(run_id)
        self._current = run_id
        self._waiting.discard(run_id)
        try:
            if run is None or run.is_finished:
                return
            if run.status is dg.DagsterRunStatus.CANCELING:
                instance.report_run_canceled(run)
                return
            _execute(instance, run)
        except KeyboardInterrupt:
            traceback.print_exc()
        except Exception as error:  # noqa: BLE001 - one run's ruin must not be that of the next
            traceback.print_exc()
            if run is not None:
                instance.report_run_failed(run, f"The run could not be executed: {error}")
        finally:
            self._current = None


def _execute(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    from dagster._core.execution.api import execute_run_iterator
    from dagster._utils.hosted_user_process import recon_job_from_origin

    origin = run.job_code_origin
    if origin is None:
        raise ValueError("the run does not say where its code is")
    for _ in execute_run_iterator(recon_job_from_origin(origin), run, instance):
        pass


def code_state() -> frozenset[tuple[str, int, int]]:
    """The project's files with their times and sizes."""
    roots = {
        Path(sys.modules[name].__file__ or "").parent for name in _PACKAGES if name in sys.modules
    }
    return frozenset(
        (str(file), stat.st_mtime_ns, stat.st_size)
        for root in roots
        for file in root.rglob("*")
        if file.suffix != ".pyc" and file.is_file()
        for stat in (file.stat(),)
    )


def main(home: Path, waiting: list[str], lock: int | None) -> None:
    """Works for the instance of `home`, unless another worker does."""
    if lock is None:
        lock = os.open(home / "worker.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
    import hydro_core  # noqa: F401 - their files are watched from here on

    worker = Worker(home, waiting)
    with listen(home) as listening:
        _serve(worker, listening)
        import dagster as dg
        from dagster._utils.interrupts import capture_interrupts

        with dg.DagsterInstance.get() as instance, capture_interrupts():
            signal.signal(signal.SIGTERM, lambda *_: worker.answer({"do": "stop"}))
            left = worker.work(instance)
    if left:
        os.set_inheritable(lock, True)
        module = ["-m", "orchestration.resident.worker"]
        words = [sys.executable, *module, str(home), f"--lock={lock}", *left]
        os.execv(sys.executable, words)  # noqa: S606 - there is no shell in it
    os._exit(0)


def _serve(worker: Worker, listening: Any) -> None:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            answer = worker.answer(json.loads(self.rfile.readline()))
            self.wfile.write((json.dumps(answer) + "\n").encode())

    server = socketserver.ThreadingTCPServer(("", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listening
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()


def _arguments(words: list[str]) -> tuple[Path, list[str], int | None]:
    locks = [word.partition("=")[2] for word in words if word.startswith("--lock=")]
    home, *waiting = [word for word in words if not word.startswith("--lock=")]
    return Path(home), waiting, int(locks[0]) if locks else None


if __name__ == "__main__":
    main(*_arguments(sys.argv[1:]))
