"""The resident workers of an instance: a few processes, each of which executes one run at a time.

A run goes to a worker that is idle, if possible to the one that executed its flow last; a further
worker is started where all are busy, up to the instance's limit of concurrent runs. Dagster's queue
holds the runs beyond that limit, so no run waits in a worker.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydro_core.processes import has_ended, number_of

from .calls import call, workers_of

SECONDS_TO_START = 60
SECONDS_TO_END = 15
"""So long a worker may take to end its run when it is told to; then it is killed."""

_SECONDS_FOR_A_PLACE = 40

_started: set[int] = set()
"""The workers that this process started, until their ends were noticed."""


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker as it answers: its process, the run that it executes ("": none), its last flow."""

    number: int
    process: str
    run: str
    flow: str


class WorkerPool:
    """The workers of the instance in `home`, at most `size` at a time."""

    def __init__(self, home: Path, size: int) -> None:
        self._home, self._size = home, size

    def hand_over(self, run: str, flow: str, is_finished: Callable[[str], bool]) -> Worker:
        """Gives the run to a worker and says to which.

        A worker may still be busy with what comes after the end of its run; one that stays so long
        after it (`is_finished`) is stuck in it, and is killed.

        Raises:
            RuntimeError: no worker takes it; their logs say why.
        """
        end = time.monotonic() + _SECONDS_FOR_A_PLACE
        while True:
            workers = list(self.workers())
            idle = [worker for worker in workers if not worker.run]
            for worker in sorted(idle, key=lambda w: w.flow != flow):
                if self._takes(worker.number, run, flow):
                    return worker
            if len(workers) < self._size:
                self.start(self._free_number(workers))
                end = time.monotonic() + _SECONDS_FOR_A_PLACE
            elif time.monotonic() > end:
                stuck = [worker for worker in workers if is_finished(worker.run)]
                if not stuck:
                    raise RuntimeError(
                        f"all {self._size} resident workers are busy with other runs"
                    )
                for worker in stuck:
                    _kill(worker)
            time.sleep(0.2)

    def workers(self) -> Iterator[Worker]:
        """The workers that are there."""
        for socket in sorted(workers_of(self._home).glob("*.sock")):
            answer = self._ask(int(socket.stem), do="health")
            if answer.get("ready"):
                yield Worker(int(socket.stem), answer["process"], answer["run"], answer["flow"])

    def cancel(self, run: str) -> bool:
        """Interrupts a run; False if no worker executes it."""
        return any(
            self._ask(worker.number, do="cancel", run=run).get("done", False)
            for worker in self.workers()
            if worker.run == run
        )

    def start(self, number: int) -> None:
        """Starts a worker unless it is there, and waits until it answers.

        Raises:
            RuntimeError: it does not start; its log says why.
        """
        if self._ask(number, do="health"):
            return
        directory = workers_of(self._home)
        directory.mkdir(parents=True, exist_ok=True)
        log = directory / f"{number}.log"
        _reap()
        _started.add(_spawn(self._home, number, log))
        end = time.monotonic() + SECONDS_TO_START
        # A process that finds another worker at work ends at once, and all is well.
        while not self._ask(number, do="health"):
            if time.monotonic() > end:
                raise RuntimeError(f"the resident worker does not start; see {log}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Ends all workers, and with them the runs that they execute; fine if there are none."""
        workers = list(self.workers())
        for worker in workers:
            self._ask(worker.number, do="stop")
        end = time.monotonic() + SECONDS_TO_END
        while any(not has_ended(worker.process) for worker in workers):
            if time.monotonic() > end:
                for worker in workers:
                    _kill(worker)
            time.sleep(0.1)

    def _takes(self, number: int, run: str, flow: str) -> bool:
        return bool(self._ask(number, do="run", run=run, flow=flow).get("done"))

    def _ask(self, number: int, **message: Any) -> dict[str, Any]:
        try:
            return call(self._home, number, **message)
        except (OSError, ValueError):
            return {}

    def _free_number(self, workers: list[Worker]) -> int:
        taken = {worker.number for worker in workers}
        return next(number for number in range(self._size) if number not in taken)


def _kill(worker: Worker) -> None:
    number = number_of(worker.process)
    if number is not None and not has_ended(worker.process):
        os.kill(number, signal.SIGKILL)


def _reap() -> None:
    """Lets the system forget workers of ours that have ended."""
    for process in tuple(_started):
        if os.waitpid(process, os.WNOHANG)[0] == process:
            _started.discard(process)


def _spawn(home: Path, number: int, log: Path) -> int:
    """Starts a process that goes on when this one ends."""
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    words = [sys.executable, "-m", "hydrotick.resident.worker", str(home), str(number)]
    return os.posix_spawn(sys.executable, words, os.environ, file_actions=files, setsid=True)
