"""Deployments of the flows of a project: the active one, its draft, and how one is built.

The states are drawn in `__init__`. Nothing is built or written by looking.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from hydro_core.artifact.deployment import (
    PACKAGE,
    Costs,
    Deployment,
    ProgramMeaning,
    Validation,
    WrittenDeployment,
    deployment_name,
    deployment_numbers,
    name_at,
    newest_deployment,
    program_meaning,
    remove_deployment,
    write_deployment,
)
from hydro_core.catalog.forms import Form
from hydro_core.errors import DataError, Diagnostic, ProgramError
from hydro_core.lang.params import changed_params, written
from hydro_core.lang.source import PROGRAMS
from hydro_core.plan.semantic_hash import program_hashes
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.project.check import check_declaration, no_such_output, takes_back
from hydro_core.project.discover import place_of, project_above
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.program import (
    check_columns,
    in_shards,
    params_given,
    program_of,
    refuse_not_growing,
    served,
    sharding_of,
)
from hydro_core.project.quarantine import asks
from hydro_core.storage.remote import DataPlace
from hydro_core.types.item import QUARANTINE, declared_columns

if TYPE_CHECKING:
    from hydro_core.compile import CompiledProgram
    from hydro_core.lang.comments import Comments
    from hydro_core.optimize.cost import Statistics
    from hydro_core.optimize.optimizer import OptimizedProgram
    from hydro_core.spark.store.ledger.ledger import Ledger
    from hydro_core.spark.store.ledger.records import Commit


COPIES = "copies"
"""The column by which the log of an output says how often a row comes, or goes."""


class Deployments:
    """The deployments of all flows of a project, each read once; none is built by looking."""

    def __init__(self, pipelines: DataPlace) -> None:
        self._pipelines = pipelines
        self._ledgers: dict[str, Ledger] = {}
        self._active: dict[str, WrittenDeployment] = {}
        self._drafts: dict[str, WrittenDeployment] = {}

    def ledger(self, flow: FlowAsset) -> Ledger:
        """The ledger of a flow's pipeline, read anew: what is new since it was read last."""
        return self.ledger_of(flow.name)

    def ledger_of(self, flow: str) -> Ledger:
        from hydro_core.spark.store.ledger.ledger import Ledger

        if flow not in self._ledgers:
            self._ledgers[flow] = Ledger(self._pipelines / flow)
        self._ledgers[flow].refresh()
        return self._ledgers[flow]

    def output_of(
        self, flow: FlowAsset, name: str, columns: Collection[str] | None
    ) -> tuple[DataPlace, int | None]:
        """The table of another flow's output, which an input of this one is, and the version of it
        that the other flow's ledger names: what lies there beyond that has not happened.

        Args:
            flow: the one that reads.
            name: its input.
            columns: those that it reads; None: the program does not say which.

        Raises:
            ProgramError: it has no such output; or that is a log of changes, and what it takes back
                would be read as what it gives (code `config`).
        """
        read = flow.reads[name]
        directory, commit = self._pipelines / read.flow, self.ledger_of(read.flow).last
        if commit is None:
            return directory / "outputs" / read.output, None
        tables = {r["of"]: (t, r) for t, r in commit.tables.items() if r["role"] == "output"}
        if read.output not in tables:
            raise no_such_output(flow, name, tables)
        table, record = tables[read.output]
        if record["mode"] == Form.CHANGES.stored and COPIES not in (columns or ()):
            raise takes_back(flow, name)
        return directory / table, commit.versions.get(table)

    def commit(self, flow: FlowAsset) -> Commit | None:
        """The last commit of a flow's pipeline, read anew; None before the first."""
        return self.ledger(flow).last

    def seen(self, flow: FlowAsset) -> Commit | None:
        """The last commit when it was looked for last; None before the first look."""
        ledger = self._ledgers.get(flow.name)
        return None if ledger is None else ledger.last

    def active(self, flow: FlowAsset) -> WrittenDeployment | None:
        """The active deployment; None before the first commit.

        Raises:
            DataError: it does not exist, or cannot be read (code `state`).
        """
        commit = self.commit(flow)
        if commit is None:
            return None
        active = self._active.get(flow.name)
        if active is None or active.name != commit.plan:
            directory = self._pipelines / flow.name
            active = newest_deployment(directory, commit.plan)
            if active is None:
                raise DataError.of(
                    "state",
                    f"the active deployment of `{flow.name}` is not in {directory / 'deployments'}",
                    help="restore the directory from a copy; or start the flow over: "
                    f"`hydrotick reset {flow.name}`",
                )
            self._active[flow.name] = active
        return active

    def draft(self, flow: FlowAsset) -> WrittenDeployment | None:
        """The deployment that is written of the program, if that was not changed since.

        Raises:
            HydroError: the program is wrong, and a deployment is written.
        """
        draft = self._drafts.get(flow.name) or newest_deployment(self._pipelines / flow.name)
        if draft is None or undeployed_meaning(flow, draft.deployment) is not None:
            return None
        self._drafts[flow.name] = draft
        return draft

    def active_or_draft(self, flow: FlowAsset) -> WrittenDeployment | None:
        """The active deployment, else the draft of the program as it is now.

        Raises:
            HydroError: there is a draft, and the program is wrong.
        """
        return self.active(flow) or self.draft(flow)

    def prepare(self, flow: FlowAsset, *, write: bool = True) -> WrittenDeployment:
        """The active deployment, or the draft that the first tick activates.

        Without `write` a draft that does not exist yet is built and not written.

        Raises:
            HydroError: the program is wrong, or its deployment cannot be written.
        """
        prepared = self.active_or_draft(flow)
        if prepared is not None:
            return prepared
        draft = deployment_for(flow)
        if not write:
            return self.next(flow, draft)
        self._drafts[flow.name] = self.write(flow, draft)
        return self._drafts[flow.name]

    def next(self, flow: FlowAsset, deployment: Deployment) -> WrittenDeployment:
        """A deployment with the number that it would be written by."""
        number = max(deployment_numbers(self._pipelines / flow.name), default=0) + 1
        return WrittenDeployment(number, deployment_name(deployment), deployment)

    def write(self, flow: FlowAsset, deployment: Deployment) -> WrittenDeployment:
        """Writes a deployment as a draft."""
        number = write_deployment(self._pipelines / flow.name, deployment)
        return WrittenDeployment(number, deployment_name(deployment), deployment)

    def forget(self, flow: FlowAsset, keep: timedelta, now: datetime) -> tuple[int, ...]:
        """Removes the deployments that were retired longer ago than `keep`, and drafts before the
        active one; gives their numbers.
        """
        active, commit = self.active(flow), self.commit(flow)
        if active is None or commit is None:
            return ()
        directory = self._pipelines / flow.name
        stays: set[str | None] = {active.name}
        plan = commit.plan
        for earlier in reversed(self.ledger(flow).commits()):
            if earlier.plan != plan and now - commit.committed < keep:
                stays.add(earlier.plan)
            plan, commit = earlier.plan, earlier
        removed = [n for n in deployment_numbers(directory) if n < active.number]
        removed = [n for n in removed if name_at(directory, n) not in stays]
        for number in removed:
            remove_deployment(directory, number)
        return tuple(removed)

    def plan(self, flow: FlowAsset) -> TickPlan:
        """The plan by which ticks run; that of the program as written where none is prepared.

        Raises:
            HydroError: there is no deployment, and the program is wrong.
        """
        prepared = self.active_or_draft(flow)
        return plan_as_written(flow) if prepared is None else prepared.deployment.plan

    def named(self, flow: FlowAsset, name: str) -> WrittenDeployment | None:
        """A deployment by its name, in any state; None where it does not exist.

        Raises:
            DataError: it cannot be read (code `state`).
        """
        for cached in (self._active.get(flow.name), self._drafts.get(flow.name)):
            if cached is not None and cached.name == name:
                return cached
        return newest_deployment(self._pipelines / flow.name, name)

    def program(self, flow: FlowAsset) -> CompiledProgram:
        """The program as it was written of which the plan is that ticks run by.

        Raises:
            HydroError: there is no deployment, and the program is wrong.
        """
        from hydro_core.compile import stratified

        prepared = self.active_or_draft(flow)
        if prepared is None:
            return program_of(flow)
        return stratified(prepared.deployment.program.typed)

    def undeployed(self, flow: FlowAsset) -> UndeployedChanges:
        """The changes of the program that are not deployed; none where it is the active one.

        The optimizer is not asked: a program that says the same in another way is reported, too.
        """
        active = self.active(flow)
        if active is None:
            return UndeployedChanges()
        deployed = active.deployment
        try:
            now = undeployed_meaning(flow, deployed)
        except (DataError, ProgramError) as error:
            first = error.diagnostics[0].message
            says = f"`{_program_name(flow)}` cannot be deployed as it is: {first}"
            return UndeployedChanges(says, deployable=False)
        if now is None:
            return UndeployedChanges()
        was = program_meaning(deployed.program.typed)
        changed = {name for name, meant in was.outputs.items() if now.outputs.get(name) != meant}
        params = changed_params(deployed.params, written(params_given(flow)))
        if params and texts_of(flow) == deployed.program.texts:
            return UndeployedChanges(f"not deployed: {', '.join(params)}", frozenset(changed))
        has = deployed.sharding
        if not changed and now.inputs == was.inputs and sharding_of(flow) != has:
            return UndeployedChanges(
                f"the shards that its asset asks for are not deployed; {served(has)}"
            )
        says = f"`{_program_name(flow)}` has changes that are not deployed"
        return UndeployedChanges(says, frozenset(changed))


