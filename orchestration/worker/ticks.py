"""Ticks that a process of a worker runs for somebody else's run, and what it tells of them."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydro_core.errors import (
    DataError,
    EngineEndedError,
    HydroError,
    InfrastructureError,
    ProgramError,
    TransientError,
)
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow
from hydro_core.types.records import as_record, of_record

from ..openlineage.events import Parent
from ..project.project import Project
from ..project.settings import ProjectSettings
from ..runner.runner import TickRunner
from ..runner.tick_request import TickRequest
from .wire import Message

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
"""What of a project's settings is that of who asks, and not of who runs the ticks."""

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
    """The settings that go with ticks to a worker."""
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
    """What is told of an error: its diagnostics, or where it came from."""
    if isinstance(error, HydroError):
        said = [as_record(diagnostic) for diagnostic in error.diagnostics]
        kinds = [kind.__name__ for kind in type(error).__mro__]
        return {"error": next(filter(KINDS.__contains__, kinds)), "diagnostics": said}
    trace = "".join(traceback.format_exception(error))
    return {"error": type(error).__name__, "says": str(error), "trace": trace}


def _flow_named(name: str, project: Project) -> FlowAsset:
    for flow in project.flows:
        if flow.name == name:
            return flow
    for broken in project.broken:
        if broken.name == name:
            raise broken.error
    message = f"the worker's project, {project.settings.root}, has no flow `{name}`"
    raise DataError.of("config", message, help="start the worker in the project")


def asked_json(asked: TickRequest) -> dict[str, Any]:
    """What is asked for, by the ticks' keys."""
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
    """The ticks as ranges, by the keys of the first and the last of each."""
    found: list[list[TickWindow]] = []
    for window in sorted(windows, key=lambda window: window.tick):
        if found and window.tick == found[-1][1].tick + 1:
            found[-1][1] = window
        else:
            found.append([window, window])
    return [[first.key, last.key] for first, last in found]


def _windows(flow: FlowAsset, spans: Iterable[Sequence[str]]) -> frozenset[TickWindow]:
    calendar = flow.ticks.calendar
    return frozenset(
        calendar.window(tick)
        for first, last in spans
        for tick in range(calendar.window_of(first).tick, calendar.window_of(last).tick + 1)
    )
