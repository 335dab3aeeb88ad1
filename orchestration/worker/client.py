"""Ticks of a run of Dagster, handed to a worker: what happens there is told as if it were here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hydro_core.errors import Diagnostic, InfrastructureError, InternalSparkError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow
from hydro_core.types.records import of_record

from ..project.logs import open_logs
from ..project.settings import ProjectSettings
from ..runner.ranges import Log
from ..runner.report import TickReport, report_of_error
from ..runner.runner import TickRunner
from ..runner.tick_request import TickRequest
from .jobs import code_number
from .spawned import SECONDS_TO_END
from .ticks import KINDS, asked_json, settings_asked
from .wire import PROTOCOL, Channel, WorkerPlace, ask, connect, place_of

_SECONDS_MORE = 10
_SECONDS_TO_ANSWER = 60
"""A worker answers at once; on a machine with much to do that takes longer, and to run the ticks
here would take longest.
"""


class WorkerFailedError(Exception):
    """A bug that came up in a worker, with where it came from there."""


def worker_answers(project: ProjectSettings) -> bool:
    """Whether the project has a worker that takes work."""
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
    """The error that came up there, as one that came up here."""
    name = message["error"]
    if "diagnostics" in message:
        return KINDS[name](*(of_record(Diagnostic, one) for one in message["diagnostics"]))
    if name == InternalSparkError.__name__:
        return InternalSparkError(message["trace"])
    return WorkerFailedError(f"{name}: {message['says']}\n\nIn the worker:\n{message['trace']}")
