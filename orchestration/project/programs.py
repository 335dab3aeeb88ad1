"""The program of a flow, as it is written now, and the deployment that it would be."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from hydro_core.artifact.deployment import PACKAGE, Costs, Deployment, Validated
from hydro_core.artifact.files import WrittenDeployment
from hydro_core.errors import Diagnostic
from hydro_core.lang.params import written
from hydro_core.lang.source import PROGRAMS
from hydro_core.plan.semantic_hash import program_hashes
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.program_change.said import Said, said
from hydro_core.project.check import check_declaration
from hydro_core.project.discover import place_of, project_above
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.program import (
    check_columns,
    in_shards,
    params_given,
    program_of,
    refuse_not_growing,
    sharding_of,
)
from hydro_core.project.quarantine import asks
from hydro_core.storage.remote import DataPlace
from hydro_core.types.item import QUARANTINE

if TYPE_CHECKING:
    from hydro_core.compile import Compiled
    from hydro_core.lang.comments import Comments
    from hydro_core.optimize.cost import Statistics
    from hydro_core.optimize.optimizer import Optimized


_RUNS, _SEED = 20, 0
"""How many random runs compare a plan with its program before it is deployed."""


@dataclass(frozen=True, slots=True)
class KnownData:
    """What is known of a flow's data before its program is planned; None: nothing."""

    recorded: Statistics | None = None
    """By the ledger, of the ticks that have run."""
    served_by: Statistics | None = None
    """By which the plan was made that serves."""
    served: frozenset[str] = frozenset()
    """The inputs that the program reads which serves."""


def known_data(directory: DataPlace, serving: Deployment) -> KnownData:
    """What the pipeline of a flow in a directory says of its data, by the plan that serves."""
    from hydro_core.optimize.cost import Statistics
    from hydro_core.spark.pipeline.statistics import recorded_statistics

    recorded = recorded_statistics(directory)
    served = frozenset(serving.program.typed.graph.sources)
    return KnownData(recorded, Statistics.of(serving.costs.statistics), served)


def said_instead(flow: FlowAsset, deployed: Deployment) -> Said | None:
    """What the program of `flow` says in place of a deployed one; None where that is the same, cut
    into as many shards.

    The optimizer is not asked.

    A text that this release has read before is not read again: a code location asks this of all
    its flows, nearly always of programs that nobody has touched.

    Raises:
        ProgramError: the program, or what the asset says of it, is wrong.
    """
    known = deployed.program.typed
    alike = sharding_of(flow) == deployed.sharding
    if alike and _was_read_from(flow, deployed):
        check_declaration(flow, known.graph.sources, known.graph.sinks)
        check_columns(flow, known)
        return None
    now = said(program_of(flow, known.graph.sources).typed)
    return None if alike and now == said(known) else now


def _was_read_from(flow: FlowAsset, deployed: Deployment) -> bool:
    """Whether reading the program would give the deployed one: it is all in the same text."""
    has_quarantine = QUARANTINE in deployed.program.typed.graph.sinks
    written_as_text = Path(flow.program).suffix in PROGRAMS
    if flow.schemas or asks(flow) or has_quarantine or not written_as_text:
        return False
    texts = texts_of(flow)
    return (
        bool(texts)
        and texts == deployed.program.texts
        and written(params_given(flow)) == deployed.params
        and deployed.versions.get(PACKAGE) == _release()
    )


@cache
def _release() -> str:
    return version(PACKAGE)


def plan_as_written(flow: FlowAsset) -> TickPlan:
    """The plan of the program as it stands, which shows what it is before it is first deployed.

    Raises:
        ProgramError: the program, or what the asset says of it, is wrong.
    """
    from hydro_core.compile import planned
    from hydro_core.shards.together import as_written

    program = program_of(flow)
    cut = in_shards(flow, program, as_written)
    if cut is None:
        return planned(program)
    _, shards = cut
    known = shards.hashes(program_hashes(program.typed))
    return planned(program, shards.optimized(), known)


