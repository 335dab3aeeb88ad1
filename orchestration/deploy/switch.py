"""Switches to another deployment: a changed program, or the deployment before (`rollback`).

Tables that have to be computed are staged, in ranges that are judged like any other. One row of the
ledger makes the other deployment active with its tables; a process that ends before it leaves all
as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hydro_core.artifact.deployment import WrittenDeployment, newest_deployment
from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow

from ..flows.landed_past import as_arrived, refuse_gone
from ..quality.changed import ChangedRows, changed_as_of, sum_of
from ..runner.correction import (
    OnComputed,
    Ranges,
    ReadBatches,
    faults_of,
    kept_for_checks,
    run_staged,
)
from .deployments import fitted
from .planning import DeployPlan, Work

if TYPE_CHECKING:
    from hydro_core.spark.inputs.batches import Batch
    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.pipeline.rework import StagedPast
    from hydro_core.spark.store.ledger.records import Commit

    from ..runner.runner import TickRunner


def deploy(plan: DeployPlan, runner: TickRunner, computed: OnComputed) -> Commit:
    """Activates the target of a plan.

    Raises:
        DataError: a tick of the past fails, or something was committed since the plan was made
            (code `state`); everything is as it was.
    """
    from hydro_core.spark.pipeline.rework import deployment

    active, work = runner.pipeline(plan.flow), plan.work
    target = _target(plan, active, runner)
    with (
        faults_of(active),
        deployment(active, target, work.made_by, work.wanted, work.since) as rework,
    ):
        _refuse_outdated(plan, active)
        checks = _compute(rework, _ranges(plan, work, runner, rework), computed, runner)
        written = runner.deployments.write(plan.flow, plan.target.deployment)
        rework.target.step(f"deployment {written.number}")
        return rework.replace(checks)


def compare(
    plan: DeployPlan, runner: TickRunner, ticks: int, computed: OnComputed
) -> Mapping[str, ChangedRows]:
    """Differences of the outputs in the last ticks, by running them; nothing stays.

    It is about the outputs that both programs have and that have a past by the new one, in the
    columns that both have. Those that are proved the same keep their rows, so they are not run. The
    others run from the first tick on, since the last ones may depend on all ticks. Ticks may run
    meanwhile: the past is read as it was when the plan was made.
    """
    from hydro_core.plan.planner import WantedTables
    from hydro_core.spark.pipeline.rework import comparison

    outputs = plan.difference.outputs
    both = frozenset(n for n, o in outputs.items() if o.change in ("same", "changed", "columns"))
    restated = both & plan.work.wanted.outputs
    differing = dict.fromkeys(both - restated - plan.begun, ChangedRows(0, 0))
    if not restated:
        return differing
    work = plan.computing(WantedTables(outputs=restated), {})
    last, active = plan.commit.last, runner.pipeline(plan.flow)
    target = _target(plan, active, runner)
    active.ledger.refresh()
    _refuse_outdated(plan, active)
    with (
        faults_of(active),
        comparison(active, target, work.made_by, work.wanted, plan.commit) as rework,
    ):
        _compute(rework, _ranges(plan, work, runner, rework), computed, runner)
        pipelines = rework.serving, rework.staging
        for name in restated:
            before, after = (dict(one.output_tables[name].items) for one in pipelines)
            columns = [column for column, item in before.items() if after.get(column) == item]
            differing[name] = sum_of(
                changed_as_of(pipelines, name, tick, columns)
                for tick in range(max(0, last + 1 - ticks), last + 1)
            )
        return differing


@dataclass(frozen=True, slots=True)
class Predecessor:
    """The deployment before the active one, and the ticks that have run since."""

    active: WrittenDeployment
    target: WrittenDeployment
    commit: Commit
    """The last one by the earlier deployment."""
    first: int
    """The first tick to recompute: after those, or the first that was read anew since."""
    last: int


def predecessor(flow: FlowAsset, runner: TickRunner) -> Predecessor:
    """The deployment that `rollback` would activate.

    Raises:
        DataError: there is none (code `state`), or it reads an input of which the asset does not
            say where it lands (`config`).
    """
    active = runner.deployments.active(flow)
    if active is None:
        raise DataError.of(
            "state",
            f"no deployment of `{flow.name}` is active yet",
            help=f"its first tick deploys its program: `hydrotick backfill {flow.name}`",
        )
    from hydro_core.spark.pipeline.rework import first_undone

    *earlier, _ = runner.pipeline(flow).ledger.programs()
    written = ((newest_deployment(runner.directory(flow), c.plan), c) for c in reversed(earlier))
    target, commit = next(((of, c) for of, c in written if of is not None), (None, None))
    if target is None or commit is None:
        raise DataError.of(
            "state",
            f"there is no deployment of `{flow.name}` before number {active.number}, which is"
            " active",
            help="deployments are stored for a while only; to go back further, restore the program "
            f"and `hydrotick deploy {flow.name}`",
        )
    # Its inputs have to land for the ticks to come, though none may be recomputed now.
    fitted(flow, target.deployment.plan, "before")
    last = runner.next_tick(flow) - 1
    pipeline = _pipeline_of(runner, flow, target, commit)
    return Predecessor(active, target, commit, first_undone(runner.pipeline(flow), pipeline), last)


def roll_back(flow: FlowAsset, runner: TickRunner, to: Predecessor, computed: OnComputed) -> Commit:
    """Activates the deployment before, and recomputes the ticks since then by its program.

    Raises:
        DataError: its tables do not exist any more, or a tick fails (code `state`).
    """
    from hydro_core.spark.pipeline.rework import rollback

    active, plan = runner.pipeline(flow), to.target.deployment.plan
    target = _pipeline_of(runner, flow, to.target, to.commit)
    target.step = active.step
    with faults_of(active), rollback(active, target) as rework:
        if rework.is_complete:
            return rework.replace()
        read = _as_read(runner, flow, rework, plan.graph.sources)
        ranges = Ranges(fitted(flow, plan), rework.staging, read, lambda _: None)
        return rework.replace(_compute(rework, ranges, computed, runner))


def _pipeline_of(
    runner: TickRunner, flow: FlowAsset, target: WrittenDeployment, commit: Commit
) -> Pipeline:
    """The pipeline of an earlier deployment, over the tables that a commit of its own names."""
    from hydro_core.spark.pipeline.pipeline import pipeline_of, places_in

    places = places_in(commit, target.name)
    plan, where = target.deployment.plan, runner.directory(flow)
    return pipeline_of(where, plan, target.name, runner.settings_for(flow), places)


def _target(plan: DeployPlan, active: Pipeline, runner: TickRunner) -> Pipeline:
    """The pipeline of the program that would be activated."""
    from hydro_core.spark.pipeline.pipeline import pipeline_of

    states, made = plan.difference.states, plan.target.deployment.plan
    tables = {name: s.table for name, s in states.items() if s.change == "kept" and s.table}
    settings = runner.settings_for(plan.flow)
    pipeline = pipeline_of(active.directory, made, plan.target.name, settings, tables)
    pipeline.step = active.step
    return pipeline


def _refuse_outdated(plan: DeployPlan, active: Pipeline) -> None:
    now = active.ledger.last
    if now is None or now.sequence != plan.commit.sequence:
        raise DataError.of(
            "state",
            f"`{plan.flow.name}` has gone on since this was planned",
            help="look at it again: `hydrotick plan` says what it would do now",
        )


def _ranges(plan: DeployPlan, work: Work, runner: TickRunner, rework: StagedPast) -> Ranges:
    """The ranges of the past that are staged and judged."""
    flow, by = plan.flow, work.made_by
    own = fitted(flow, plan.target.deployment.plan)
    expect = {output: own.expect[output] for output in own.expect if output in by.plan.graph.sinks}
    read = _as_read(runner, flow, rework, by.inputs)

    def with_stored(windows: Sequence[TickWindow]) -> Mapping[str, Batch]:
        from hydro_core.spark.inputs.batches import stored_batches

        active, ticks = rework.serving, (windows[0].tick, windows[-1].tick)
        return {**read(windows), **stored_batches(active.store, by.tables, ticks, active.spark)}

    return Ranges(replace(own, expect=expect), rework.staging, with_stored, lambda _: None)


def _as_read(
    runner: TickRunner, flow: FlowAsset, rework: StagedPast, names: Collection[str]
) -> ReadBatches:
    """Reads the landings as committed ticks have read them, each row with its tick of arrival.

    Rows that have landed since come with the ticks to come. An input that no tick has read is read
    as it is now.
    """
    kept = rework.kept
    if kept is None:
        raise AssertionError("a program that is activated reads what had been read")
    inputs = runner.inputs(flow, rework.target.plan, names)
    seen = inputs.landings.as_read([*kept.reads.values()], rework.last + 1, kept.dormant)
    arrived = as_arrived(seen)
    kept.unreported.update(name for name, one in arrived.items() if one.unreported)
    refuse_gone(flow, seen, kept.reads, rework.first)

    def read(windows: Sequence[TickWindow]) -> Mapping[str, Batch]:
        return inputs.read(windows[0].tick, windows[-1].tick, seen)

    return read


def _compute(
    rework: StagedPast, ranges: Ranges, computed: OnComputed, runner: TickRunner
) -> Mapping[str, Any] | None:
    """Runs the staged ticks, and gives the facts that the ledger keeps for the checks.

    Raises:
        DataError: a tick is not committed.
    """
    if rework.is_complete:
        return None
    *_, report = run_staged(rework, ranges, runner.project.range_ticks, computed)
    if not report.committed:
        raise DataError.of(
            "runtime" if report.judged else "state",
            f"tick {report.window.key} of `{ranges.flow.name}` fails with the program "
            f"that would be activated: {report.problem}",
            help=f"{report.cure or 'mend its cause'}; everything is as it was",
        )
    return kept_for_checks(rework)