@dataclass(frozen=True, slots=True)
class UndeployedChanges:
    """Changes of a program that are not deployed, in words, and the outputs that they change."""

    says: str = ""
    outputs: frozenset[str] = frozenset()
    deployable: bool = True
    """Whether it can be deployed; else `says` has why not."""


def fitted(flow: FlowAsset, plan: TickPlan, which: str = "that is active") -> FlowAsset:
    """The asset without what a plan neither reads nor gives: it may be ahead of the active one.

    `which`: the deployment whose plan it is, in words.

    Raises:
        DataError: the plan reads an input of which the asset does not say where it lands.
    """
    missing = [name for name in plan.graph.sources if name not in flow.inputs]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        raise DataError.of(
            "config",
            f"the deployment of `{flow.name}` {which} reads {listed}, and its asset does "
            "not say any more where that lands",
            help="say it again in `inputs` until a program without it is deployed "
            f"(`hydrotick deploy {flow.name}`)",
        )
    given = {
        name: declared_columns(stream.item) or {"item": stream.item}
        for name, stream in plan.typed.outputs.items()
    }
    expect = {
        output: tuple(e for e in expected if e.column in given[output])
        for output, expected in flow.expect.items()
        if output in given
    }
    inputs = {name: flow.inputs[name] for name in plan.graph.sources}
    return replace(flow, expect={o: e for o, e in expect.items() if e}, inputs=inputs)


