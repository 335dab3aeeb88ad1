"""What deploying the program of a flow as it is now would do; nothing is done by asking.

The program is optimized and compared with the one that serves: what becomes of every output and
state, what has to be computed for that, and from which rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from hydro_core.artifact.files import WrittenDeployment, name_of
from hydro_core.errors import DataError, Diagnostic
from hydro_core.lang.params import changed_params
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow
from hydro_core.types.item import declared_columns

from ..flows.landed_past import AsArrived, as_arrived, lost_past, says_arrived
from ..project.programs import (
    STARTED_EMPTY,
    deployment_for,
    known_data,
    said_instead,
    started_empty,
)

if TYPE_CHECKING:
    from hydro_core.artifact.deployment import Deployment
    from hydro_core.plan.planner import Bootstrap, WantedTables
    from hydro_core.program_change.difference import Difference
    from hydro_core.spark.store.ledger.commit import Commit

    from ..quality.changed import Changed
    from ..runner.runner import TickRunner


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """How a program is to be deployed, beyond the program itself."""

    first: TickWindow | None = None
    """The tick from which on changed outputs are restated, if not all of them."""
    forward_only: bool = False
    """Changed outputs keep the past that they have."""
    from_now: bool = False
    """What has no landed past starts empty."""


def seams(flow: FlowAsset, found: Difference, last: int, asked: DeployOptions) -> Mapping[str, int]:
    """The first restated tick of each output that keeps some of its past; none where all is.

    Args:
        found: what becomes of them.
        asked: whether they keep some of it.

    Raises:
        DataError: there is no such tick, or an output cannot be of both programs (code `state`).
    """
    if asked.first is None and not asked.forward_only:
        return {}
    first = last + 1 if asked.first is None else asked.first.tick
    if asked.first is not None and first > last:
        raise DataError.of(
            "state",
            f"tick {asked.first.key} of `{flow.name}` is not committed, so nothing is restated "
            "from there",
            help=f"name a committed tick, up to {flow.ticks.calendar.window(last).key}, or give "
            "`--forward-only`",
        )
    changed = [n for n, o in found.outputs.items() if o.change in ("columns", "changed")]
    problems = [p for name in changed for p in _problems(found, name, first > last)]
    if problems:
        raise DataError(*problems)
    return dict.fromkeys(changed, first)


def _problems(found: Difference, output: str, forward_only: bool) -> Iterator[Diagnostic]:
    from hydro_core.spark.pipeline.tables import output_tables

    made = output_tables(found.after.plan)[output]
    served = next(t for t in found.tables if t.role == "output" and t.of == output)
    kinds = (served.kind, made.kind.name)
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
        yield Diagnostic(
            "state",
            f"`{output}` cannot keep a part of its past: it is stored as {_WORDS[kinds[0]]} now, "
            f"and would be as {_WORDS[kinds[1]]}",
            help=cure,
        )
    if served.ordered != made.ordered:
        yield Diagnostic(
            "state", f"`{output}` cannot keep a part of its past: its order changes", help=cure
        )
    before, after = (
        declared_columns(item) or {"item": item}
        for item in (d.program.typed.outputs[output].item for d in (found.before, found.after))
    )
    for column in before:
        if column in after and before[column] != after[column]:
            yield Diagnostic(
                "state",
                f"`{output}` cannot keep a part of its past: its column `{column}` is "
                f"{before[column]} now, and would be {after[column]}",
                help=cure,
            )


_WORDS = {
    "E": "the rows of each tick",
    "H": "what each tick adds",
    "G": "what each tick changes",
}


@dataclass(frozen=True, slots=True)
class Work:
    """Tables that are to be computed from the past, and what computes them."""

    wanted: WantedTables
    made_by: Bootstrap
    since: Mapping[str, int]
    """Of outputs that keep some of their past, the first tick that is another."""


@dataclass(frozen=True)
class Change:
    """What deploying a program means for a flow that has committed ticks."""

    flow: FlowAsset
    commit: Commit
    """The last commit when this was found."""
    serving: WrittenDeployment
    target: WrittenDeployment
    """What would be deployed; it is not written yet."""
    difference: Difference
    since: Mapping[str, int]
    """Of outputs that keep some of their past, the first tick that is restated."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """The inputs whose landed past is not there, and why that is known."""
    arrived: Mapping[str, AsArrived] = field(default_factory=dict)
    """Of the inputs whose landed past is read, the rows that came late."""
    compared: Mapping[str, Changed] = field(default_factory=dict)
    """Of each output how the last ticks differ, if that was asked for."""
    read_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of outputs that go, the flows of the project that read them."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be known of it beside what becomes of the tables, and of its late rows."""
        readers = ((f"`{flow}`", name) for name, flows in self.read_by.items() for flow in flows)
        waits = (
            f"{flow} reads `{name}`, which goes: the ticks of {flow} fail until it reads another"
            " input"
            for flow, name in readers
        )
        before, after = (one.deployment.params for one in (self.serving, self.target))
        params = changed_params(before, after)
        notes = self.target.deployment.notes
        return (*waits, *params, *notes, *says_arrived(self.flow, self.arrived))

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
        """The outputs without a past: it would come of inputs that are lost."""
        if not self.lost:
            return frozenset()
        return frozenset(
            name
            for name in self.difference.wanted.outputs
            if set(self._alone(name).inputs) & set(self.lost)
        )

    @cached_property
    def work(self) -> Work:
        """What is computed for it."""
        from hydro_core.plan.planner import WantedTables

        wanted = self.difference.wanted
        return self.making(
            WantedTables(wanted.slots - self.empty, wanted.outputs - self.begun), self.since
        )

    def making(self, wanted: WantedTables, since: Mapping[str, int]) -> Work:
        """What computes tables of the program, from what is stored and landed."""
        from hydro_core.plan.planner import bootstrap

        plan = self.target.deployment.plan
        return Work(wanted, bootstrap(plan, wanted, self.difference.leaves), since)

    def restated(self, output: str) -> tuple[TickWindow, TickWindow] | None:
        """The ticks of an output that are computed anew; None: its past stays, or there is none."""
        first = self.since.get(output, 0)
        if output not in self.work.wanted.outputs or first > self.commit.last:
            return None
        return self.flow.ticks.calendar.window(first), self.last

    @property
    def is_nothing(self) -> bool:
        """Whether no table would change."""
        return self.difference.is_nothing

    @property
    def resumes_alike(self) -> bool:
        """Whether ticks would run as they do, in as many shards, and no table would change."""
        before, after = self.serving.deployment, self.target.deployment
        return self.is_nothing and before.sharding == after.sharding

    def _alone(self, output: str) -> Bootstrap:
        from hydro_core.plan.planner import WantedTables

        return self.making(WantedTables(outputs=frozenset({output})), {}).made_by


