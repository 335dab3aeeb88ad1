"""A code location as a team has it: two flows, and assets that are built on both."""

from dataclasses import replace
from datetime import UTC, datetime

import dagster as dg

from hydro_core.project.flow_asset import Ticks
from hydrotick.code_location.asset_specs import asset_key, partitions_of
from hydrotick.code_location.factory import project_definitions
from hydrotick.project.settings import project_settings
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import small_flow

PROJECT = project_settings()
FIRST = replace(
    small_flow(PROJECT.home / "program"),
    ticks=Ticks(datetime(2026, 1, 1, tzinfo=UTC), "1d", datetime(2026, 1, 5, tzinfo=UTC)),
)
SECOND = replace(FIRST, name="second")


@dg.asset(
    deps=[asset_key(flow, name) for flow in (FIRST, SECOND) for name in ("totals", "before")],
    partitions_def=partitions_of(FIRST.ticks.calendar),
    backfill_policy=dg.BackfillPolicy.single_run(),
)
def report(context: dg.AssetExecutionContext) -> None:
    """Made for every day, of several outputs of both flows."""
    context.log.info(f"{len(context.partition_keys)} days")


@dg.asset(deps=[report, asset_key(SECOND, "totals")])
def summary() -> None:
    """Made of all days at once."""


defs = dg.Definitions.merge(
    project_definitions([FIRST, SECOND], TickRunner(PROJECT)),
    dg.Definitions(assets=[report, summary]),
)
