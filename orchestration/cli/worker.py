"""`hydrotick worker`: the processes that run the ticks of a project, for whoever asks."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from typing import Any

from hydro_core.cli import output
from hydro_core.cli.command import Asked, MisuseError
from hydro_core.errors import DataError
from hydro_core.machine.locks import FileLock
from hydro_core.types.json import json_text

from ..project import project
from ..project.known_settings import (
    NONE,
    TOKEN,
    host_and_port,
    wrong_address,
    wrong_listening,
)
from ..project.logs import log, open_logs
from ..project.settings import ProjectSettings
from ..worker.process import NAME
from ..worker.service import WorkerService
from ..worker.wire import WorkerPlace, ask, listen, place_in, place_of
from .metrics import serve_metrics

_HERE = ("127.0.0.1", "localhost", "::1")


def worker(options: Asked) -> int:
    listen_at, metrics = options.listen, options.metrics
    if listen_at is not None and (listen_at == NONE or wrong_address(listen_at)):
        raise MisuseError(f"argument --listen: {listen_at!r} is no HOST:PORT")
    if metrics is not None and wrong_listening(metrics):
        raise MisuseError(f"argument --metrics: {metrics!r} is no [HOST:]PORT")
    settings = project.current().settings
    if options.status or options.drain:
        return _asked(settings, "drain" if options.drain else "status", options.format)
    of_worker = settings.worker
    changed = replace(
        of_worker,
        flows=options.flows or of_worker.flows,
        metrics=metrics or of_worker.metrics,
    )
    return _serve(replace(settings, worker=changed), listen_at)


def _serve(settings: ProjectSettings, listen_at: str | None) -> int:
    """Takes work until a signal comes: the first SIGTERM drains, whatever comes then stops."""
    open_logs(settings.log_format, NAME)
    places = [place_in(settings.home), *_network(settings, listen_at)]
    lock = FileLock(settings.home / "worker" / "worker.lock")
    if not lock.take():
        process = lock.holder().get("process", "")
        who = f": process {process}" if process else ""
        raise DataError.of(
            "state",
            f"another worker is at work on {settings.home}{who}",
            help="end it first (`hydrotick worker --drain`), or let it have more flows at a time",
        )
    service = WorkerService(settings, _say)
    for place in places:
        try:
            service.serve(listen(place), place.token)
        except OSError as problem:
            message = f"the worker cannot be asked at {place}: {problem.strerror or problem}"
            cure = "end what is there, or name another address: `--listen HOST:PORT`"
            raise DataError.of("config", message, help=cure) from problem
        _say(f"asked at {place}")
    metrics = settings.worker.metrics
    if metrics is not None:
        host, port = host_and_port(metrics)
        host = host or _HERE[0]
        try:
            serve_metrics((host, port), service.status)
        except OSError as problem:
            message = f"metrics cannot be told at {metrics}: {problem.strerror or problem}"
            cure = "end what is there, or name another address: `--metrics [HOST:]PORT`"
            raise DataError.of("config", message, help=cure) from problem
        _say(f"tells metrics at http://{host}:{port}/metrics")
    _heed_signals(service)
    _say(f"runs {settings.worker.flows} flow(s) at a time of {settings.root}")
    service.work()
    lock.release()
    return 0


def _network(settings: ProjectSettings, listen_at: str | None) -> list[WorkerPlace]:
    """Where it is asked beside the socket in the project's data.

    Raises:
        DataError: others could ask it without a token (code `config`).
    """
    # Where runs ask it may have another name, or the port of something between.
    if listen_at is None:
        return []
    host, port = host_and_port(listen_at)
    token = settings.worker.token
    if token is None and host not in _HERE:
        message = f"whoever reaches {listen_at} could have the worker run what it likes"
        cure = f"give it and those who ask it a token: {TOKEN}, or `token_file` of `[worker]`"
        raise DataError.of("config", message, help=cure)
    return [WorkerPlace(None, (host, port), token)]


def _heed_signals(service: WorkerService) -> None:
    came: list[int] = []

    def end(number: int, _frame: object) -> None:
        drains = number == signal.SIGTERM and not came
        came.append(number)

        def stop() -> None:
            _say("takes no more, and ends what goes on" if drains else "ends")
            (service.drain if drains else service.stop)()

        # The main thread may hold what this waits for, and be in the middle of a line.
        threading.Thread(target=stop, daemon=True).start()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end)


def _asked(settings: ProjectSettings, what: str, style: str) -> int:
    """Asks the worker; ends with 1 where there is none."""
    place = place_of(settings) or place_in(settings.home)
    try:
        found = ask(place, do=what)
    except OSError as problem:
        message = f"no worker answers at {place}: {problem.strerror or problem}"
        cure = "start it: `hydrotick worker`"
        raise DataError.of("state", message, help=cure) from problem
    if "takes" not in found:
        message = f"the worker at {place} does not answer: {found.get('why', 'it has ended')}"
        raise DataError.of("state", message, help=f"see that {TOKEN} is the worker's")
    output.print_text((json_text(found) if style == "json" else _shown(found)).rstrip())
    return 0


def _shown(found: dict[str, Any]) -> str:
    takes = "takes work" if found["takes"] else "takes no more work, and ends"
    lines = [f"{found['process']} {takes}; {found['flows']} flow(s) at a time, {found['project']}"]
    lines += [
        f"  runs   {job['flow']} for {job['seconds']} s, process {job['process']}"
        for job in found["running"]
    ]
    lines += [f"  waits  {job['flow']} for {job['seconds']} s" for job in found["waiting"]]
    for one in found["processes"]:
        if not one["busy"]:
            last = f", {one['flow']} was its last flow" if one["flow"] else ""
            lines.append(f"  idle   process {one['process']}, {one['memory_mb']:,} MiB{last}")
    return "\n".join(lines)


def _say(text: str) -> None:
    log("worker", text)
