"""The sensor of a flow: it asks for the next tick, or says why none may run."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import dagster as dg
from dagster._core.instance.ref import InstanceRef
from dagster._serdes import deserialize_value, serialize_value

from hydro_core.project.flow_asset import FlowAsset

from ..instance.run_tags import CORRECT, CORRECT_TAG, FLOW_TAG, range_tags
from ..runner.runner import TickRunner
from .next_run import next_run
from .run_process import end_orphans
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
        records = records_of(context)
        found = next_run(now.flow, runner, records)
        if found.busy:
            end_orphans(records, now.flow)
            found = next_run(now.flow, runner, records)
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


def records_of(context: dg.SensorEvaluationContext) -> dg.DagsterInstance:
    """Dagster's records, opened once in a process.

    `context.instance` opens them for each evaluation, and reads some hundred migrations to find
    that the tables are current: that is most of what an evaluation takes.
    """
    ref = context.instance_ref
    return context.instance if ref is None else _opened(serialize_value(ref))


@lru_cache(maxsize=1)
def _opened(ref: str) -> dg.DagsterInstance:
    return dg.DagsterInstance.from_ref(deserialize_value(ref, InstanceRef))
