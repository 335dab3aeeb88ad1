"""`hydrotick worker` serves the ticks of a project, `hydrotick metrics` prints its metrics."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal

from hydro_core.cli.command import Asked, MisuseError
from hydro_core.cli.output import Result
from hydro_core.errors import DataError, HydroError
from hydro_core.machine.locks import FileLock
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.settings import MEBIBYTE

from ..flows.flows import Flows
from ..project import project
from ..project.logs import log, open_logs
from ..project.project import Project
from ..project.settings import ProjectSettings
from ..project.settings_file import NONE, TOKEN, host_and_port, wrong_address, wrong_listening
from ..runner.report import asset_of
from ..worker.process import NAME
from ..worker.service import WorkerService
from ..worker.wire import WorkerPlace, ask, listen, place_in, place_of
from .status import records_of, say_nothing_more, status_of

if TYPE_CHECKING:
    from ..code_location.records import Attempt


_HERE = ("127.0.0.1", "localhost", "::1")


def worker(options: Asked) -> Result:
    listen_at, metrics = options.listen, options.metrics
    if listen_at is not None and (listen_at == NONE or wrong_address(listen_at)):
        raise MisuseError(f"argument --listen: {listen_at!r} is no HOST:PORT")
    if metrics is not None and wrong_listening(metrics):
        raise MisuseError(f"argument --metrics: {metrics!r} is no [HOST:]PORT")
    settings = project.current().settings
    if options.status or options.drain:
        return _asked(settings, "drain" if options.drain else "status")
    of_worker = settings.worker
    changed = replace(
        of_worker,
        flows=options.flows or of_worker.flows,
        metrics=metrics or of_worker.metrics,
    )
    return _serve(replace(settings, worker=changed), listen_at)


def _serve(settings: ProjectSettings, listen_at: str | None) -> Result:
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
    return Result()


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


def _asked(settings: ProjectSettings, what: str) -> Result:
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
    return Result(found, _shown(found))


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


FLOW_METRICS: Mapping[str, str] = {
    "ticks_committed": "Ticks that are committed.",
    "ticks_behind": "Ticks that may run and are not committed.",
    "lag_seconds": "How long ago the first of these could have run.",
    "last_commit_timestamp_seconds": "When the last commit was made.",
    "last_commit_seconds": "How long the last commit took.",
    "last_commit_ticks": "Ticks of the last commit.",
    "last_commit_rows_read": "Rows that the last commit read of an input.",
    "last_commit_rows_written": "Rows that the last commit wrote into a table.",
    "table_bytes": "Bytes of the files of a state's or an output's table.",
    "late_rows": "Rows of committed ticks that have landed and are not in a tick yet.",
    "failed_tries": "Runs of the next tick that have failed or were terminated.",
    "stopped": "Whether a flow waits for somebody.",
    "broken": "Whether what a flow declares is wrong.",
}
"""Metrics of each flow, by their names after `hydrotick_`."""

_SECONDS_KEPT = 10
"""Metrics are cached for so long: two scrapers cost no more than one."""


def metrics(options: Asked) -> Result:
    found = project.current()
    place = place_of(found.settings) or place_in(found.settings.home)
    try:
        status = ask(place, do="status")
    except OSError:
        status = {}
    return Result(text=metrics_of(found, status))


def metrics_of(found: Project, status: Mapping[str, Any]) -> str:
    """The metrics of a project's flows, and of its worker by its status; empty: there is none."""
    return as_text([*_of_flows(found), *_of_worker(status)])


