"""`hydrotick dev`: Dagster's UI, daemon and a worker for one home, all of which end with it.

Dagster's processes are a session of their own, and so is the worker: a signal to this process ends
them in order, and whatever is left of them after that is killed. If this process is killed, the
system tells them to end.
"""

from __future__ import annotations

import ctypes
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from types import FrameType

import dagster as dg

from hydro_core.cli import output
from hydro_core.cli.command import Asked
from hydro_core.cli.output import Result
from hydro_core.errors import DataError, HydroError
from hydro_core.machine.locks import host_of

from ..code_location.next_run import in_words
from ..code_location.records import end_orphans
from ..instance import SHIPPED_BESIDE, dev_lock, has_own_settings, prepare_instance
from ..instance.opening import KEPT_DAYS, forget_old_logs, open_instance
from ..instance.run_tags import process_of
from ..project import project
from ..project.logs import are_json, log, open_logs
from ..project.project import Project
from ..project.settings import environment_of
from ..runner.runner import TickRunner
from ..worker.client import worker_answers
from .backfill import record_committed

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SECONDS_TO_END = 40
_SUPERSEDED = "ignore:Function `dev_command` is superseded"
"""The warning that Dagster's own command line gives of the command that is called here, about which
who calls `hydrotick dev` can do nothing.
"""
_SECONDS_A_DAY = 24 * 3600
_SECONDS_TO_LOOK = 5
_SECONDS_TO_STAY = 20
"""A process that ends sooner has a permanent problem, such as a port that is taken."""
_PR_SET_PDEATHSIG = 1


class _StopRequested(BaseException):
    """A signal asks for the end."""


def dev(options: Asked) -> Result:
    port = options.port
    found = project.current()
    open_logs(found.settings.log_format)
    home = prepare_instance(found.settings.dagster_home)
    url = f"http://127.0.0.1:{port}"
    with _alone(home, url):
        if has_own_settings(home):
            _say(f"{home / 'dagster.yaml'} was changed; this version's is {home / SHIPPED_BESIDE}")
        try:
            # Those that are ignored (by nohup) stay so.
            heeded = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
            with _handled(heeded, _end):
                with open_instance(home) as instance:
                    _put_right(found, instance)
                _say(f"The UI: {url}  (end it with Ctrl-C)")
                return Result(code=_serve(found, port))
        except _StopRequested:
            return Result()


@contextmanager
def _alone(home: Path, url: str) -> Iterator[None]:
    """Holds the lock of the one `hydrotick dev` on this home.

    Raises:
        DataError: another holds it.
    """
    lock = dev_lock(home)
    if not lock.take(url=url):
        holder = lock.holder()
        who = f": process {holder['process']}, since {holder['since']}" if holder else ""
        where = f"open its UI at {holder['url']}, or " if holder else ""
        message = f"another `hydrotick dev` is at work on {home}{who}"
        cure = f"{where}end it first, or set HYDROTICK_HOME to another directory"
        raise DataError.of("state", message, help=cure)
    try:
        yield
    finally:
        lock.release()


def _put_right(found: Project, instance: dg.DagsterInstance) -> None:
    """Mends what killed processes left in Dagster's records: open runs, and missing ticks."""
    runner = TickRunner(found.settings)
    for broken in found.broken:
        _say(f"{broken.name}: {broken.error}")
    for flow in found.flows:
        for run in end_orphans(instance, flow):
            host = host_of(process_of(run) or "")
            _say(
                f"{flow.name}: run {run.run_id} began on {host}, of which nothing is known here; "
                "if that is gone, terminate the run in the UI"
            )
        try:
            runner.deployments.prepare(flow)
            recorded = record_committed(flow, runner, instance)
        except HydroError as error:
            # The UI shows what is wrong with it, and the other flows.
            _say(f"{flow.name}: {error}")
            continue
        for first, last in recorded:
            _say(f"{flow.name}: {in_words(first, last)} was committed, but not recorded; it is now")


