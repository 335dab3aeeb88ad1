"""One factory turns a flow into Dagster assets, checks, a job and a sensor.

A time-window partition is a tick. A run of a tick is one multi-asset whose outputs are the strata's
handoffs, the states and the outputs. Inside it every asset has one parent at most, the handoff of
its stratum: Dagster resolves backfills of a forest reliably, of a diamond not. What an asset reads
beyond that stands in its metadata.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from assets.spec import FlowAsset
from hydro_core.errors import DataError
from orchestration.drawing import drawing
from orchestration.failures import failure_sensor
from orchestration.quality.suites import LAW_CHECKS, declared_checks
from orchestration.records import refuse_lost_pipeline, unrecorded
from orchestration.report import TickReport
from orchestration.run_tags import FLOW_TAG, JUDGED_TAG
from orchestration.runner import TickRunner
from orchestration.sensors import next_tick_sensor
from orchestration.shape import FlowShape, OutputShape, StateShape, StratumShape, shape_of
from orchestration.ticks import TickAxis

PREVIOUS_TICK = dg.TimeWindowPartitionMapping(start_offset=-1, end_offset=-1)


@dataclass(frozen=True, slots=True)
class FlowDefinitions:
    """What one flow adds to the code location."""

    assets: tuple[dg.AssetsDefinition | dg.AssetSpec, ...]
    checks: tuple[dg.AssetChecksDefinition, ...]
    job: Any
    sensor: dg.SensorDefinition


def project_definitions(flows: Sequence[FlowAsset], runner: TickRunner) -> dg.Definitions:
    """The definitions of several flows whose ticks `runner` runs."""
    with warnings.catch_warnings():
        # Checks that know their tick are a preview in Dagster; what we use of them is tested here.
        warnings.simplefilter("ignore", category=dg.PreviewWarning)
        built = [flow_definitions(flow, runner) for flow in flows]
    return dg.Definitions(
        assets=[asset for flow in built for asset in flow.assets],
        asset_checks=[check for flow in built for check in flow.checks],
        jobs=[flow.job for flow in built],
        sensors=[*(flow.sensor for flow in built), failure_sensor(flows, runner.project)],
        executor=dg.in_process_executor,
    )


def flow_definitions(flow: FlowAsset, runner: TickRunner) -> FlowDefinitions:
    """The Dagster definitions of `flow`; nothing is run and Spark is not started."""
    axis = TickAxis(flow.ticks)
    shape = shape_of(runner.plan(flow))
    specs = _specs(flow, shape, axis)
    tick = _tick_asset(flow, axis, specs, runner)
    job = dg.define_asset_job(
        f"{flow.name}_job",
        dg.AssetSelection.assets(*(spec.key for spec in specs)).without_checks(),
        description=f"Runs ticks of {flow.name} in order.",
        tags={FLOW_TAG: flow.name},
        executor_def=dg.in_process_executor,
    )
    checks = (_checks(flow, shape, axis, runner),) if _declared(flow, shape) else ()
    return FlowDefinitions(
        (*_inputs(flow, shape), tick), checks, job, next_tick_sensor(flow, axis, job, runner)
    )


def last_key(flow: FlowAsset, runner: TickRunner) -> dg.AssetKey:
    """The asset that a tick records last: a tick that it has, all have."""
    shape = shape_of(runner.plan(flow))
    return _specs(flow, shape, TickAxis(flow.ticks))[-1].key


def _specs(flow: FlowAsset, shape: FlowShape, axis: TickAxis) -> list[dg.AssetSpec]:
    picture = dg.MetadataValue.md(drawing(shape))
    return [
        *(_stratum(flow, stratum, axis, picture) for stratum in shape.strata),
        *(_state(flow, state, axis) for state in shape.states),
        *(_output(flow, output, axis) for output in shape.outputs),
    ]


def _stratum(
    flow: FlowAsset, stratum: StratumShape, axis: TickAxis, picture: dg.MarkdownMetadataValue
) -> dg.AssetSpec:
    parents = [dg.AssetDep(asset_key(flow, f"landing/{name}")) for name in stratum.inputs]
    if stratum.number > 0:
        parents.append(dg.AssetDep(asset_key(flow, f"stratum_{stratum.number - 1}")))
    return dg.AssetSpec(
        asset_key(flow, f"stratum_{stratum.number}"),
        deps=parents,
        description=f"Stratum {stratum.number} of the program: {', '.join(stratum.operators)}.",
        kinds={"spark"},
        tags={"role": "stratum"},
        metadata={"operators": list(stratum.operators), "program": picture},
        **_common(flow, axis),
    )


def _state(flow: FlowAsset, state: StateShape, axis: TickAxis) -> dg.AssetSpec:
    key = asset_key(flow, f"state/{state.name}")
    return dg.AssetSpec(
        key,
        deps=[
            dg.AssetDep(asset_key(flow, f"stratum_{state.stratum}")),
            dg.AssetDep(key, partition_mapping=PREVIOUS_TICK),
        ],
        description=state.says,
        kinds={"deltalake"},
        tags={"role": "state"},
        metadata={"dagster/column_schema": _schema(state.columns)},
        **_common(flow, axis),
    )


def _output(flow: FlowAsset, output: OutputShape, axis: TickAxis) -> dg.AssetSpec:
    return dg.AssetSpec(
        asset_key(flow, output.name),
        deps=[dg.AssetDep(asset_key(flow, f"stratum_{output.stratum}"))],
        description=flow.outputs.get(output.name, f"The output `{output.name}` of {flow.name}."),
        kinds={"deltalake"},
        tags={"role": "output"},
        metadata={
            "dagster/column_schema": _schema(output.columns),
            "computed from": list(output.ancestors),
        },
        **_common(flow, axis),
    )


def _common(flow: FlowAsset, axis: TickAxis) -> dict[str, Any]:
    return {
        "skippable": True,
        "group_name": flow.name,
        "owners": list(flow.owners),
        "partitions_def": axis.partitions,
    }


def _tick_asset(
    flow: FlowAsset, axis: TickAxis, specs: Sequence[dg.AssetSpec], runner: TickRunner
) -> dg.AssetsDefinition:
    plan = runner.plan(flow)
    tables = [*(f"state/{slot.id}" for slot in plan.slots), *plan.graph.sinks]
    names = {asset_key(flow, table): table for table in tables}

    @dg.multi_asset(
        name=f"{flow.name}__tick",
        specs=specs,
        pool=flow.name,
        backfill_policy=dg.BackfillPolicy.single_run(),
        description=flow.description or None,
    )
    def tick(context: dg.AssetExecutionContext) -> Iterator[Any]:
        try:
            refuse_lost_pipeline(context.instance, flow, runner)
        except DataError as error:
            raise dg.Failure(str(error), allow_retries=False) from error
        windows = {axis.window_of(key) for key in context.partition_keys}
        # What a killed process had committed, but not recorded, is recorded by whatever runs next.
        for first, last in unrecorded(flow, runner, context.instance):
            windows |= {axis.window(number) for number in range(first.tick, last.tick + 1)}
        for report in runner.run(flow, list(windows), log=context.log.info):
            _record_checks(context, flow, report)
            for name in report.empty:
                context.log.warning(f"{report.window.key}: no row of the input `{name}` is of it")
            if not report.committed:
                if report.judged:
                    run_id = context.run.run_id
                    context.instance.add_run_tags(run_id, {JUDGED_TAG: run_id})
                raise dg.Failure(
                    f"{report.window.key}: {report.problem}",
                    metadata=report.metadata,
                    allow_retries=False,
                )
            for spec in specs:
                context.log_event(
                    dg.AssetMaterialization(
                        spec.key,
                        partition=report.window.key,
                        metadata=report.metadata_of(names.get(spec.key, "")),
                    )
                )
        return
        yield  # a generator that yields nothing: every output is skippable, events are logged above

    return tick


_SEVERITIES = {"error": dg.AssetCheckSeverity.ERROR, "warn": dg.AssetCheckSeverity.WARN}


def _record_checks(context: dg.AssetExecutionContext, flow: FlowAsset, report: TickReport) -> None:
    for asset, verdict in report.verdicts:
        context.log_event(
            dg.AssetCheckEvaluation(
                asset_key=asset_key(flow, asset),
                check_name=verdict.check,
                passed=verdict.passed,
                description=None if verdict.passed else f"broken: {verdict.says}",
                severity=_SEVERITIES[verdict.severity],
                blocking=verdict.severity == "error",
                partition=report.window.key,
                metadata=_shown(verdict.seen),
            )
        )


def _checks(
    flow: FlowAsset, shape: FlowShape, axis: TickAxis, runner: TickRunner
) -> dg.AssetChecksDefinition:
    """The checks by themselves: run from the page, they judge what is committed once more.

    They are one step, which a run of a tick skips: it has judged the tick before it committed.
    """
    specs = [
        dg.AssetCheckSpec(
            name,
            asset=asset_key(flow, asset),
            description=says,
            blocking=True,
            partitions_def=axis.partitions,
        )
        for asset, checks in _declared(flow, shape).items()
        for name, says in checks.items()
    ]
    assets = {asset_key(flow, asset): asset for asset in _declared(flow, shape)}

    @dg.multi_asset_check(name=f"{flow.name}__judge_again", specs=specs, can_subset=True)
    def judge_again(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        wanted = context.selected_asset_check_keys
        window = axis.window_of(context.partition_key)
        for key in dict.fromkeys(check.asset_key for check in wanted):
            for verdict in runner.judge_again(flow, window, assets[key]):
                if dg.AssetCheckKey(key, verdict.check) in wanted:
                    yield dg.AssetCheckResult(
                        asset_key=key,
                        check_name=verdict.check,
                        passed=verdict.passed,
                        severity=_SEVERITIES[verdict.severity],
                        metadata=_shown(verdict.seen),
                    )

    return judge_again


def _declared(flow: FlowAsset, shape: FlowShape) -> dict[str, Mapping[str, str]]:
    """The checks of each asset that has some, each with what it says."""
    laws = {f"state/{state.name}": LAW_CHECKS for state in shape.states}
    expected = {
        output.name: declared_checks(flow.expect.get(output.name, ())) for output in shape.outputs
    }
    return {asset: checks for asset, checks in {**laws, **expected}.items() if checks}


def _shown(seen: Mapping[str, Any]) -> dict[str, Any]:
    """What a check saw, as metadata: the UI plots numbers over the ticks."""
    return {
        name: value if isinstance(value, int | float | str) else dg.MetadataValue.json(value)
        for name, value in seen.items()
    }


def _inputs(flow: FlowAsset, shape: FlowShape) -> Iterator[dg.AssetSpec]:
    for name, columns in shape.inputs.items():
        landing = flow.inputs[name]
        by = (
            f"cut into ticks by `{landing.column}`" if landing.column else "whole at the first tick"
        )
        yield dg.AssetSpec(
            asset_key(flow, f"landing/{name}"),
            group_name=flow.name,
            description=f"Landing table `{landing.path}`, {by}.",
            kinds={"deltalake"},
            tags={"role": "input"},
            metadata={"dagster/column_schema": _schema(columns)},
        )


def _schema(columns: Sequence[tuple[str, str]]) -> dg.TableSchema:
    # Of the names of a type, the UI knows those of SQL.
    return dg.TableSchema(
        [dg.TableColumn(name, "bigint" if kind == "long" else kind) for name, kind in columns]
    )


def asset_key(flow: FlowAsset, asset: str) -> dg.AssetKey:
    """The key of an asset of the flow: of "state/NAME", "landing/NAME", or an output."""
    kind, _, name = asset.rpartition("/")
    # The UI shows the last part of a key, and a state often has the name of an input.
    match kind:
        case "":
            return dg.AssetKey([flow.name, name])
        case "state":
            return dg.AssetKey([flow.name, kind, f"{name}_state"])
        case _:
            return dg.AssetKey([flow.name, kind, name])