def serve_metrics(address: tuple[str, int], status: Callable[[], Mapping[str, Any]]) -> None:
    """Tells the metrics of the current project at `/metrics`, in threads of their own.

    Raises:
        OSError: the address is taken, or not of this machine.
    """
    lock, kept = threading.Lock(), [(-float("inf"), "")]

    def text() -> str:
        with lock:
            if time.monotonic() - kept[0][0] > _SECONDS_KEPT:
                said = metrics_of(project.current(), status())
                kept[0] = time.monotonic(), said
            return kept[0][1]

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path.partition("?")[0] in ("/metrics", "/healthz")
            try:
                said = text() if self.path.startswith("/metrics") else "ok\n"
            except HydroError as error:
                self._say(500, f"{error}\n")
                return
            self._say(200 if known else 404, said if known else "there is /metrics\n")

        def _say(self, status: int, said: str) -> None:
            body = said.encode()
            self.send_response(status)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name there
            """Says nothing: who asks does so every few seconds."""

    server = ThreadingHTTPServer(address, Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()


def _of_flows(found: Project) -> Iterator[MetricFamily]:
    families = {
        name: MetricFamily(f"hydrotick_{name}", says) for name, says in FLOW_METRICS.items()
    }
    # Opened anew each time: it costs little, and deployments change.
    flows = Flows(found.settings)
    with ExitStack() as opened:
        records = cache(lambda: opened.enter_context(records_of(flows)))
        for flow in found.flows:
            # Dagster is loaded, and asked, where it has something to say.
            instance = None if say_nothing_more(flow, flows) else records()
            status = status_of(flow, flows, instance)
            # The runs that tried the next tick in vain.
            tries: Sequence[Attempt] = ()
            if instance is not None:
                from ..code_location.records import attempts_at

                tries = attempts_at(flow, flows, instance, flows.next_tick(flow))
            for name, value in {
                "ticks_committed": status.committed,
                "ticks_behind": status.open,
                "lag_seconds": status.lag_seconds,
                "failed_tries": len(tries),
                "stopped": status.stopped,
                "broken": 0,
            }.items():
                families[name].add(value, flow=flow.name)
            for name, late in status.late.items():
                families["late_rows"].add(late.rows, flow=flow.name, input=name)
            _add_last_commit(families, flow, flows)
    for broken in found.broken:
        families["broken"].add(1, flow=broken.name)
    yield from families.values()


def _add_last_commit(families: Mapping[str, MetricFamily], flow: FlowAsset, flows: Flows) -> None:
    """Adds the last commit of ticks in the ledger, and the sizes of its tables."""
    commit = flows.deployments.ledger(flow).last_run
    if commit is None:
        return
    of = {"flow": flow.name}
    took = (commit.committed - commit.started).total_seconds()
    families["last_commit_timestamp_seconds"].add(commit.committed.timestamp(), **of)
    families["last_commit_seconds"].add(took, **of)
    families["last_commit_ticks"].add(len(commit.ticks), **of)
    for read in commit.inputs:
        if read.rows is not None:
            families["last_commit_rows_read"].add(read.rows, **of, input=read.name)
    try:
        pipeline = flows.pipeline(flow)
        for spec in pipeline.tables:
            table, rows = asset_of(spec), commit.rows.get(spec.name, 0)
            families["last_commit_rows_written"].add(rows, **of, table=table)
            families["table_bytes"].add(pipeline.store.size(spec.name), **of, table=table)
    except DataError:
        # What is wrong with a table is told by what runs next, and by `status`.
        return


def _of_worker(status: Mapping[str, Any]) -> Iterator[MetricFamily]:
    takes = bool(status.get("takes"))
    yield MetricFamily("hydrotick_worker_up", "Whether the worker takes work.").add(takes)
    if not status:
        return
    for name, says in {"running": "Work that goes on.", "waiting": "Work that waits."}.items():
        flows = [job["flow"] for job in status[name]]
        yield MetricFamily(f"hydrotick_worker_{name}", says).add(len(flows))
        of_flow = MetricFamily(f"hydrotick_worker_flow_{name}", says)
        for flow in dict.fromkeys(flows):
            of_flow.add(flows.count(flow), flow=flow)
        yield of_flow
    processes, held = status["processes"], sum(one["memory_mb"] for one in status["processes"])
    says = "Processes, each with a Spark."
    yield MetricFamily("hydrotick_worker_processes", says).add(len(processes))
    yield MetricFamily("hydrotick_worker_memory_bytes", "What these hold.").add(held * MEBIBYTE)
    ends = MetricFamily("hydrotick_worker_work_total", "Work, by how it ended.", "counter")
    for flow, end, number in status["counts"]["ends"]:
        ends.add(number, flow=flow, end=end)
    seconds = MetricFamily("hydrotick_worker_work_seconds_total", "What it took.", "counter")
    for flow, number in status["counts"]["seconds"]:
        seconds.add(number, flow=flow)
    checks = MetricFamily("hydrotick_worker_checks_failed_total", "Failed checks.", "counter")
    for flow, check, severity, number in status["counts"]["checks"]:
        checks.add(number, flow=flow, check=check, severity=severity)
    yield from (ends, seconds, checks)


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class MetricFamily:
    """Samples of one name: what they count, and a value for each set of labels."""

    name: str
    help: str
    kind: Literal["gauge", "counter"] = "gauge"
    samples: list[tuple[Mapping[str, str], float]] = field(default_factory=list)

    def add(self, value: float, **labels: str) -> MetricFamily:
        self.samples.append((labels, value))
        return self


def as_text(families: Iterable[MetricFamily]) -> str:
    """The families that have samples.

    >>> up = MetricFamily("up", "Whether it is.")
    >>> up.add(1, flow="totals")
    >>> print(as_text([up]), end="")
    # HELP up Whether it is.
    # TYPE up gauge
    up{flow="totals"} 1
    """
    lines = []
    for family in families:
        if family.samples:
            said = family.help.replace("\\", "\\\\").replace("\n", "\\n")
            lines.append(f"# HELP {family.name} {said}")
            lines.append(f"# TYPE {family.name} {family.kind}")
            for labels, value in family.samples:
                told = ",".join(f'{name}="{_escaped(label)}"' for name, label in labels.items())
                told = f"{{{told}}}" if told else ""
                lines.append(f"{family.name}{told} {_number(value)}")
    return "".join(f"{line}\n" for line in lines)


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
