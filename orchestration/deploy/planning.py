"""Plans to deploy the program of a flow: what it changes, and how that is computed.

The program is optimized and compared with the active deployment. Nothing is done by planning.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from hydro_core.artifact.deployment import WrittenDeployment, deployment_name
from hydro_core.errors import DataError, Diagnostic
from hydro_core.lang.params import changed_params
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow
from hydro_core.types.item import declared_columns

from ..flows.landed_past import AsArrived, as_arrived, lost_past, says_arrived
from .deployments import (
    STARTED_EMPTY,
    deployment_for,
    known_data,
    started_empty,
    undeployed_meaning,
)

if TYPE_CHECKING:
    from hydro_core.artifact.deployment import Deployment
    from hydro_core.plan.planner import Bootstrap, WantedTables
    from hydro_core.program_change.difference import Difference
    from hydro_core.spark.store.ledger.records import Commit

    from ..quality.changed import ChangedRows
    from ..runner.runner import TickRunner


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """Options of a deployment, beyond the program itself."""

    first: TickWindow | None = None
    """The tick from which on changed outputs are restated, if not all of them."""
    forward_only: bool = False
    """Changed outputs keep their past."""
    from_now: bool = False
    """Tables whose landed past is lost start empty."""


@dataclass(frozen=True, slots=True)
class Work:
    """Tables that are to be computed from the past, and the plan that computes them."""

    wanted: WantedTables
    made_by: Bootstrap
    since: Mapping[str, int]
    """Of outputs that keep some of their past, the first tick that is restated."""


@dataclass(frozen=True)
class DeployPlan:
    """The consequences of deploying a program, for a flow that has committed ticks."""

    flow: FlowAsset
    commit: Commit
    """The last commit when the plan was made."""
    active: WrittenDeployment
    target: WrittenDeployment
    """The deployment that would become active; it is not written yet."""
    difference: Difference
    since: Mapping[str, int]
    """Of outputs that keep some of their past, the first tick that is restated."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """The inputs whose landed past is lost, and how that is known."""
    arrived: Mapping[str, AsArrived] = field(default_factory=dict)
    """Of the inputs whose landed past is read, the rows that came late."""
    compared: Mapping[str, ChangedRows] = field(default_factory=dict)
    """Of each output how the last ticks differ, if that was asked for."""
    read_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of outputs that the program drops, the flows of the project that read them."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of the target, and on readers of dropped outputs, parameters and late rows."""
        waits = (
            f"`{flow}` reads `{name}`, which goes: the ticks of `{flow}` fail until it reads"
            " another input"
            for name, flows in self.read_by.items()
            for flow in flows
        )
        params = changed_params(self.active.deployment.params, self.target.deployment.params)
        arrived = says_arrived(self.flow, self.arrived)
        return (*waits, *params, *self.target.deployment.notes, *arrived)

    @property
    def last(self) -> TickWindow:
        return self.flow.ticks.calendar.window(self.commit.last)

    @cached_property
    def empty(self) -> frozenset[str]:
        """The states that start empty."""
        states = self.difference.states.items()
        return frozenset(n for n, s in states if set(s.inputs) & set(self.lost))

    @cached_property
    def begun(self) -> frozenset[str]:
        """The outputs without a past: it would be computed from inputs that are lost."""
        from hydro_core.plan.planner import WantedTables

        def inputs(name: str) -> set[str]:
            return {*self.computing(WantedTables(outputs=frozenset({name})), {}).made_by.inputs}

        wanted = self.difference.wanted.outputs if self.lost else ()
        return frozenset(name for name in wanted if inputs(name) & set(self.lost))

    @cached_property
    def work(self) -> Work:
        """The tables that are computed for it."""
        from hydro_core.plan.planner import WantedTables

        wanted = self.difference.wanted
        tables = WantedTables(wanted.slots - self.empty, wanted.outputs - self.begun)
        return self.computing(tables, self.since)

    def computing(self, wanted: WantedTables, since: Mapping[str, int]) -> Work:
        """The computation of tables of the target, from stored tables and the landed past."""
        from hydro_core.plan.planner import bootstrap

        plan = self.target.deployment.plan
        return Work(wanted, bootstrap(plan, wanted, self.difference.leaves), since)

    def restated(self, output: str) -> tuple[TickWindow, TickWindow] | None:
        """The first and the last tick of an output that are recomputed; None: none is."""
        first = self.since.get(output, 0)
        if output not in self.work.wanted.outputs or first > self.commit.last:
            return None
        return self.flow.ticks.calendar.window(first), self.last

    @property
    def changes_no_table(self) -> bool:
        return self.difference.is_nothing

    @property
    def changes_nothing(self) -> bool:
        """Whether ticks would run as they do, in as many shards, and no table would change."""
        before, after = self.active.deployment, self.target.deployment
        return self.changes_no_table and before.sharding == after.sharding


