"""A process of a worker, as the worker has it: work goes in, what happens comes out."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hydro_core.machine.environment import MASTER, MEMORY
from hydro_core.project.discover import PROJECT

from ..project.known_settings import NONE, WORKER
from ..project.settings import HOME
from .jobs import Fit, WorkerJob
from .wire import Channel, Message

SECONDS_TO_END = 20
"""So long a process may take to end its work when it is told to; then it is killed."""

_PAGE = os.sysconf("SC_PAGE_SIZE")


class TickProcess:
    """A process that has loaded one project's code, does one piece of work at a time, and keeps
    what is warm from one to the next.
    """

    def __init__(self, fit: Fit, home: Path, changed: Callable[[], None]) -> None:
        self.fit, self._changed = fit, changed
        self.job: WorkerJob | None = None
        self.flow = ""
        """The flow that it served last."""
        self.why = ""
        """Why it was ended, where that was done by the worker."""
        self.idle_since = time.monotonic()
        ours, its = socket.socketpair()
        self._channel = Channel(ours)
        given = {PROJECT: fit.root, HOME: str(home), MASTER: fit.master, MEMORY: fit.memory}
        given = {name: value for name, value in given.items() if value}
        # Its work is done in it, and handed to nobody; the current folder hides no package.
        words = [sys.executable, "-m", "hydrotick.worker.process", str(its.fileno())]
        self._process = subprocess.Popen(
            words,
            env={**os.environ, WORKER: NONE, "PYTHONSAFEPATH": "1", **given},
            stdin=subprocess.DEVNULL,
            pass_fds=[its.fileno()],
            # A signal of the terminal is for the worker, which tells its processes.
            start_new_session=True,
        )
        its.close()
        threading.Thread(target=self._follow, daemon=True).start()

    @property
    def number(self) -> int:
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def begin(self, job: WorkerJob) -> None:
        """Gives it work, while it has none."""
        self.job, self.flow, job.began = job, job.flow, time.monotonic()
        # What it cannot be told any more is noticed by who reads what it says.
        with suppress(OSError):
            self._channel.send({**job.request, "job": job.number, "code": self.fit.code})

    def cancel(self, job: WorkerJob) -> None:
        """Interrupts its work, if that is this one; it is killed if it does not heed that."""
        if self.job is not job:
            return
        with suppress(OSError):
            self._channel.send({"do": "cancel", "job": job.number})
        # Its end is what the work is waited for with, so nobody waits for this.
        threading.Thread(target=self._kill_if, args=(job,), daemon=True).start()

    def end(self) -> None:
        """Lets it end: what it does is interrupted."""
        self._channel.end_side()

    def kill(self, why: str) -> None:
        """Ends it at once."""
        self.why = why
        with suppress(ProcessLookupError):
            self._process.kill()

    def memory(self) -> int:
        """The bytes that it has in memory, with the processes that it has started."""
        return sum(map(_resident, _with_children(self.number)))

    def _kill_if(self, job: WorkerJob) -> None:
        if not job.ended.wait(SECONDS_TO_END):
            self.kill("it did not end its work when it was told to")

    def _follow(self) -> None:
        """Tells what it says, until it is gone."""
        for message in self._channel.messages():
            job = self.job
            if job is None:
                continue
            self._tell(job, message)
            if message["kind"] == "end":
                self.job, self.idle_since = None, time.monotonic()
                job.ended.set()
                self._changed()
        self._channel.close()
        code = self._process.wait()
        job, self.job = self.job, None
        if job is not None:
            how = f"it was ended by signal {-code}" if code < 0 else f"it ended with {code}"
            self._tell(job, {"kind": "gone", "why": self.why or how})
            job.ended.set()
        self._changed()

    def _tell(self, job: WorkerJob, message: Message) -> None:
        try:
            job.tell(message)
        except OSError:
            # Who asked is gone.
            self.cancel(job)


def _with_children(number: int) -> list[int]:
    """The process and all below it, as Linux tells them."""
    found, waiting = [], [number]
    while waiting:
        one = waiting.pop()
        found.append(one)
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with suppress(OSError):
                waiting += map(int, task.read_text().split())
    return found


def _resident(number: int) -> int:
    """What a process holds of its own: pages of mapped files go when memory is short."""
    try:
        resident, mapped = Path(f"/proc/{number}/statm").read_text().split()[1:3]
        return (int(resident) - int(mapped)) * _PAGE
    except (OSError, ValueError):
        return 0
