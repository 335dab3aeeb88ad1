"""The sensor of a flow: it asks for the next tick, or says why none may run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dagster as dg

from hydro_core.project.flow_asset import FlowAsset

from ..instance.run_tags import CORRECT, CORRECT_TAG, FLOW_TAG, range_tags
from ..runner.runner import TickRunner
from .next_run import next_run
from .since_loaded import SinceLoaded


def next_tick_sensor(flow: FlowAsset, job: Any, runner: TickRunner) -> dg.SensorDefinition:
    """Requests the ticks whose windows have closed, as one run at a time."""
    declared = SinceLoaded(flow, runner.project.root, runner.deployments)

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
        now = declared.now()
        if now.flow is None:
            context.update_cursor(now.says)
            return dg.SkipReason(now.says)
        found = next_run(now.flow, runner, context.instance)
        if now.says:
            found = replace(found, says=f"{found.says}; {now.says}")
        # Of what a sensor says, its page shows the cursor at once and the rest behind a click.
        context.update_cursor(found.says)
        if found.ticks is None:
            return dg.SkipReason(found.says)
        context.log.info(found.says)
        first, last = found.ticks
        tags = {FLOW_TAG: flow.name, **({CORRECT_TAG: CORRECT} if found.again else {})}
        if first == last:
            return dg.RunRequest(partition_key=first.key, tags=tags)
        return dg.RunRequest(tags={**tags, **range_tags(first.key, last.key)})

    return next_tick