def deployment_for(flow: FlowAsset, known: KnownData | None = None) -> Deployment:
    """The deployment of a flow's program: optimized, and compared with the program as written.

    A plan that gives something else on random ticks is not deployed: the program runs as it is
    written then, and the deployment's notes say so. `known`: what earlier ticks say of the data.

    Raises:
        ProgramError: the program is wrong, or a function of it cannot be stored (code `config`).
    """
    from hydro_core.compile import stratified
    from hydro_core.shards.together import as_written
    from hydro_core.validation.random_ticks import validate_randomly

    made = untried_deployment(flow, known)
    refuse_not_growing(flow, made.plan)
    program, before = stratified(made.program.typed), made.costs.before
    wrong = validate_randomly(stratified(made.plan.typed), program, _RUNS, _SEED)
    if wrong is None:
        return replace(made, validated=Validated(_RUNS, _SEED))
    written = _deployment(flow, program, as_written)
    note = f"it runs as it is written, since the optimized plan is not the same: {wrong}"
    return replace(written, costs=Costs(before, before), notes=(note, *written.notes))


def untried_deployment(flow: FlowAsset, known: KnownData | None = None) -> Deployment:
    """The same before its plan is compared with the program: for those who only look at it.

    Raises:
        ProgramError: the program is wrong, or a function of it cannot be stored (code `config`).
    """
    from hydro_core.compile import best_plan

    known = known or KnownData()
    plan = partial(best_plan, stats=known.recorded, explain=True, served_by=known.served_by)
    return _deployment(flow, program_of(flow, known.served), plan)


def _deployment(
    flow: FlowAsset, program: Compiled, plan: Callable[[Compiled], Optimized]
) -> Deployment:
    """What is deployed of a program, each part of which is planned so: the whole, or the shards
    that the asset asks for.
    """
    from hydro_core.artifact.make import DeploymentMetadata, deployment_of

    about = DeploymentMetadata(texts_of(flow), params=written(params_given(flow)))
    cut = in_shards(flow, program, plan)
    if cut is None:
        best = plan(program)
    else:
        sharding, shards = cut
        best, known = shards.optimized(), shards.hashes(program_hashes(program.typed))
        about = replace(about, sharding=sharding, hashes=known)
    made = deployment_of(flow.name, program.typed, best, about)
    warned = (_in_a_line(warning) for warning in program.graph.warnings)
    return replace(made, notes=tuple(_within(flow, note) for note in (*warned, *made.notes)))


def _within(flow: FlowAsset, note: str) -> str:
    """A note, with the places with which its lines begin as they are within the project."""
    folder = (flow.folder or Path(flow.program).parent).absolute()
    root = project_above(folder) or folder
    return "\n".join(line.removeprefix(f"{root}/") for line in note.splitlines())


def _in_a_line(warning: Diagnostic) -> str:
    place = f"{warning.span.file}:{warning.span.line}: " if warning.span else ""
    return f"{place}{warning.message}\n  help: {warning.help}"


def comments_of(flow: FlowAsset, written: WrittenDeployment | None) -> Comments:
    """What the program says of its statements, as it was deployed, or as it is where it was not."""
    from hydro_core.lang.comments import Comments

    return Comments(texts_of(flow) if written is None else written.deployment.program.texts)


def texts_of(flow: FlowAsset) -> Mapping[str, str]:
    """The file that the program was read from, by its name."""
    place = place_of(flow)
    if place is None and flow.folder is None:
        # It is no asset's: whoever made the flow has said what is imported.
        found = importlib.util.find_spec(str(flow.program).partition(":")[0])
        place = Path(found.origin) if found is not None and found.origin else None
    if place is None or not place.is_file():
        return {}
    return {place.name: place.read_text(encoding="utf-8")}


STARTED_EMPTY = " started empty with tick "


def started_empty(deployment: Deployment) -> tuple[str, ...]:
    """What a deployment began without a past, in words."""
    return tuple(note for note in deployment.notes if STARTED_EMPTY in note)
