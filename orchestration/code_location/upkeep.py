"""The upkeep of stored tables on a schedule: small files are joined, what was replaced is removed.

It takes the flow's place in its pool, so it is done between two runs of the flow.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

import dagster as dg

from hydro_core.project.flow_asset import FlowAsset

from ..runner.runner import TickRunner

KEPT = timedelta(days=7)
"""Going back to earlier ticks stays possible for so long."""

CRON: Mapping[str, str] = MappingProxyType(
    {"daily": "0 3 * * *", "weekly": "0 3 * * 0", "monthly": "0 3 1 * *"}
)
"""When it is done, by the words of the settings: at night."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The job that compacts a flow's tables, and its schedule."""

    job: dg.JobDefinition
    schedule: dg.ScheduleDefinition


def upkeep_of(flow: FlowAsset, runner: TickRunner) -> Upkeep | None:
    """The upkeep of a flow's tables; None where the project asks for none."""
    often = runner.project.compact
    if often is None:
        return None

    @dg.op(
        name=f"{flow.name}__compact",
        pool=runner.project.pool or flow.name,
        description=f"Joins the small files of {flow.name}'s tables.",
    )
    def compact(context: dg.OpExecutionContext) -> None:
        if runner.deployments.serving(flow) is None:
            context.log.info("nothing is committed yet")
            return
        runner.wait_for_work(flow, context.log.info)
        runner.pipeline(flow).compact(KEPT // timedelta(hours=1))
        gone = runner.deployments.forget(flow, KEPT, runner.now())
        context.log.info(f"compacted; {len(gone)} deployments that were given up are removed")

    graph = dg.GraphDefinition(name=f"{flow.name}_compact", node_defs=[compact])
    job = graph.to_job(
        executor_def=dg.in_process_executor,
        description=f"Joins the small files of {flow.name}'s tables, and removes what was "
        "replaced more than a week ago.",
    )
    status = dg.DefaultScheduleStatus
    schedule = dg.ScheduleDefinition(
        job=job,
        cron_schedule=CRON[often],
        execution_timezone=flow.ticks.zone,
        default_status=status.RUNNING if runner.project.sensors_run else status.STOPPED,
    )
    return Upkeep(job, schedule)