def change_of(flow: FlowAsset, runner: TickRunner, asked: DeployOptions) -> Change | None:
    """What deploying the program as it is now would do; None where it is the one that serves.

    Some deployment serves already.

    Raises:
        HydroError: it cannot be deployed, and why.
    """
    serving, commit = runner.deployments.serving(flow), runner.deployments.commit(flow)
    if serving is None or commit is None:
        raise ValueError(f"{flow.name} has no deployment that could be changed")
    if said_instead(flow, serving.deployment) is None:
        return None
    from hydro_core.spark.store.ledger.seams import seams as seams_of

    ledger = runner.deployments.ledger(flow)
    made = deployment_for(flow, known_data(ledger.directory, serving.deployment))
    mixed = seams_of(ledger.commits())
    made = _with_what_began(serving.deployment, made)
    found, made = _compared(serving.deployment, made, commit, mixed)
    made = _with_versions(made, found)
    target = runner.deployments.next(flow, made)
    change = Change(flow, commit, serving, target, found, seams(flow, found, commit.last, asked))
    lost = lost_past(flow, runner, made.plan, change.work.made_by.inputs)
    if not lost:
        return replace(change, arrived=_arrived(change, runner))
    if not asked.from_now:
        cure = "land it again, or give `--from-now`: what would come of it starts empty then"
        problems = [
            Diagnostic(
                "state", f"`{flow.name}` cannot be deployed from its landed past: {why}", help=cure
            )
            for why in lost.values()
        ]
        raise DataError(*problems)
    change = _from_now(replace(change, lost=lost))
    return replace(change, arrived=_arrived(change, runner))


