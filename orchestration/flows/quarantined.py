"""What is in a flow's quarantine, by its ledger and the table; Spark is not needed."""

from __future__ import annotations

from dataclasses import dataclass

from hydro_core.errors import HydroError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.types.quarantine import QUARANTINE

from .flows import Flows


@dataclass(frozen=True, slots=True)
class Quarantined:
    """The rows in quarantine: those that the `last` commit put there, and `all` that are there."""

    last: int
    all: int
    tick: str | None = None
    """The key of the last tick that has some."""


def quarantined(flow: FlowAsset, flows: Flows) -> Quarantined | None:
    """How many rows a flow has in quarantine; None: what serves has none, or nothing serves."""
    try:
        if not flows.next_tick(flow) or QUARANTINE not in flows.plan(flow).graph.sinks:
            return None
        pipeline = flows.pipeline(flow)
        table = pipeline.output_tables[QUARANTINE].name
        run = flows.deployments.ledger(flow).last_run
        last = 0 if run is None else run.rows.get(table, 0)
        found = pipeline.store.row_count(table)
        from hydro_core.spark.store.delta.table_rows import last_tick

        tick = last_tick(pipeline.store.tables[table], flows.next_tick(flow) - 1)
        if tick is None:
            return Quarantined(last, found)
        return Quarantined(last, found, flow.ticks.calendar.window(tick).key)
    except (HydroError, OSError):
        # What is wrong with a pipeline is told by what runs next.
        return None
