"""The service: takes work at a socket, lets flows take turns, and gives each a process.

It runs no tick itself, so that it answers whatever becomes of one.
"""

from __future__ import annotations

import hmac
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hydro_core.machine.processes import this_process
from hydro_core.settings import MEBIBYTE, size_in_bytes

from ..project.settings import ProjectSettings
from .jobs import Fit, Turns, WorkCounts, WorkerJob, code_number
from .spawned import SECONDS_TO_END, TickProcess
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
        self._turns = Turns()
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
        """Takes no more work, and interrupts what goes on."""
        self.drain()
        with self._changed:
            self._stopping = True
            for process in self._busy:
                if process.job is not None:
                    process.cancel(process.job)

    def status(self) -> dict[str, Any]:
        """How it is: what goes on, what waits, and its processes."""
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
    """Whether a path of who asks is ours, by whatever links it leads there."""
    return here is not None and Path(there).resolve() == here.resolve()
