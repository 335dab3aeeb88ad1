"""The project that a command is about: its settings, and its flows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hydro_core.errors import DataError
from hydro_core.project.discover import PROJECT, BrokenFlow, found_in
from hydro_core.project.flow_asset import FlowAsset

from .settings import ProjectSettings, project_settings
from .settings_file import FileSettings


@dataclass(frozen=True, slots=True)
class Project:
    """A project: what it says of its flows, and which of these are wrong by themselves."""

    settings: ProjectSettings
    flows: Sequence[FlowAsset] = ()
    broken: Sequence[BrokenFlow] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all flows, also of those whose declarations are wrong."""
        of_all = (*(flow.name for flow in self.flows), *(flow.name for flow in self.broken))
        return tuple(dict.fromkeys(of_all))

    def flow(self, name: str) -> FlowAsset | None:
        """The flow of that name; None where there is none.

        Raises:
            HydroError: its declaration is wrong.
        """
        flow = next((flow for flow in self.flows if flow.name == name), None)
        broken = next((one for one in self.broken if one.name == name), None)
        if flow is None and broken is not None:
            raise broken.error
        return flow


def project_at(at: Path, given: FileSettings | None = None) -> Project:
    """The project in a folder, read anew; `given` wins over the settings of its file.

    Raises:
        HydroError: there is none, or its settings are wrong (code `config`).
    """
    settings = project_settings(at=at, given=given)
    found = found_in(at.absolute())
    return Project(settings, found.flows, found.broken)


def current() -> Project:
    """The project that the current folder is in, read anew.

    Raises:
        HydroError: there is none, or its settings are wrong (code `config`).
    """
    settings = project_settings()
    if settings.root is None:
        raise DataError.of(
            "config",
            "this is no project: there is no folder `assets` here, nor above",
            help="go to one, or make one with `hydrotick init DIR`; "
            f"{PROJECT} names one from elsewhere",
        )
    found = found_in(settings.root)
    return Project(settings, found.flows, found.broken)
