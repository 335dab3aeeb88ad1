"""The flow that a command is about."""

from __future__ import annotations

from hydro_core.cli.command import Asked, MisuseError
from hydro_core.lang.similar import did_you_mean
from hydro_core.project.flow_asset import FlowAsset

from . import project
from .logs import open_logs
from .project import Project
from .settings import ProjectSettings


def asked_flow(asked: Asked) -> tuple[FlowAsset, ProjectSettings]:
    """The flow that a command is about, and the project's settings, by which it logs.

    Raises:
        HydroError: there is no project, or what it says of the flow is wrong.
        MisuseError: the project has no such flow.
    """
    found = project.current()
    open_logs(found.settings.log_format)
    return flow_named(asked.flow, found), found.settings


def flow_named(name: str, found: Project) -> FlowAsset:
    """The flow of that name.

    Raises:
        HydroError: what the project says of the flow is wrong.
        MisuseError: there is none.
    """
    flow = next((flow for flow in found.flows if flow.name == name), None)
    if flow is not None:
        return flow
    for broken in found.broken:
        if broken.name == name:
            raise broken.error
    there = ", ".join(found.names) or f"none in {found.settings.root}/assets"
    near = did_you_mean(name, found.names)
    near = f": {near}" if near else ""
    raise MisuseError(f"there is no flow `{name}`{near} (flows: {there})")