def plan_deployment(
    flow: FlowAsset, runner: TickRunner, options: DeployOptions
) -> DeployPlan | None:
    """The plan to deploy the program as it is now; None where the active one says the same.

    Raises:
        HydroError: it cannot be deployed, and why.
    """
    deployments = runner.deployments
    active, commit = deployments.active(flow), deployments.commit(flow)
    if active is None or commit is None:
        raise ValueError(f"{flow.name} has no deployment that could be changed")
    before = active.deployment
    if undeployed_meaning(flow, before) is None:
        return None
    from hydro_core.spark.store.ledger.records import seams as seams_of

    ledger = deployments.ledger(flow)
    after = deployment_for(flow, known_data(ledger.directory, before))
    after = _with_started_empty(before, after)
    difference, after = _compared(before, after, commit, seams_of(ledger.commits()))
    after = _with_versions(after, difference)
    since = first_restated(flow, difference, commit.last, options)
    plan = DeployPlan(flow, commit, active, deployments.next(flow, after), difference, since)
    lost = lost_past(flow, runner, after.plan, plan.work.made_by.inputs)
    if lost and not options.from_now:
        cure = "land it again, or give `--from-now`: what would come of it starts empty then"
        what = f"`{flow.name}` cannot be deployed from its landed past: "
        raise DataError(*(Diagnostic("state", what + why, help=cure) for why in lost.values()))
    if lost:
        plan = _from_now(replace(plan, lost=lost))
    return replace(plan, arrived=_arrived(plan, runner))


def _arrived(plan: DeployPlan, runner: TickRunner) -> Mapping[str, AsArrived]:
    flow, ledger = plan.flow, runner.pipeline(plan.flow).ledger
    names = plan.work.made_by.inputs
    reads = [read for read in ledger.last_reads() if read.name in names]
    inputs = runner.inputs(flow, plan.target.deployment.plan, [read.name for read in reads])
    seen = inputs.landings.as_read(reads, runner.next_tick(flow))
    return as_arrived(seen, ledger.commits())


def readers_of_dropped(
    plan: DeployPlan, flows: Iterable[FlowAsset]
) -> Mapping[str, tuple[str, ...]]:
    """Of the outputs that the program drops, the flows among these that read them."""
    reads = {(r.flow, r.output, other.name) for other in flows for r in other.reads.values()}
    dropped = [n for n, output in plan.difference.outputs.items() if output.change == "gone"]
    readers = {
        name: tuple(sorted(n for flow, of, n in reads if (flow, of) == (plan.flow.name, name)))
        for name in dropped
    }
    return {name: others for name, others in readers.items() if others}


def first_restated(
    flow: FlowAsset, difference: Difference, last: int, options: DeployOptions
) -> Mapping[str, int]:
    """The first restated tick of each output that keeps some of its past; none where all is.

    Raises:
        DataError: there is no such tick, or an output cannot be of both programs (code `state`).
    """
    if options.first is None and not options.forward_only:
        return {}
    first = last + 1 if options.first is None else options.first.tick
    if options.first is not None and first > last:
        raise DataError.of(
            "state",
            f"tick {options.first.key} of `{flow.name}` is not committed, so nothing is restated "
            "from there",
            help=f"name a committed tick, up to {flow.ticks.calendar.window(last).key}, or give "
            "`--forward-only`",
        )
    changed = [n for n, o in difference.outputs.items() if o.change in ("columns", "changed")]
    problems = [p for name in changed for p in _obstacles(difference, name, first > last)]
    if problems:
        raise DataError(*problems)
    return dict.fromkeys(changed, first)


_ROWS_OF = {
    "E": "the rows of each tick",
    "H": "what each tick adds",
    "G": "what each tick changes",
}
"""The rows of a table, by its kind."""