def _program_name(flow: FlowAsset) -> str:
    program = str(flow.program)
    return Path(program).name if program.endswith(PROGRAMS) else program


_RUNS, _SEED = 20, 0
"""Random runs that compare a plan with its program before it is deployed, and their seed."""


@dataclass(frozen=True, slots=True)
class KnownData:
    """Statistics of a flow's data before its program is planned; None: nothing is known."""

    recorded: Statistics | None = None
    """By the ledger, of the ticks that have run."""
    active: Statistics | None = None
    """By which the active plan was chosen."""
    inputs: frozenset[str] = frozenset()
    """The inputs that the active program reads."""


def known_data(directory: DataPlace, active: Deployment) -> KnownData:
    """Statistics that the pipeline in a directory has recorded, and those of the active plan."""
    from hydro_core.optimize.cost import Statistics
    from hydro_core.spark.pipeline.statistics import recorded_statistics

    recorded = recorded_statistics(directory)
    inputs = frozenset(active.program.typed.graph.sources)
    return KnownData(recorded, Statistics.of(active.costs.statistics), inputs)


def undeployed_meaning(flow: FlowAsset, deployed: Deployment) -> ProgramMeaning | None:
    """The meaning of the flow's program now; None where it is that of a deployed one, cut into as
    many shards.

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
    now = program_meaning(program_of(flow, known.graph.sources).typed)
    return None if alike and now == program_meaning(known) else now


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
        return replace(made, validated=Validation(_RUNS, _SEED))
    written = _deployment(flow, program, as_written)
    note = f"it runs as it is written, since the optimized plan is not the same: {wrong}"
    return replace(written, costs=Costs(before, before), notes=(note, *written.notes))


def untried_deployment(flow: FlowAsset, known: KnownData | None = None) -> Deployment:
    """The deployment before its plan is compared with the program, to be shown and not deployed.

    Raises:
        ProgramError: the program is wrong, or a function of it cannot be stored (code `config`).
    """
    from hydro_core.compile import best_plan

    known = known or KnownData()
    plan = partial(best_plan, stats=known.recorded, explain=True, served_by=known.active)
    return _deployment(flow, program_of(flow, known.inputs), plan)


def _deployment(
    flow: FlowAsset, program: CompiledProgram, plan: Callable[[CompiledProgram], OptimizedProgram]
) -> Deployment:
    """The deployment of a program, whole or in the shards that the asset asks for; `plan` gives
    the plan of each part.
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
    """The comments of the program, as it was deployed, or as it is where it was not."""
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
    """The notes of a deployment on tables that started without a past."""
    return tuple(note for note in deployment.notes if STARTED_EMPTY in note)
