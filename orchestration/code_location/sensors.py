"""The sensor of a flow: it asks for the next tick, or says why none may run."""

from __future__ import annotations

from typing import Any

import dagster as dg

from hydro_core.project.flow_asset import FlowAsset

from ..instance.run_tags import FLOW_TAG, range_tags
from ..runner.runner import TickRunner
from .next_run import next_run


def next_tick_sensor(flow: FlowAsset, job: Any, runner: TickRunner) -> dg.SensorDefinition:
    """Requests the ticks whose windows have closed, as one run at a time."""

    @dg.sensor(
        name=f"{flow.name}_next_tick",
        job=job,
        minimum_interval_seconds=runner.project.sensor_seconds,
        default_status=(
            dg.DefaultSensorStatus.RUNNING
            if runner.project.sensors_run
            else dg.DefaultSensorStatus.STOPPED
        ),
        description="The next tick, once it may run and the tick before it is committed.",
    )
    def next_tick(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        found = next_run(flow, runner, context.instance)
        # Of what a sensor says, its page shows the cursor at once and the rest behind a click.
        context.update_cursor(found.says)
        if found.ticks is None:
            return dg.SkipReason(found.says)
        context.log.info(found.says)
        first, last = found.ticks
        tags = {FLOW_TAG: flow.name}
        if first == last:
            return dg.RunRequest(partition_key=first.key, tags=tags)
        return dg.RunRequest(tags={**tags, **range_tags(first.key, last.key)})

    return next_tick
