"""The service: takes work at a socket, lets flows take turns, and gives each a process.

It runs no tick itself, so that it answers whatever becomes of one. Of the flows that wait, the one
goes first whose last turn was the longest ago, so that a flow with a year of ticks keeps no other
waiting for longer than one piece of work. One piece of work of a flow goes on at a time.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from hydro_core.lang.source import PROGRAMS
from hydro_core.machine.environment import MASTER, MEMORY
from hydro_core.machine.locks import this_process
from hydro_core.project.discover import ASSETS, PROJECT, SETTINGS
from hydro_core.settings import MEBIBYTE, size_in_bytes

from ..project.settings import HOME, ProjectSettings
from ..project.settings_file import NONE, WORKER
from .wire import PROTOCOL, Channel, Message

IDLE_SECONDS = 900
"""A process that waits holds a gigabyte; a quarter of an hour is longer than a look at the UI, and
than the pause between most ticks."""

_SECONDS_TO_LOOK = 1.0
_SECONDS_TO_ASK = 10
_MUCH = 0.75
"""A process that holds so much of its memory when its work has ended makes room for a new one."""


class RefusedError(Exception):
    """Work that is not taken: why."""


class WorkerService:
    """Runs the ticks of one project for whoever asks, at most so many flows at a time."""

    def __init__(self, project: ProjectSettings, say: Callable[[str], None]) -> None:
        self._project, self._say = project, say
        self._changed = threading.Condition()
        self._turns = WorkQueue()
        self._processes: list[TickProcess] = []
        self._counts = WorkCounts()
        self._draining = self._stopping = False
        memory = project.worker.memory
        self._memory = None if memory is None else size_in_bytes(memory)

    def serve(self, listening: socket.socket, token: str | None) -> None:
        """Takes work at a socket, in threads of their own, until the process ends."""

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                words = Channel(connection), token
                threading.Thread(target=self._answer, args=words, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()

    def work(self) -> None:
        """Gives work to processes, until it is told to drain or to stop, and all has ended."""
        looked = 0.0
        with self._changed:
            while not (self._draining and not self._busy and not len(self._turns)):
                self._changed.wait_for(self._begin_next, timeout=_SECONDS_TO_LOOK)
                if time.monotonic() - looked >= _SECONDS_TO_LOOK:
                    looked = time.monotonic()
                    self._look_after_processes()
        self._end_processes()

    def drain(self) -> None:
        """Takes no more work, ends with what goes on, and refuses what waits."""
        with self._changed:
            self._draining = True
            for job in self._turns:
                if self._turns.drop(job):
                    with suppress(OSError):
                        job.tell({"kind": "gone", "why": "it ends"})
                    job.ended.set()
            self._changed.notify_all()

    def stop(self) -> None:
        self.drain()
        with self._changed:
            self._stopping = True
            for process in self._busy:
                if process.job is not None:
                    process.cancel(process.job)

    def status(self) -> dict[str, Any]:
        with self._changed:
            waiting = [job.as_json() for job in self._turns]
            processes = [(one, one.job) for one in self._processes]
            takes = not self._draining
        return {
            "takes": takes,
            "process": this_process(),
            "project": str(self._project.root),
            "flows": self._project.worker.flows,
            "counts": self._counts.as_json(),
            "running": [{**job.as_json(), "process": one.number} for one, job in processes if job],
            "waiting": waiting,
            "processes": [
                {
                    "process": one.number,
                    "flow": one.flow,
                    "busy": job is not None,
                    "memory_mb": one.memory() // MEBIBYTE,
                }
                for one, job in processes
            ],
        }

    @property
    def _busy(self) -> list[TickProcess]:
        return [process for process in self._processes if process.job is not None]

    def _answer(self, channel: Channel, token: str | None) -> None:
        """One request, from its first line to its end."""
        channel.wait_at_most(_SECONDS_TO_ASK)
        try:
            message = next(channel.messages(), None)
            if message is not None:
                channel.wait_at_most(None)
                self._do(message, channel, token)
        except RefusedError as refused:
            with suppress(OSError):
                channel.send({"kind": "refused", "why": str(refused)})
        except (OSError, ValueError, KeyError):
            # It is no request, or whoever asked is gone.
            pass
        finally:
            channel.close()

    def _do(self, message: dict[str, Any], channel: Channel, token: str | None) -> None:
        if token is not None and not hmac.compare_digest(
            str(message.get("token")).encode(), token.encode()
        ):
            raise RefusedError("the token is not the worker's")
        if message.get("protocol") != PROTOCOL:
            raise RefusedError("it is of another version of hydrotick")
        match message.pop("do"):
            case "status":
                channel.send(self.status())
            case "drain":
                self.drain()
                channel.send(self.status())
            case "ticks":
                self._run_ticks(message, channel)
            case "run":
                fit = self._fit(code_number(self._project.root))
                run = WorkerJob(message["flow"], fit, {**message, "do": "run"})
                run.tell = partial(self._counts.record, run)
                self._add(run)
                channel.send({"kind": "taken"})
            case "cancel":
                channel.send({"done": self._cancel_run(message["run"])})

    def _run_ticks(self, message: Message, channel: Channel) -> None:
        """Ticks for somebody who waits for them: the end of the connection cancels them."""
        if not _is_same(message["root"], self._project.root):
            raise RefusedError(f"it works for the project {self._project.root}")
        asked = message["settings"]
        if not _is_same(asked["home"], self._project.home):
            raise RefusedError(f"it works on the data in {self._project.home}")
        fit = replace(
            self._fit(message["code"]),
            master=asked["spark_master"] or "",
            memory=asked["spark_memory"] or "",
        )
        job = WorkerJob(message["flow"], fit, {**message, "do": "ticks", "token": None})

        def tell(message: Message) -> None:
            self._counts.record(job, message)
            channel.send(message)

        job.tell = tell
        # What happens is told behind the first answer.
        with self._changed:
            self._add(job)
            try:
                channel.send({"kind": "taken"})
            except OSError:
                # Who asked has waited for too long, and runs the ticks itself.
                self._turns.drop(job)
                raise

        def cancelled() -> None:
            for _ in channel.messages():
                pass
            self._cancel(job)

        threading.Thread(target=cancelled, daemon=True).start()
        job.ended.wait()

    def _fit(self, code: str) -> Fit:
        project = self._project
        master, memory = project.spark_master or "", project.spark_memory or ""
        return Fit(str(project.root), code, master, memory)

    def _add(self, job: WorkerJob) -> None:
        with self._changed:
            if self._draining:
                raise RefusedError("it ends")
            self._turns.add(job)
            self._changed.notify_all()

    def _cancel(self, job: WorkerJob) -> None:
        with self._changed:
            if self._turns.drop(job):
                job.ended.set()
                return
            for process in self._processes:
                process.cancel(job)

    def _cancel_run(self, run: str) -> bool:
        """Interrupts a run of Dagster; False if it is not here."""
        with self._changed:
            jobs = [process.job for process in self._busy if process.job is not None]
            found = [job for job in (*jobs, *self._turns) if job.run == run]
        for job in found:
            self._cancel(job)
        return bool(found)

    def _begin_next(self) -> bool:
        """Gives one piece of work to a process; whether there is anything to look at at once."""
        if self._stopping:
            return not self._busy
        busy = {process.flow for process in self._busy}
        for job in self._turns.next(busy):
            process = self._place_for(job)
            if process is not None:
                self._turns.take(job)
                process.begin(job)
                return True
        return self._draining and not self._busy and not len(self._turns)

    def _place_for(self, job: WorkerJob) -> TickProcess | None:
        """A process that is free for the work; None: one is to become so."""
        self._processes = [process for process in self._processes if not process.has_ended]
        idle = [p for p in self._processes if p.job is None and not p.why]
        fitting = [process for process in idle if process.fit == job.fit]
        if fitting:
            return next((p for p in fitting if p.flow == job.flow), fitting[0])
        if len(self._processes) < self._project.worker.flows:
            made = TickProcess(job.fit, self._project.home, self._notify)
            self._processes.append(made)
            return made
        if idle:
            self._end(min(idle, key=lambda process: process.idle_since), "its code is another")
        return None

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _look_after_processes(self) -> None:
        for process in list(self._processes):
            if process.has_ended:
                self._processes.remove(process)
                continue
            memory = 0 if self._memory is None else process.memory()
            if self._memory is not None and memory > self._memory and not process.why:
                held = f"{memory // MEBIBYTE:,} MiB of {self._memory // MEBIBYTE:,}"
                why = f"it held {held} (`memory` of `[worker]`)"
                self._say(f"process {process.number} is killed: {why}")
                process.kill(why)
            elif process.job is None and not process.why:
                if self._memory is not None and memory > _MUCH * self._memory:
                    self._end(process, "it held much memory when its work had ended")
                elif time.monotonic() - process.idle_since > IDLE_SECONDS:
                    self._end(process, "it had nothing to do")

    def _end(self, process: TickProcess, why: str) -> None:
        process.why = why
        self._say(f"process {process.number} ends: {why}")
        process.end()

    def _end_processes(self) -> None:
        with self._changed:
            for process in self._processes:
                process.end()
        end = time.monotonic() + SECONDS_TO_END
        for process in self._processes:
            while not process.has_ended:
                if time.monotonic() > end:
                    process.kill("it did not end")
                time.sleep(0.05)


def _is_same(there: str, here: Path | None) -> bool:
    """True if a path of the client is ours, links followed."""
    return here is not None and Path(there).resolve() == here.resolve()


_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Fit:
    """Requirements of work: the code a process has loaded, and the settings of its Spark."""

    root: str
    code: str
    master: str
    memory: str


@dataclass(slots=True, eq=False)
class WorkerJob:
    """A piece of work for one flow: `request` says what, and `tell` is called with what happens."""

    flow: str
    fit: Fit
    request: Message
    tell: Callable[[Message], None] = lambda _: None
    ended: threading.Event = field(default_factory=threading.Event)
    number: int = field(default_factory=lambda: next(_numbers))
    asked: float = field(default_factory=time.monotonic)
    began: float | None = None

    @property
    def run(self) -> str:
        """The run of Dagster that it is, or that it is for."""
        return str(self.request.get("run", ""))

    @property
    def seconds(self) -> float:
        """How long it goes on, or waits."""
        return time.monotonic() - (self.asked if self.began is None else self.began)

    def as_json(self) -> dict[str, Any]:
        return {"flow": self.flow, "run": self.run, "seconds": round(self.seconds, 1)}


class WorkQueue:
    """The work that waits, and whose turn it is."""

    def __init__(self) -> None:
        self._waiting: list[WorkerJob] = []
        self._last: dict[str, int] = {}
        self._turn = count(1)

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[WorkerJob]:
        return iter(list(self._waiting))

    def add(self, job: WorkerJob) -> None:
        self._waiting.append(job)

    def next(self, busy: set[str]) -> list[WorkerJob]:
        """Jobs that may begin, the first one first; none of flows that are busy."""
        first = dict[str, WorkerJob]()
        for job in self._waiting:
            if job.flow not in busy:
                first.setdefault(job.flow, job)
        return sorted(first.values(), key=lambda job: (self._last.get(job.flow, 0), job.number))

    def take(self, job: WorkerJob) -> None:
        self._waiting.remove(job)
        self._last[job.flow] = next(self._turn)

    def drop(self, job: WorkerJob) -> bool:
        """The work is not wanted any more; False if it does not wait."""
        if job not in self._waiting:
            return False
        self._waiting.remove(job)
        return True


_ENDS = ("failed", "gone", "cancelled")
"""Messages about work that does not end as it should; other work was done."""


class WorkCounts:
    """Counts by flow; told from the threads of all processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: Counter[tuple[str, str]] = Counter()
        self._checks: Counter[tuple[str, str, str]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._wrong: dict[int, str] = {}

    def record(self, job: WorkerJob, message: Message) -> None:
        kind = message["kind"]
        with self._lock:
            if kind in _ENDS:
                self._wrong[job.number] = kind
            elif kind == "report":
                self._report(job.flow, message["report"])
            if kind in ("end", "gone"):
                self._ends[job.flow, self._wrong.pop(job.number, "done")] += 1
                # In milliseconds: sums of them are exact.
                self._seconds[job.flow] += round(1000 * job.seconds)

    def as_json(self) -> dict[str, Any]:
        with self._lock:
            return {
                "ends": [[*of, number] for of, number in sorted(self._ends.items())],
                "checks": [[*of, number] for of, number in sorted(self._checks.items())],
                "seconds": [[flow, ms / 1000] for flow, ms in sorted(self._seconds.items())],
            }

    def _report(self, flow: str, report: Message) -> None:
        for asset, verdict in report["verdicts"]:
            if not verdict["passed"]:
                self._checks[flow, f"{asset}:{verdict['check']}", verdict["severity"]] += 1


_PACKAGES = ("hydro_core", "hydrotick")
_KINDS = frozenset({".py", *PROGRAMS, ".yaml", ".yml", ".toml", ".json", ".sql"})
_MOST_BYTES = 4 * 1024 * 1024
"""A larger file holds data, of which its size and time tell."""


def code_number(root: Path | None) -> str:
    """The number of the code of a project in the folder `root`, and of hydrotick."""
    digest = hashlib.sha256()
    for name, file in sorted(_files(root)):
        stat = file.stat()
        large = stat.st_size > _MOST_BYTES
        content = str((stat.st_size, stat.st_mtime_ns)).encode() if large else file.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _files(root: Path | None) -> Iterator[tuple[str, Path]]:
    """The files by names that are the same on every machine."""
    for package in _PACKAGES:
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for file in Path(folder).rglob("*.py"):
                yield f"{package}/{file.relative_to(folder)}", file
    if root is not None:
        declared = [f for f in (root / ASSETS).rglob("*") if f.suffix in _KINDS and f.is_file()]
        settings = [root / SETTINGS] if (root / SETTINGS).is_file() else []
        for file in (*declared, *settings):
            yield str(file.relative_to(root)), file


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
        self._channel.end_side()

    def kill(self, why: str) -> None:
        self.why = why
        with suppress(ProcessLookupError):
            self._process.kill()

    def memory(self) -> int:
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
    """Bytes that a process holds of its own: pages of mapped files go when memory is short."""
    try:
        resident, mapped = Path(f"/proc/{number}/statm").read_text().split()[1:3]
        return (int(resident) - int(mapped)) * _PAGE
    except (OSError, ValueError):
        return 0
