"""A process of a worker: does one piece of work at a time, all warm from the one before.

Work is done in the main thread, where it can be interrupted; another thread reads what the worker
says. When the worker is gone, however it ended, what is done here is interrupted, and it ends.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from hydro_core.errors import HydroError
from hydro_core.machine.locks import this_process

from ..project.logs import log_bug, open_logs
from ..project.project import Project, current
from .client import TickWork, failure
from .service import SECONDS_TO_END, code_number
from .wire import Channel

NAME = "hydrotick worker"
"""Beginning of the lines that a worker and its processes log."""


class ProcessLoop:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._given: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._wanted: int | None = None
        """The number of the work that goes on or is to begin; None: none is wanted."""

    def read(self) -> None:
        for message in self._channel.messages():
            if message["do"] != "cancel":
                self._wanted = message["job"]
                self._given.put(message)
            elif message["job"] == self._wanted:
                self._wanted = None
                os.kill(os.getpid(), signal.SIGINT)
        self._wanted = None
        self._given.put(None)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(SECONDS_TO_END)
        os._exit(1)

    def work(self, project: Project | HydroError) -> None:
        """Does what is given, until there is no more."""
        work = TickWork(project, self._tell)
        code = code_number(project.settings.root) if isinstance(project, Project) else ""
        while True:
            message = self._next()
            if message is None:
                return
            with suppress(KeyboardInterrupt):
                self._do(work, message, code)
            self._tell("end")

    def _next(self) -> dict[str, Any] | None:
        while True:
            # A signal that was meant for work which had ended by then.
            with suppress(KeyboardInterrupt):
                return self._given.get()

    def _do(self, work: TickWork, message: dict[str, Any], code: str) -> None:
        self._tell("started", process=this_process())
        try:
            if message["do"] == "run":
                # Imported late: who runs ticks alone has no use for Dagster.
                from .launcher import execute_run

                execute_run(message["home"], message["run"], lambda: self._wanted is not None)
                return
            # Within it the signal to interrupt raises `KeyboardInterrupt`.
            before = signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                if self._wanted == message["job"]:
                    work.do(message, code)
            finally:
                signal.signal(signal.SIGINT, before)
        except KeyboardInterrupt:
            self._tell("cancelled")
        except BaseException as error:  # noqa: BLE001 - whatever it is, who asked is to know it
            if not isinstance(error, HydroError):
                log_bug("a piece of work ended with an error that is nobody's")
            self._tell("failed", **failure(error))

    def _tell(self, kind: str, **message: Any) -> None:
        # Where the worker is gone, the thread that reads notices it.
        with suppress(OSError):
            self._channel.send({"kind": kind, **message})


def main(file: int) -> None:
    """Works for the worker at the other end of an open socket."""
    # Outside of work there is nothing to interrupt; to ignore it would be inherited by the JVM.
    signal.signal(signal.SIGINT, lambda *_: None)
    os.set_inheritable(file, False)
    loop = ProcessLoop(Channel(socket.socket(fileno=file)))
    threading.Thread(target=loop.read, daemon=True).start()
    loop.work(_project())
    os._exit(0)


def _project() -> Project | HydroError:
    try:
        found = current()
    except HydroError as error:
        return error
    open_logs(found.settings.log_format, NAME)
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]))
