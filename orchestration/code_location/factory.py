"""One factory turns a flow into Dagster assets, checks, a job and a sensor.

A time-window partition is a tick. A run of a tick is one multi-asset whose outputs are the strata's
handoffs, the states and the outputs. A flow whose program is wrong has assets that say so and no
job; the other flows are not touched by it.
"""

from __future__ import annotations

import base64
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg

from hydro_core.analysis.lineage import described
from hydro_core.errors import HydroError, Span
from hydro_core.ir.render import picture_of, svg
from hydro_core.project.check import check_alone, no_such_output
from hydro_core.project.discover import BrokenFlow
from hydro_core.project.flow_asset import FlowAsset

from ..deploy.deployments import comments_of, fitted, plan_as_written
from ..instance.run_tags import FLOW_TAG
from ..project.settings import ProjectSettings
from ..project.shape import shape_of
from ..runner.runner import TickRunner
from .asset_specs import (
    AssetDescription,
    broken_spec,
    broken_specs,
    deployment_shown,
    flow_specs,
    input_specs,
)
from .sensors import failure_sensor, next_tick_sensor, upkeep_of
from .tick_asset import flow_checks, tick_asset


@dataclass(frozen=True, slots=True)
class FlowDefinitions:
    """Definitions that one flow adds to the code location."""

    assets: tuple[dg.AssetsDefinition | dg.AssetSpec, ...]
    checks: tuple[dg.AssetChecksDefinition, ...] = ()
    jobs: tuple[Any, ...] = ()
    sensors: tuple[dg.SensorDefinition, ...] = ()
    schedules: tuple[dg.ScheduleDefinition, ...] = ()


def project_definitions(
    flows: Sequence[FlowAsset],
    runner: TickRunner,
    broken: Sequence[BrokenFlow] = (),
    executor: dg.ExecutorDefinition | None = dg.in_process_executor,
) -> dg.Definitions:
    """The definitions of several flows whose ticks `runner` runs.

    Args:
        broken: flows that are none; it is shown why.
        executor: of runs that are launched from assets; a flow's own job runs in one process, since
            a step in a process of its own starts another Spark.
    """
    made: dict[str, FlowDefinitions] = {}
    for flow in flows:
        try:
            made[flow.name] = flow_definitions(flow, runner)
        except HydroError as error:
            made[flow.name] = FlowDefinitions(tuple(broken_specs(flow, error)))
    built = [_fed(flow, made) for flow in flows]
    # Two folders may declare a flow of one name, which is wrong, and shown once.
    wrong = {broken_spec(flow).key: broken_spec(flow) for flow in broken}
    return dg.Definitions(
        assets=[*(asset for flow in built for asset in flow.assets), *wrong.values()],
        asset_checks=[check for flow in built for check in flow.checks],
        jobs=[job for flow in built for job in flow.jobs],
        sensors=[
            *(sensor for flow in built for sensor in flow.sensors),
            failure_sensor(flows, runner.project),
        ],
        schedules=[schedule for flow in built for schedule in flow.schedules],
        executor=executor,
    )


def flow_definitions(flow: FlowAsset, runner: TickRunner) -> FlowDefinitions:
    """The Dagster definitions of `flow`; nothing is run and Spark is not started.

    Raises:
        HydroError: the program of the flow is wrong.
    """
    check_alone(flow)
    shown = deployment_shown(flow, runner.deployments)
    plan = plan_as_written(flow) if shown is None else shown.deployment.plan
    shape, flow = shape_of(plan), fitted(flow, plan)
    undeployed = runner.deployments.undeployed(flow)
    drawn = picture_of(plan.graph, plan.strata.of, plan.typed.types)
    # An image in markdown: the UI shows no inline SVG and no mermaid.
    image = base64.b64encode(svg(drawn).encode()).decode()
    drawing = f"![{drawn.name}](data:image/svg+xml;base64,{image})"
    comments = comments_of(flow, shown)
    columns = described(plan.typed if shown is None else shown.deployment.program.typed, comments)
    about = AssetDescription(
        drawing,
        comments,
        columns,
        drawn.does,
        shown,
        undeployed.says,
        undeployed.outputs,
        {name: runner.table_of(flow, name) for name in flow.tables},
        partial(code_link, project=runner.project),
        master=runner.settings_for(flow).spark.master,
    )
    says = flow.description or comments.head
    flow = replace(flow, description=says)
    specs = flow_specs(flow, shape, about)
    tick = tick_asset(flow, specs, runner)
    job = dg.define_asset_job(
        f"{flow.name}_job",
        dg.AssetSelection.assets(*(spec.key for spec in specs)).without_checks(),
        description="\n\n".join(filter(None, [says, f"Runs ticks of {flow.name} in order."])),
        metadata=about.of_flow,
        tags={FLOW_TAG: flow.name},
        executor_def=dg.in_process_executor,
    )
    upkeep = upkeep_of(flow, runner)
    return FlowDefinitions(
        assets=(*input_specs(flow, shape, about, runner.project.landing), tick),
        checks=flow_checks(flow, shape, runner),
        jobs=(job,) if upkeep is None else (job, upkeep.job),
        sensors=(next_tick_sensor(flow, job, runner),),
        schedules=() if upkeep is None else (upkeep,),
    )


def _fed(flow: FlowAsset, made: Mapping[str, FlowDefinitions]) -> FlowDefinitions:
    """The definitions of a flow; of one that reads what another flow does not give, why not."""
    for name, read in flow.reads.items():
        other = made.get(read.flow)
        if other is None or not other.jobs:
            continue
        keys = [
            key
            for asset in other.assets
            if isinstance(asset, dg.AssetsDefinition)
            for key in asset.keys
        ]
        outputs = [key.path[1] for key in keys if len(key.path) == 2]
        if read.output not in outputs:
            error = no_such_output(flow, name, outputs)
            return FlowDefinitions(tuple(broken_specs(flow, error)))
    return made[flow.name]


def code_link(place: Span | None, project: ProjectSettings) -> Mapping[str, Any]:
    """What an asset shows of a place; nothing where its file is not there.

    Where the project is not on the web, the link opens the file in an editor, on the machine that
    has it.
    """
    if place is None or not Path(place.file).is_file():
        return {}
    file = Path(place.file).absolute()
    label, url = f"{file.name}:{place.line}", project.url_of(file)
    where: dg.LocalFileCodeReference | dg.UrlCodeReference
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)
        if url is None:
            where = dg.LocalFileCodeReference(
                file_path=str(file), line_number=place.line, label=label
            )
        else:
            # So GitHub and GitLab name a line.
            where = dg.UrlCodeReference(url=f"{url}#L{place.line}", label=label)
        shown = dg.CodeReferencesMetadataValue(code_references=[where])
    return {"dagster/code_references": shown}
