"""Which deployment the definitions of a flow are of: the one that was there when they were loaded.

A step of a run may be a process of its own, which loads the definitions anew. By then an earlier
step may have deployed the flow, or somebody at the command line, and the flow would have other
assets than those that the run is for. So the deployment goes with the run, in what Dagster keeps of
the location that launched it.
"""

from __future__ import annotations

from collections.abc import Callable

from dagster._core.definitions.definitions_load_context import (
    DefinitionsLoadContext,
    DefinitionsLoadType,
)

from hydro_core.artifact.files import WrittenDeployment
from hydro_core.project.flow_asset import FlowAsset

from ..project.serving import Deployments

_NOT_DEPLOYED = ""
_PREFIX = "hydrotick/"


def begin_to_load() -> None:
    """Has Dagster keep what is shown also where its commands load definitions as if they had been
    loaded before, or do not say what they do: `dagster asset materialize` and `dg launch`.
    """
    context = DefinitionsLoadContext.get()
    again = context.load_type is DefinitionsLoadType.RECONSTRUCTION
    if not DefinitionsLoadContext.is_set() or (again and not context.reconstruction_metadata):
        first = DefinitionsLoadContext(load_type=DefinitionsLoadType.INITIALIZATION)
        DefinitionsLoadContext.set(first)


def deployment_shown(flow: FlowAsset, deployments: Deployments) -> WrittenDeployment | None:
    """The deployment that the definitions of a flow are to show; None: the program as written.

    Raises:
        HydroError: no deployment serves, one is written, and the program is wrong.
    """
    found: WrittenDeployment | None = None
    name = _known(flow.name)
    if name != _NOT_DEPLOYED:
        found = deployments.named(flow, name) if name else None
        found = found or deployments.shown(flow)
    _goes_with_runs(flow.name, found.name if found else _NOT_DEPLOYED)
    return found


def as_when_launched(key: str, made: Callable[[], str]) -> str:
    """What was made of the definitions when they were loaded to be shown, and is dear to make: a
    process of a run has it from who launched it.
    """
    known = _known(key)
    found = made() if known is None else known
    _goes_with_runs(key, found)
    return found


def _known(key: str) -> str | None:
    """What goes with the run for which definitions are loaded; None: they are to be shown."""
    context = DefinitionsLoadContext.get()
    if context.load_type is not DefinitionsLoadType.RECONSTRUCTION:
        return None
    found: str | None = context.reconstruction_metadata.get(_PREFIX + key)
    return found


def _goes_with_runs(key: str, value: str) -> None:
    context = DefinitionsLoadContext.get()
    context.add_to_pending_reconstruction_metadata(_PREFIX + key, value)
