"""Ticks of a run of Dagster, handed to a worker: the request, its work there, its reports."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydro_core.errors import (
    DataError,
    Diagnostic,
    EngineEndedError,
    HydroError,
    InfrastructureError,
    InternalSparkError,
    ProgramError,
    TransientError,
)
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow, window_ranges
from hydro_core.types.records import as_record, of_record

from ..openlineage import Parent
from ..project.logs import open_logs
from ..project.project import Project
from ..project.settings import ProjectSettings
from ..runner.correction import Log
from ..runner.report import TickReport, report_of_error
from ..runner.runner import TickRequest, TickRunner
from .service import SECONDS_TO_END, code_number
from .wire import PROTOCOL, Channel, Message, WorkerPlace, ask, connect, place_of

_SECONDS_MORE = 10
_SECONDS_TO_ANSWER = 60
"""A worker answers at once; on a machine with much to do that takes longer, and to run the ticks
here would take longest.
"""


class WorkerFailedError(Exception):
    """A bug that came up in a worker, with where it came from there."""


def worker_answers(project: ProjectSettings) -> bool:
    """True if the project has a worker that takes work."""
    place = place_of(project)
    try:
        return place is not None and bool(ask(place, do="status").get("takes"))
    except OSError:
        return False


class TicksOfRun:
    """The ticks of one run: the project's worker runs them, where it has one, else this process."""

    def __init__(self, runner: TickRunner, flow: FlowAsset, log: Log) -> None:
        self._runner, self._flow, self._log = runner, flow, log
        self.worker = ""
        """The process of the worker that runs them; empty where there is none."""

    def reports(self, asked: TickRequest) -> Iterator[TickReport]:
        """Runs the ticks and reports each; who ends this cancels what goes on in a worker.

        What is no tick's fault, such as a worker that has gone, is a report, too.
        """
        try:
            channel = self._handed_over(asked)
            if channel is not None:
                yield from self._there(channel)
                return
        except InfrastructureError as error:
            report = report_of_error(asked.first, error, judged=False)
            self._runner.remember(self._flow, report)
            yield report
            return
        open_logs(self._runner.project.log_format)
        yield from asked.reports(self._runner, self._flow, self._log)

    def _handed_over(self, asked: TickRequest) -> Channel | None:
        """The connection to the worker that has taken the ticks; None where they run here: there is
        no worker, or it takes no more and need not be waited for.

        Raises:
            InfrastructureError: the settings name a worker, and it does not take them.
        """
        place = place_of(self._runner.project)
        if place is None or self._runner.project.root is None:
            return None
        try:
            channel = connect(place)
            channel.wait_at_most(_SECONDS_TO_ANSWER)
            channel.send(self._request(asked, place))
            answer = next(channel.messages(), {"kind": "refused", "why": "it has ended"})
        except OSError as problem:
            if place.needed:
                raise _refused(place, str(problem)) from problem
            return None
        if answer["kind"] == "taken":
            return channel
        channel.close()
        if place.needed:
            raise _refused(place, answer["why"])
        self._log(f"the worker at {place} takes no ticks: {answer['why']}; they run here")
        return None

    def _request(self, asked: TickRequest, place: WorkerPlace) -> dict[str, Any]:
        project = self._runner.project
        commit = self._runner.deployments.commit(self._flow)
        return {
            "do": "ticks",
            "protocol": PROTOCOL,
            "token": place.token,
            "flow": self._flow.name,
            "run": "" if asked.parent is None else asked.parent.run,
            "root": str(project.root),
            "code": code_number(project.root),
            "commit": -1 if commit is None else commit.sequence,
            "settings": settings_asked(project),
            "ticks": asked_json(asked),
        }

    def _there(self, channel: Channel) -> Iterator[TickReport]:
        """The reports of ticks that the worker runs.

        Raises:
            InfrastructureError: it is gone, or was told to end.
        """
        channel.wait_at_most(None)
        messages, ended = channel.messages(), False
        try:
            for message in messages:
                if message["kind"] == "end":
                    ended = True
                    return
                report = self._said(message)
                if report is not None:
                    self._runner.remember(self._flow, report)
                    yield report
            raise _gone("the worker has ended")
        finally:
            if not ended:
                # The flow is free for its next run when what goes on there has ended.
                channel.give_up(SECONDS_TO_END + _SECONDS_MORE)
            channel.close()

    def _said(self, message: Mapping[str, Any]) -> TickReport | None:
        match message["kind"]:
            case "started":
                self.worker = message["process"]
                self._log(f"the worker's process {self.worker} runs the ticks")
            case "log":
                self._log(message["line"])
            case "told":
                self._runner.progress(message["line"])
            case "computed":
                self._runner.computed_again(of_record(tuple[TickWindow, ...], message["windows"]))
            case "report":
                report: TickReport = of_record(TickReport, message["report"])
                return report
            case "failed":
                raise error_of(message)
            case "gone":
                raise _gone(f"the worker's process is gone: {message['why']}")
            case "cancelled":
                raise _gone("the worker was told to end")
        return None


def _refused(place: WorkerPlace, why: str) -> InfrastructureError:
    cure = "start it: `hydrotick worker`; `hydrotick worker --status` says how it is"
    return InfrastructureError.of(
        "config", f"the worker at {place} does not take the ticks: {why}", help=cure
    )