def _obstacles(difference: Difference, output: str, forward_only: bool) -> Iterator[Diagnostic]:
    """The reasons why an output cannot keep a part of its past."""
    from hydro_core.spark.pipeline.tables import output_tables

    new = output_tables(difference.after.plan)[output]
    old = next(t for t in difference.tables if t.role == "output" and t.of == output)
    kinds = (old.kind, new.kind.name)
    what = f"`{output}` cannot keep a part of its past: "
    cure = "deploy it without `--from` and `--forward-only`: all of its past is restated then"
    if kinds == ("G", "G") and forward_only:
        yield Diagnostic(
            "state",
            f"`{output}` is stored as what each tick changes of it, and that cannot go on from "
            "what another program has left",
            help="give `--from` with the last committed tick, at which it changes to what the new "
            "program has",
        )
    elif kinds not in (("E", "E"), ("G", "G")):
        stored = f"it is stored as {_ROWS_OF[kinds[0]]} now, and would be as {_ROWS_OF[kinds[1]]}"
        yield Diagnostic("state", what + stored, help=cure)
    if old.ordered != new.ordered:
        yield Diagnostic("state", what + "its order changes", help=cure)
    before, after = (
        declared_columns(item) or {"item": item}
        for item in (
            d.program.typed.outputs[output].item for d in (difference.before, difference.after)
        )
    )
    for column in before:
        if column in after and before[column] != after[column]:
            types = f"its column `{column}` is {before[column]} now, and would be {after[column]}"
            yield Diagnostic("state", what + types, help=cure)


def _with_started_empty(before: Deployment, after: Deployment) -> Deployment:
    """The deployment with the notes on tables that started empty, and still lack their past."""
    names = [*(slot.id for slot in after.plan.slots), *after.plan.graph.sinks]
    notes = [
        n for n in started_empty(before) if any(f"`{name}`{STARTED_EMPTY}" in n for name in names)
    ]
    return replace(after, notes=(*notes, *after.notes))


def _compared(
    before: Deployment, after: Deployment, commit: Commit, mixed: Collection[str]
) -> tuple[Difference, Deployment]:
    """The difference, whose proofs are tried on random ticks, and the deployment that fits it."""
    from hydro_core.program_change.difference import (
        difference,
        goes_on_by_active_plan,
        with_active_plan,
        with_column_order,
    )
    from hydro_core.validation.claims import try_out

    found = difference(before, after, commit.tables, mixed)
    fitting = after
    if goes_on_by_active_plan(found):
        fitting = with_active_plan(found)
    elif found.turned:
        fitting = with_column_order(before, after, found.turned)
    if fitting is not after:
        after, found = fitting, difference(before, fitting, commit.tables, mixed)
    trial = try_out(found)
    wrong = [*trial.outputs.values(), *trial.states.values()]
    if not wrong:
        return found, after
    notes = tuple(f"proved the same, and seen not to be: {mismatch}" for mismatch in wrong)
    after = replace(after, notes=(*notes, *after.notes))
    return replace(trial.corrected(found), after=after), after


def _with_versions(after: Deployment, found: Difference) -> Deployment:
    """The deployment, in which tables that stay are of the version that they were."""
    was = {(t.role, t.name): t.version for t in found.before.tables}
    slots = {name: s.was or name for name, s in found.states.items() if s.change == "kept"}
    stays = {("state", name): was.get(("state", old), "") for name, old in slots.items()}
    same = {name for name, output in found.outputs.items() if output.change == "same"}
    stays |= {("output", name): was.get(("output", name), "") for name in same}
    tables = [replace(t, version=stays.get((t.role, t.name)) or t.version) for t in after.tables]
    return replace(after, tables=tuple(tables))


def _from_now(plan: DeployPlan) -> DeployPlan:
    """The plan, whose target has notes on the tables that start empty."""
    key = plan.flow.ticks.calendar.window(plan.commit.last + 1).key
    outputs, why = plan.difference.outputs, "; ".join(plan.lost.values())
    stays = [f"`{name}`" for name in sorted(plan.begun) if outputs[name].change != "new"]
    if stays:
        raise DataError.of(
            "state",
            f"{', '.join(stays)} of `{plan.flow.name}` would change without a past to compute it "
            f"from: {why}",
            help="land it again; or give the changed output another name, to begin from now on",
        )
    started = [
        *(f"the state `{name}`" for name in sorted(plan.empty)),
        *(f"the output `{name}`" for name in sorted(plan.begun)),
    ]
    after = plan.target.deployment
    notes = tuple(f"{name}{STARTED_EMPTY}{key}: {why}" for name in started)
    after = replace(after, notes=(*notes, *after.notes))
    target = WrittenDeployment(plan.target.number, deployment_name(after), after)
    return replace(plan, target=target)