def _arrived(change: Change, runner: TickRunner) -> Mapping[str, AsArrived]:
    flow, ledger = change.flow, runner.pipeline(change.flow).ledger
    names, plan = change.work.made_by.inputs, change.target.deployment.plan
    reads = [read for read in ledger.last_reads() if read.name in names]
    landings = runner.inputs(flow, plan, [read.name for read in reads]).landings
    return as_arrived(landings.as_read(reads, runner.next_tick(flow)), ledger.commits())


def read_by(change: Change, flows: Iterable[FlowAsset]) -> Mapping[str, tuple[str, ...]]:
    """Of the outputs that go, the flows among these that read them."""
    wanted = [(r, other.name) for other in flows for r in dict.fromkeys(other.reads.values())]
    found = {
        name: tuple(
            other for read, other in wanted if (read.flow, read.output) == (change.flow.name, name)
        )
        for name, output in change.difference.outputs.items()
        if output.change == "gone"
    }
    return {name: others for name, others in found.items() if others}


def _with_what_began(before: Deployment, after: Deployment) -> Deployment:
    """What has begun without a past has none by another program either."""
    names = [*(slot.id for slot in after.plan.slots), *after.plan.graph.sinks]
    stands = [
        n for n in started_empty(before) if any(f"`{name}`{STARTED_EMPTY}" in n for name in names)
    ]
    return replace(after, notes=(*stands, *after.notes))


def _compared(
    before: Deployment, after: Deployment, commit: Commit, mixed: Collection[str]
) -> tuple[Difference, Deployment]:
    """What becomes of the tables, with all that is said to be the same tried on random ticks."""
    from hydro_core.program_change.difference import difference
    from hydro_core.program_change.kept_plan import (
        by_the_plan_that_serves,
        in_the_order_of,
        serves_on,
    )
    from hydro_core.validation.claims import try_out

    found = difference(before, after, commit.tables, mixed)
    kept = after
    if serves_on(found):
        kept = by_the_plan_that_serves(found)
    elif found.turned:
        kept = in_the_order_of(before, after, found.turned)
    if kept is not after:
        after, found = kept, difference(before, kept, commit.tables, mixed)
    trial = try_out(found)
    wrong = [*trial.outputs.values(), *trial.states.values()]
    if not wrong:
        return found, after
    notes = tuple(f"proved the same, and seen not to be: {mismatch}" for mismatch in wrong)
    after = replace(after, notes=(*notes, *after.notes))
    return replace(trial.corrected(found), after=after), after


def _with_versions(made: Deployment, found: Difference) -> Deployment:
    """The deployment, in which tables that stay are of the version that they were."""
    was = {(t.role, t.name): t.version for t in found.before.tables}
    slots = {name: s.was or name for name, s in found.states.items() if s.change == "kept"}
    stays = {("state", name): was.get(("state", old), "") for name, old in slots.items()}
    same = {name for name, output in found.outputs.items() if output.change == "same"}
    stays |= {("output", name): was.get(("output", name), "") for name in same}
    tables = [replace(t, version=stays.get((t.role, t.name)) or t.version) for t in made.tables]
    return replace(made, tables=tuple(tables))


def _from_now(change: Change) -> Change:
    """What starts empty is written down in what is deployed."""
    key = change.flow.ticks.calendar.window(change.commit.last + 1).key
    outputs = change.difference.outputs
    stays = {name for name in change.begun if outputs[name].change != "new"}
    if stays:
        named = ", ".join(f"`{name}`" for name in sorted(stays))
        raise DataError.of(
            "state",
            f"{named} of `{change.flow.name}` would change without a past to compute it from: "
            f"{'; '.join(change.lost.values())}",
            help="land it again; or give the changed output another name, to begin from now on",
        )
    started = [
        *(f"the state `{name}`" for name in sorted(change.empty)),
        *(f"the output `{name}`" for name in sorted(change.begun)),
    ]
    why = "; ".join(change.lost.values())
    notes = tuple(f"{name}{STARTED_EMPTY}{key}: {why}" for name in started)
    made = change.target.deployment
    made = replace(made, notes=(*notes, *made.notes))
    return replace(change, target=WrittenDeployment(change.target.number, name_of(made), made))