def _gone(what: str) -> InfrastructureError:
    return InfrastructureError.of(
        "runtime",
        f"{what}, in the middle of the work",
        help="run it again: what was not committed has not happened",
    )


def error_of(message: Mapping[str, Any]) -> Exception:
    name = message["error"]
    if "diagnostics" in message:
        return KINDS[name](*(of_record(Diagnostic, one) for one in message["diagnostics"]))
    if name == InternalSparkError.__name__:
        return InternalSparkError(message["trace"])
    return WorkerFailedError(f"{name}: {message['says']}\n\nIn the worker:\n{message['trace']}")


_SETTINGS = (
    "spark_master",
    "spark_memory",
    "spark_conf",
    "shuffle_partitions",
    "lookups",
    "range_ticks",
    "sample_keys",
    "code_url",
    "openlineage",
    "openlineage_namespace",
)
"""Settings that the client decides, and not the worker."""

KINDS: Mapping[str, type[HydroError]] = {
    kind.__name__: kind
    for kind in (
        HydroError,
        ProgramError,
        DataError,
        TransientError,
        InfrastructureError,
        EngineEndedError,
    )
}
"""The errors for people, by name; one of a class below is told as what it is to a tick."""


def settings_asked(project: ProjectSettings) -> dict[str, Any]:
    said = {name: getattr(project, name) for name in _SETTINGS}
    return {**said, "home": str(project.home), "landing": str(project.landing)}


class TickWork:
    """Runs ticks of one project's flows; its runners and pipelines stay from one to the next.

    `tell` tells who has asked of something that happens, by its kind and what belongs to it.
    """

    def __init__(self, project: Project | HydroError, tell: Callable[..., None]) -> None:
        self._project, self._tell = project, tell
        self._runners: dict[str, TickRunner] = {}

    def do(self, message: Message, code: str) -> None:
        """Runs the ticks of a request, and tells of each.

        Raises:
            HydroError: they cannot be run here.
        """
        if isinstance(self._project, HydroError):
            raise self._project
        if message["code"] != code:
            raise InfrastructureError.of(
                "config",
                "the worker has other files than the run that asks it: its project is "
                f"{self._project.settings.root}",
                help="install the same hydrotick and the same project for both; while files are "
                "being replaced, the next try finds them",
            )
        flow = _flow_named(message["flow"], self._project)
        runner = self._runner(message["settings"])
        # Whether the worker sees what who asks it has seen of the flow's ledger.
        last, commit = runner.deployments.commit(flow), message["commit"]
        if commit > (-1 if last is None else last.sequence):
            where = runner.directory(flow)
            said = f"the worker finds no commit {commit} of `{flow.name}` in {where}"
            cure = "mount the same data for the worker and for runs, under one path"
            raise InfrastructureError.of("config", said, help=cure)
        tell, asked = self._tell, asked_of(flow, message["ticks"])
        runner.progress = lambda line: tell("told", line=line)
        runner.computed_again = lambda windows: tell("computed", windows=as_record(windows))
        for report in asked.reports(runner, flow, lambda line: tell("log", line=line)):
            tell("report", report=as_record(report))

    def _runner(self, asked: Mapping[str, Any]) -> TickRunner:
        """The runner of these settings, one for each: they rarely change."""
        assert isinstance(self._project, Project)
        key = json.dumps(asked, sort_keys=True)
        if key not in self._runners:
            said: dict[str, Any] = {name: asked[name] for name in _SETTINGS}
            said |= {"home": Path(asked["home"]), "landing_at": Path(asked["landing"])}
            self._runners[key] = TickRunner(replace(self._project.settings, **said))
        return self._runners[key]


def failure(error: BaseException) -> dict[str, Any]:
    if isinstance(error, HydroError):
        said = [as_record(diagnostic) for diagnostic in error.diagnostics]
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return {"error": next(filter(KINDS.__contains__, kinds)), "diagnostics": said}
    trace = "".join(traceback.format_exception(error))
    return {"error": type(error).__name__, "says": str(error), "trace": trace}


def _flow_named(name: str, project: Project) -> FlowAsset:
    flow = project.flow(name)
    if flow is not None:
        return flow
    message = f"the worker's project, {project.settings.root}, has no flow `{name}`"
    raise DataError.of("config", message, help="start the worker in the project")


def asked_json(asked: TickRequest) -> dict[str, Any]:
    return {
        "asked": _spans(asked.asked),
        "also": _spans(asked.also),
        "corrected": asked.corrected,
        "parent": None if asked.parent is None else as_record(asked.parent),
    }


def asked_of(flow: FlowAsset, found: Mapping[str, Any]) -> TickRequest:
    """What is asked for of a flow.

    Raises:
        HydroError: a key is of no tick of the flow.
    """
    parent = of_record(Parent, found["parent"])
    asked, also = _windows(flow, found["asked"]), _windows(flow, found["also"])
    return TickRequest(asked, also, bool(found["corrected"]), parent)


def _spans(windows: Iterable[TickWindow]) -> list[list[str]]:
    ranges = window_ranges(sorted(windows, key=lambda window: window.tick))
    return [[first.key, last.key] for first, last in ranges]


def _windows(flow: FlowAsset, spans: Iterable[Sequence[str]]) -> frozenset[TickWindow]:
    calendar = flow.ticks.calendar
    return frozenset(
        calendar.window(tick)
        for first, last in spans
        for tick in range(calendar.window_of(first).tick, calendar.window_of(last).tick + 1)
    )
