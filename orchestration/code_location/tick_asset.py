"""Assets and checks that run and judge ticks: one multi-asset per flow, one run for a range.

Every tick is recorded when it is done, on all assets of the flow, with what it did. Dagster counts
as results for later steps only outputs that are yielded, one per asset and run; and of an output
it would record every partition of the run anew, with the same metadata. So ticks are recorded one
by one, and at the end the step only says that all of its outputs are there. These records carry
what Dagster's own would: code and data versions, by which it calls a partition out of date whose
code version is not that of its asset, or one of whose parents is newer.

A tick judges what it wrote before it commits, and logs what was found for its partition. The
checks can also be run by themselves, from the page of an asset: then they judge what is committed.
To Dagster they have no partitions, though what is logged of them names its tick. A launch plans
each check for each of its partitions otherwise, and those that a failed tick left unjudged are
shown as "execution failed", in place of what was found before.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import dagster as dg
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    INPUT_DATA_VERSION_TAG_PREFIX,
    INPUT_EVENT_POINTER_TAG_PREFIX,
    NULL_EVENT_POINTER,
)
from dagster._core.execution.plan.outputs import StepOutputData, StepOutputHandle

from hydro_core.artifact.deployment import WrittenDeployment
from hydro_core.errors import DataError, HydroError, InternalSparkError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow
from hydro_core.types.item import QUARANTINE

from ..instance.run_tags import (
    CORRECT,
    CORRECT_TAG,
    JUDGED_TAG,
    PARTITION,
    TICKS_TAG,
    committed_ticks_tag,
)
from ..openlineage import Parent
from ..project.shape import FlowShape, shape_of
from ..quality.suites import (
    CURE,
    ROWS,
    WARNS,
    Verdict,
    checks_of,
    landed_checks,
    landed_verdicts,
    quarantine_verdicts,
)
from ..runner.report import TickReport
from ..runner.runner import TickRequest, TickRunner
from ..worker.client import TicksOfRun
from .asset_specs import SHOWN, as_when_launched, asset_key, code_versions, tick_step
from .records import note_process, refuse_lost_pipeline, unrecorded


class RunEvaluations:
    """Evaluations of checks in one run of ticks: of every tick, and of the run as a whole."""

    def __init__(self, flow: FlowAsset, context: dg.AssetExecutionContext) -> None:
        self._flow = flow
        self._planned = context.job_def.has_node_named(_step(flow))
        self._last: dict[tuple[str, str], tuple[Verdict, TickWindow]] = {}

    def of_tick(self, report: TickReport) -> Iterator[dg.AssetCheckEvaluation]:
        for asset, verdict in self._found(report):
            self._last[asset, verdict.check] = verdict, report.window
            yield _evaluation(asset_key(self._flow, asset), verdict, report.window, of_tick=True)

    def of_run(self, before: TickReport | None) -> Iterator[dg.AssetCheckEvaluation]:
        """What was found last of each check, if the run is to tell: its own ticks', or where they
        were not judged what the tick `before` had.
        """
        if not self._planned:
            return
        if before is not None:
            for asset, verdict in self._found(before):
                self._last.setdefault((asset, verdict.check), (verdict, before.window))
        for (asset, _), (verdict, window) in self._last.items():
            yield _evaluation(asset_key(self._flow, asset), verdict, window)

    def _found(self, report: TickReport) -> Iterator[tuple[str, Verdict]]:
        yield from report.verdicts
        if report.was_read:
            yield from landed_verdicts(self._flow, report.empty, report.noticed)
        if report.committed:
            yield from quarantine_verdicts(self._flow, report.window.key, report.rows)


def flow_checks(
    flow: FlowAsset, shape: FlowShape, runner: TickRunner
) -> tuple[dg.AssetChecksDefinition, ...]:
    """The checks by themselves, as one step; none where nothing is declared.

    In a run of ticks the step finds that they have been judged, and lets go on what waits for them.
    """
    sampled = as_when_launched(f"{flow.name}/sampled", lambda: " ".join(runner.sampled(flow)))
    declared = checks_of(flow, shape, sampled.split())
    warns = {**landed_checks(flow), QUARANTINE: WARNS}
    specs = [
        dg.AssetCheckSpec(
            name,
            asset=asset_key(flow, asset),
            description=says,
            blocking=name not in warns.get(asset, ()),
        )
        for asset, checks in declared.items()
        for name, says in checks.items()
    ]
    if not specs:
        return ()
    assets = {asset_key(flow, asset): asset for asset in declared}

    @dg.multi_asset_check(name=_step(flow), specs=specs, can_subset=True)
    def judge_again(
        context: dg.AssetCheckExecutionContext,
    ) -> Iterator[dg.Output[None] | dg.AssetCheckEvaluation]:
        wanted = [spec for spec in specs if spec.key in context.selected_asset_check_keys]
        if not context.job_def.has_node_named(tick_step(flow)):
            window = _asked(flow, runner, context.run.tags.get(PARTITION))
            for key in dict.fromkeys(spec.asset_key for spec in wanted):
                for verdict in runner.judge_again(flow, window, assets[key]):
                    if any(spec.key == dg.AssetCheckKey(key, verdict.check) for spec in wanted):
                        yield _evaluation(key, verdict, window)
        for spec in wanted:
            yield dg.Output(None, spec.get_python_identifier())

    return (judge_again,)


def _asked(flow: FlowAsset, runner: TickRunner, key: str | None) -> TickWindow:
    """The committed tick that a run of checks judges: the one it names, else the last."""
    done = runner.next_tick(flow)
    calendar = flow.ticks.calendar
    window = calendar.window_of(key) if key else calendar.window(done - 1)
    if window.tick >= done or done == 0:
        what = f"{window.key} is not committed" if done else f"no tick of {flow.name} is committed"
        raise dg.Failure(
            f"{what}, so there is nothing to judge: materialize it first", allow_retries=False
        )
    return window


def _step(flow: FlowAsset) -> str:
    return f"{flow.name}__judge_again"


_SEVERITIES = {"error": dg.AssetCheckSeverity.ERROR, "warn": dg.AssetCheckSeverity.WARN}


def _evaluation(
    key: dg.AssetKey, verdict: Verdict, window: TickWindow, *, of_tick: bool = False
) -> dg.AssetCheckEvaluation:
    helps = {"what helps": CURE} if verdict.stops and ROWS in verdict.seen else {}
    return dg.AssetCheckEvaluation(
        asset_key=key,
        check_name=verdict.check,
        passed=verdict.passed,
        description=None if verdict.passed else f"broken: {verdict.says}",
        severity=_SEVERITIES[verdict.severity],
        blocking=verdict.severity == "error",
        partition=window.key if of_tick else None,
        metadata={"tick": window.key, **_as_metadata(verdict.seen), **helps},
    )


def _as_metadata(seen: Mapping[str, Any]) -> dict[str, Any]:
    """Observations of a check as metadata: the UI plots numbers over the ticks."""
    shown = dict(seen)
    for name, value in seen.items():
        if name == ROWS:
            shown[name] = dg.MetadataValue.table([dg.TableRecord(row) for row in value])
        elif not isinstance(value, int | float | str):
            shown[name] = dg.MetadataValue.json(value)
    return shown


class Versions:
    def __init__(self, flow: FlowAsset, written: WrittenDeployment) -> None:
        self.of, self._flow, self._code = written, flow, code_versions(written)
        shape = shape_of(written.deployment.plan)
        tables = ((f"state/{s.name}", s.parents) for s in shape.states)
        outputs = ((o.name, o.parents) for o in shape.outputs)
        self._parents: Mapping[str, Iterable[str]] = {**dict(tables), **dict(outputs)}

    def tags(self, asset: str, commit: int | None) -> dict[str, str]:
        """The tags of a tick on an asset of the flow, by the number of the commit that made it."""
        version = f"{self.of.name[:SHOWN]}.{commit}"
        found = {
            CODE_VERSION_TAG: self._code.get(asset, ""),
            DATA_VERSION_TAG: version,
        }
        for parent in self._parents.get(asset, ()):
            if parent.removeprefix("landing/") in self._flow.reads and "/" in parent:
                # Another flow says which version its outputs have.
                continue
            key = asset_key(self._flow, parent).to_user_string()
            # What has landed is nothing that Dagster has made, and has no versions there.
            landed = parent.startswith("landing/")
            of = DEFAULT_DATA_VERSION.value if landed else version
            found[f"{INPUT_DATA_VERSION_TAG_PREFIX}/{key}"] = of
            found[f"{INPUT_EVENT_POINTER_TAG_PREFIX}/{key}"] = NULL_EVENT_POINTER
        return found


def tick_asset(
    flow: FlowAsset, specs: Sequence[dg.AssetSpec], runner: TickRunner
) -> dg.AssetsDefinition:
    @dg.multi_asset(
        name=tick_step(flow),
        specs=specs,
        can_subset=True,
        pool=runner.project.pool or flow.name,
        backfill_policy=dg.BackfillPolicy.single_run(),
        description=flow.description or None,
    )
    def tick(context: dg.AssetExecutionContext) -> Iterator[Any]:
        note_process(context.run, context.instance)
        try:
            refuse_lost_pipeline(context.instance, flow, runner)
        except DataError as error:
            raise dg.Failure(str(error), allow_retries=False) from error
        calendar = flow.ticks.calendar
        asked = {calendar.window_of(key) for key in context.partition_keys}
        windows = set(asked)
        # What a killed process had committed, but not recorded, is recorded by whatever runs next.
        for first, last in unrecorded(flow, runner, context.instance):
            windows |= {calendar.window(number) for number in range(first.tick, last.tick + 1)}
        found, versions = RunEvaluations(flow, context), None
        parent = Parent(context.run.run_id, context.run.job_name)
        corrected = _is_correction(context.run)
        ticks = TicksOfRun(runner, flow, context.log.info)
        wanted = TickRequest(frozenset(asked), frozenset(windows), corrected, parent)
        for report in _tagged(context, _report_bugs(context, ticks.reports(wanted))):
            yield from found.of_tick(report)
            for warning in report.warnings(flow.name):
                context.log.warning(warning)
            if not report.committed:
                if report.judged:
                    run_id = context.run.run_id
                    context.instance.add_run_tags(run_id, {JUDGED_TAG: run_id})
                yield from _checks_of_last(found, flow, runner, context)
                raise dg.Failure(report.failure, metadata=report.metadata, allow_retries=False)
            if report.again:
                context.log.warning(report.again)
            yield from _arrivals(flow, report)
            serving = runner.deployments.prepare(flow)
            if versions is None or versions.of.name != serving.name:
                versions = Versions(flow, serving)
            known = {
                "deployment": dg.MetadataValue.int(serving.number),
                **_run_before(flow, context, report),
                **({"worker": ticks.worker} if ticks.worker else {}),
            }
            yield from _materializations(flow, versions, report, known)
            yield from _without_table(flow, context.selected_asset_keys, report)
        yield from found.of_run(None)
        yield from _outputs(context)

    return tick


def _report_bugs(
    context: dg.AssetExecutionContext, reports: Iterator[TickReport]
) -> Iterator[TickReport]:
    """The reports; a bug that comes again whenever its tick is tried is told as such by the run,
    and what would end the process in silence is an error.
    """
    try:
        yield from reports
    except SystemExit as end:
        # Dagster takes it for the wish of who started the process, and the run for one that is
        # never heard of again.
        raise RuntimeError(f"something in the tick ended its process: SystemExit: {end}") from end
    except InternalSparkError:
        run_id = context.run.run_id
        context.instance.add_run_tags(run_id, {JUDGED_TAG: run_id})
        raise


def _checks_of_last(
    found: RunEvaluations, flow: FlowAsset, runner: TickRunner, context: dg.AssetExecutionContext
) -> Iterator[Any]:
    """The checks of the last committed tick, beside a tick that failed; none where its tables
    cannot be read, which is told then, and is not why the tick has failed.
    """
    try:
        yield from found.of_run(runner.last_committed(flow))
    except HydroError as error:
        context.log.warning(str(error))


def _is_correction(run: dg.DagsterRun) -> bool:
    value = run.tags.get(CORRECT_TAG, "")
    if value not in ("", CORRECT):
        raise dg.Failure(
            f"the tag `{CORRECT_TAG}` is `{value}`: write `{CORRECT}` to have the ticks of the "
            "run, and those after them, computed again from what is landed now",
            allow_retries=False,
        )
    return value == CORRECT


def _tagged(
    context: dg.AssetExecutionContext, reports: Iterable[TickReport]
) -> Iterator[TickReport]:
    """The reports as they come; a run of several ticks has a tag in the end that says which of
    them are committed, and which one failed.
    """
    run, committed, failed = context.run, list[str](), None
    try:
        for report in reports:
            if report.committed:
                committed.append(report.window.key)
            else:
                failed = report.window.key
            yield report
    finally:
        # A run that is executed again begins with the tags that it had.
        if len(committed) + bool(failed) > 1 or TICKS_TAG in run.tags:
            context.instance.add_run_tags(run.run_id, committed_ticks_tag(committed, failed))


def _run_before(
    flow: FlowAsset, context: dg.AssetExecutionContext, report: TickReport
) -> Mapping[str, dg.MetadataValue]:
    """The run that recorded the tick before, where this one computes or records it again."""
    if not (report.again or report.corrected):
        return {}
    key = asset_key(flow, next(iter(report.tables)))
    wanted = dg.AssetRecordsFilter(asset_key=key, asset_partitions=[report.window.key])
    found = context.instance.fetch_materializations(wanted, limit=1).records
    return {"run before": dg.MetadataValue.dagster_run(found[0].run_id)} if found else {}


def _materializations(
    flow: FlowAsset, versions: Versions, report: TickReport, known: Mapping[str, Any]
) -> Iterator[dg.AssetMaterialization]:
    """The tick on the assets of the deployment that ran: the definitions may be of another one."""
    for name in report.tables:
        yield dg.AssetMaterialization(
            asset_key(flow, name),
            description=str(report.corrected) if report.corrected else report.again or None,
            partition=report.window.key,
            metadata={**report.metadata_of(name), **known},
            tags=versions.tags(name, report.commit),
        )


def _without_table(
    flow: FlowAsset, asked: Set[dg.AssetKey], report: TickReport
) -> Iterator[dg.AssetMaterialization]:
    """The tick on assets that are asked for and that the deployment does not have.

    A location that was loaded before the first tick has the states of the program as written, and a
    backfill of Dagster's is done when each asset that it was asked for has been told.
    """
    for key in sorted(asked - {asset_key(flow, name) for name in report.tables}):
        yield dg.AssetMaterialization(
            key,
            description="There is no such table: what is deployed keeps others. Reload the code "
            "location to see them",
            partition=report.window.key,
        )


def _arrivals(flow: FlowAsset, report: TickReport) -> Iterator[dg.AssetObservation]:
    """How many rows the tick read of each input, on the asset of the input."""
    for asset, rows in report.rows.items():
        kind, _, name = asset.partition("/")
        # What another flow gave, that flow has told.
        if kind == "landing" and name not in flow.reads:
            late = report.noticed[name].metadata if name in report.noticed else {}
            yield dg.AssetObservation(
                asset_key(flow, asset),
                metadata={"tick": report.window.key, "rows read": rows, **late},
            )


def _outputs(context: dg.AssetExecutionContext) -> Iterator[dg.DagsterEvent]:
    """Says that every output of the step is there, for steps of the same run that wait for it."""
    step = context.get_step_execution_context()
    for output in step.step.step_outputs:
        if output.name not in context.op_execution_context.selected_output_names:
            continue
        handle = StepOutputHandle(step.step.key, output.name)
        yield dg.DagsterEvent.step_output_event(step, StepOutputData(handle))
