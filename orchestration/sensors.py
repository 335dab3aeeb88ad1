"""Ticks as their windows close: one run of the next open tick at a time, in order."""

from __future__ import annotations

from typing import Any

import dagster as dg

from assets.spec import FlowAsset
from orchestration.runner import TickRunner
from orchestration.ticks import TickAxis

IN_FLIGHT = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def next_tick_sensor(
    flow: FlowAsset, axis: TickAxis, job: Any, runner: TickRunner
) -> dg.SensorDefinition:
    """Requests the first uncommitted tick that may run, unless one is in flight or the
    last try failed.
    """

    @dg.sensor(
        name=f"{flow.name}_next_tick",
        job=job,
        minimum_interval_seconds=30,
        description="The next tick, once it may run and the tick before it is committed.",
    )
    def next_tick(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        busy = dg.RunsFilter(tags={"flow": flow.name}, statuses=IN_FLIGHT)
        if context.instance.get_run_records(busy, limit=1):
            return dg.SkipReason("a tick is running")
        tick = runner.next_tick(flow)
        ready = runner.ready(flow)
        key = axis.window(tick).key
        if tick >= ready.until:
            return dg.SkipReason(f"up to date; tick {key} is next: {ready.why}")
        tried = dg.RunsFilter(tags={"flow": flow.name, "dagster/partition": key})
        last = context.instance.get_run_records(tried, limit=1)
        if last and last[0].dagster_run.status == dg.DagsterRunStatus.FAILURE:
            return dg.SkipReason(f"tick {key} failed: repair its cause and launch it again")
        return dg.RunRequest(partition_key=key)

    return next_tick