def _serve(found: Project, port: int) -> int:
    """Runs Dagster's UI and daemon until they end or a signal comes; leaves none behind."""
    home = found.settings.dagster_home
    workspace = str(files("hydrotick.instance") / "workspace.yaml")
    command = [sys.executable, "-m", "dagster", "dev", "-w", workspace]
    command += ["-h", "127.0.0.1", "-p", str(port)]
    command += ["--log-format", "json"] if are_json() else []
    # The project's `assets` must not hide the package of that name: nothing of the current folder
    # is imported.
    safe = {"DAGSTER_HOME": str(home), "PYTHONSAFEPATH": "1"}
    warnings = filter(None, [os.environ.get("PYTHONWARNINGS"), _SUPERSEDED])
    safe["PYTHONWARNINGS"] = ",".join(warnings)
    environment = {**os.environ, **environment_of(found.settings), **safe}
    ui = _WatchedProcess("Dagster", command, environment)
    words = [sys.executable, "-m", "hydro_core.cli.main", "worker"]
    answers = worker_answers(found.settings)
    worker = None if answers else _WatchedProcess("the worker", words, environment)
    try:
        return _wait(ui, worker, home)
    finally:
        # Signals do not interrupt the orderly end.
        with _handled(_SIGNALS, signal.SIG_IGN):
            ui.end()
            if worker is not None:
                worker.end()


class _WatchedProcess:
    """A process that is there while the UI is: where it has ended, another one is started. It is a
    session of its own, and ends with this process.
    """

    def __init__(self, what: str, words: Sequence[str], environment: Mapping[str, str]) -> None:
        self._what, self._words, self._environment = what, words, environment
        self._start()

    def look(self, seconds: float = 0) -> int | None:
        """Waits for so long at most, and starts another one where it has ended; one that has ended
        soon after its start is left so, and what it ended with is given.
        """
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        if time.monotonic() - self._since < _SECONDS_TO_STAY:
            return code
        _say(f"{self._what} has ended ({code}); it is started again")
        self._kill()
        self._start()
        return None

    def end(self) -> None:
        """Ends it and its processes: in order, if they do so in time."""
        if self._process.poll() is None:
            # It ends its processes in order when it alone is interrupted.
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(_SECONDS_TO_END)
            except subprocess.TimeoutExpired:
                _say(f"{self._what} does not end; it is killed")
        self._kill()

    def _start(self) -> None:
        self._since = time.monotonic()
        self._process = subprocess.Popen(
            self._words,
            env=self._environment,
            start_new_session=True,
            preexec_fn=_ends_with(os.getpid()),  # noqa: PLW1509 - it calls the system alone
        )

    def _kill(self) -> None:
        """Kills what is left of it: one that is killed leaves its processes behind."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def _wait(ui: _WatchedProcess, worker: _WatchedProcess | None, home: Path) -> int:
    forgotten = -math.inf
    while True:
        if time.monotonic() - forgotten > _SECONDS_A_DAY:
            forgotten = time.monotonic()
            with open_instance(home) as instance:
                forget_old_logs(instance, KEPT_DAYS)
        ended = ui.look(_SECONDS_TO_LOOK)
        if ended is not None:
            return ended
        if worker is not None:
            worker.look()


def _ends_with(parent: int) -> Callable[[], None]:
    """Hook of a child process, which is interrupted when this process ends, even by SIGKILL."""
    libc = ctypes.CDLL(None, use_errno=True)

    def ask() -> None:
        # A shell that starts something in the background has it ignore interrupts.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return ask


def _end(_number: int, _frame: FrameType | None) -> None:
    raise _StopRequested


@contextmanager
def _handled(
    numbers: Sequence[signal.Signals], by: Callable[[int, FrameType | None], None] | signal.Handlers
) -> Iterator[None]:
    before = {number: signal.signal(number, by) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _say(text: str) -> None:
    if are_json():
        log("dev", text)
        return
    output.print_lines((text,))
