"""A changed program takes over from the one that serves, or an earlier one does again.

What has to be computed for that is computed beside the tables that serve, in ranges that are judged
like any other. One row of the ledger switches everything; what ends the process before it leaves
all as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hydro_core.artifact.files import WrittenDeployment, newest
from hydro_core.errors import DataError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow

from ..flows.landed_past import as_arrived, refuse_gone
from ..project.serving import fitted
from ..quality.changed import Changed, changed_as_of, sum_of
from ..runner.ranges import OnComputed, Ranges, ReadBatches, faults_of, kept_for_checks, run_staged
from .changes import Change, Work

if TYPE_CHECKING:
    from hydro_core.spark.inputs.batches import Batch
    from hydro_core.spark.pipeline.pipeline import Pipeline
    from hydro_core.spark.pipeline.rework import Rework
    from hydro_core.spark.store.ledger.commit import Commit

    from ..runner.runner import TickRunner


@dataclass(frozen=True, slots=True)
class Predecessor:
    """The deployment before the one that serves, and the ticks that have run since."""

    serving: WrittenDeployment
    target: WrittenDeployment
    commit: Commit
    """The last one that the earlier deployment has made."""
    first: int
    """The first tick that is computed again: after those, or the first that was read anew since."""
    last: int


def deploy(change: Change, runner: TickRunner, computed: OnComputed) -> Commit:
    """Makes what `change_of` has found the deployment that serves.

    Raises:
        DataError: a tick of the past fails, or something was committed since the change was found
            (code `state`); everything is as it was.
    """
    from hydro_core.spark.pipeline.start_rework import deployment

    serving, work = runner.pipeline(change.flow), change.work
    target = _target(change, serving, runner)
    with (
        faults_of(serving),
        deployment(serving, target, work.made_by, work.wanted, work.since) as rework,
    ):
        _refuse_gone_on(change, serving)
        made = _compute(rework, _ranges(change, work, runner, rework), computed, runner)
        written = runner.deployments.written(change.flow, change.target.deployment)
        rework.target.step(f"deployment {written.number}")
        return rework.replace(made)


def compare(
    change: Change, runner: TickRunner, ticks: int, computed: OnComputed
) -> Mapping[str, Changed]:
    """How the outputs of the last so many ticks would differ, by running them; nothing stays.

    It is about the outputs that both programs have and that have a past by the new one, in the
    columns that both have. Those that are proved the same keep their rows, so they are not run. The
    others run from the first tick on, since what they are at the last ones may be made of all.
    Ticks may run meanwhile: the past is read as it was when the change was found.
    """
    from hydro_core.plan.planner import WantedTables
    from hydro_core.spark.pipeline.comparison import comparison

    outputs = change.difference.outputs
    both = frozenset(n for n, o in outputs.items() if o.change in ("same", "changed", "columns"))
    restated = both & change.work.wanted.outputs
    found = dict.fromkeys(both - restated - change.begun, Changed(0, 0))
    if not restated:
        return found
    work = change.making(WantedTables(outputs=restated), {})
    last, serving = change.commit.last, runner.pipeline(change.flow)
    target = _target(change, serving, runner)
    serving.ledger.refresh()
    _refuse_gone_on(change, serving)
    with (
        faults_of(serving),
        comparison(serving, target, work.made_by, work.wanted, change.commit) as rework,
    ):
        _compute(rework, _ranges(change, work, runner, rework), computed, runner)
        pipelines = rework.serving, rework.staging
        for name in restated:
            before, after = (dict(one.output_tables[name].items) for one in pipelines)
            columns = [column for column, item in before.items() if after.get(column) == item]
            found[name] = sum_of(
                changed_as_of(pipelines, name, tick, columns)
                for tick in range(max(0, last + 1 - ticks), last + 1)
            )
        return found


def before(flow: FlowAsset, runner: TickRunner) -> Predecessor:
    """What `rollback` would go back to.

    Raises:
        DataError: there is none (code `state`), or it reads an input of which the asset does not
            say where it lands (`config`).
    """
    serving = runner.deployments.serving(flow)
    if serving is None:
        raise _no_way_back(
            f"no deployment of `{flow.name}` serves yet",
            f"its first tick deploys its program: `hydrotick backfill {flow.name}`",
        )
    from hydro_core.spark.pipeline.start_rework import first_undone

    from ..project.serving import fitted

    *earlier, _ = runner.pipeline(flow).ledger.programs()
    found = [
        (written, commit)
        for commit in reversed(earlier)
        if (written := newest(runner.directory(flow), commit.plan))
    ]
    if not found:
        raise _no_way_back(
            f"there is no deployment of `{flow.name}` before number {serving.number}, which serves",
            "deployments are kept for a while only; to go back further, restore the program and "
            f"`hydrotick deploy {flow.name}`",
        )
    target, commit = found[0]
    # What it reads has to be there for the ticks to come, though none may be computed now.
    fitted(flow, target.deployment.plan, "before")
    last = runner.next_tick(flow) - 1
    pipeline = _pipeline_of(runner, flow, target, commit)
    return Predecessor(serving, target, commit, first_undone(runner.pipeline(flow), pipeline), last)


def _no_way_back(message: str, cure: str) -> DataError:
    return DataError.of("state", message, help=cure)


def roll_back(flow: FlowAsset, runner: TickRunner, to: Predecessor, computed: OnComputed) -> Commit:
    """Makes the deployment before serve again, and computes the ticks since then by its program.

    Raises:
        DataError: its tables are not there any more, or a tick fails (code `state`).
    """
    from hydro_core.spark.pipeline.start_rework import rollback

    serving, plan = runner.pipeline(flow), to.target.deployment.plan
    target = _pipeline_of(runner, flow, to.target, to.commit)
    target.step = serving.step
    with faults_of(serving), rollback(serving, target) as rework:
        if rework.is_complete:
            return rework.replace()
        read = _as_read(runner, flow, rework, plan.graph.sources)
        ranges = Ranges(fitted(flow, plan), rework.staging, read, lambda _: None)
        return rework.replace(_compute(rework, ranges, computed, runner))


def _pipeline_of(
    runner: TickRunner, flow: FlowAsset, target: WrittenDeployment, commit: Commit
) -> Pipeline:
    """The pipeline of an earlier deployment, over the tables that a commit of its own names."""
    from hydro_core.spark.pipeline.deployed import pipeline_of, places_in

    places = places_in(commit, target.name)
    plan, where = target.deployment.plan, runner.directory(flow)
    return pipeline_of(where, plan, target.name, runner.settings_for(flow), places)


def _target(change: Change, serving: Pipeline, runner: TickRunner) -> Pipeline:
    """The pipeline of the program that would take over."""
    from hydro_core.spark.pipeline.deployed import pipeline_of

    target, states = change.target, change.difference.states
    kept = {name: s.table for name, s in states.items() if s.change == "kept" and s.table}
    plan, name = target.deployment.plan, target.name
    pipeline = pipeline_of(serving.directory, plan, name, runner.settings_for(change.flow), kept)
    pipeline.step = serving.step
    return pipeline


def _refuse_gone_on(change: Change, serving: Pipeline) -> None:
    now = serving.ledger.last
    if now is None or now.sequence != change.commit.sequence:
        raise DataError.of(
            "state",
            f"`{change.flow.name}` has gone on since this was planned",
            help="look at it again: `hydrotick plan` says what it would do now",
        )


def _ranges(change: Change, work: Work, runner: TickRunner, rework: Rework) -> Ranges:
    """What runs the past beside, and judges it."""
    flow, by = change.flow, work.made_by
    own = fitted(flow, change.target.deployment.plan)
    given = {output: own.expect[output] for output in own.expect if output in by.plan.graph.sinks}
    read = _as_read(runner, flow, rework, by.inputs)

    def with_stored(windows: Sequence[TickWindow]) -> Mapping[str, Batch]:
        from hydro_core.spark.inputs.batches import stored_batches

        serving, ticks = rework.serving, (windows[0].tick, windows[-1].tick)
        return {
            **read(windows),
            **stored_batches(serving.store, by.tables, ticks, serving.spark),
        }

    return Ranges(replace(own, expect=given), rework.staging, with_stored, lambda _: None)


def _as_read(
    runner: TickRunner, flow: FlowAsset, rework: Rework, names: Collection[str]
) -> ReadBatches:
    """Reads what has landed as the ticks that are committed have read it, each row with the tick
    with which it arrived.

    What has landed since comes with the ticks to come. An input that none has read is read as it is
    found first.
    """
    kept = rework.kept
    if kept is None:
        raise AssertionError("a program that takes over reads what had been read")
    inputs = runner.inputs(flow, rework.target.plan, names)
    seen = inputs.landings.as_read([*kept.reads.values()], rework.last + 1, kept.dormant)
    arrived = as_arrived(seen)
    kept.unreported.update(name for name, one in arrived.items() if one.unreported)
    refuse_gone(flow, seen, kept.reads, rework.first)

    def read(windows: Sequence[TickWindow]) -> Mapping[str, Batch]:
        return inputs.read(windows[0].tick, windows[-1].tick, seen)

    return read


def _compute(
    rework: Rework, ranges: Ranges, computed: OnComputed, runner: TickRunner
) -> Mapping[str, Any] | None:
    """Runs the ticks beside, and gives what the ledger keeps for the checks.

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
            f"that would take over: {report.problem}",
            help=f"{report.cure or 'mend its cause'}; everything is as it was",
        )
    return kept_for_checks(rework)
