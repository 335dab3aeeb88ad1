"""What Dagster has recorded of a flow, beside what its ledger says."""

from __future__ import annotations

import dagster as dg

from assets.spec import FlowAsset
from hydro_core.errors import DataError, Diagnostic
from hydro_core.spark.ledger import Ledger
from orchestration.runner import TickRunner


def refuse_lost_pipeline(instance: dg.DagsterInstance, flow: FlowAsset, runner: TickRunner) -> None:
    """Raises where Dagster has ticks of the flow, but its pipeline has no ledger at all.

    That is a file system that is not mounted, or a directory that somebody has removed; the ticks
    would begin anew without a word.

    Raises:
        DataError: what Dagster has, and what to do (code `state`).
    """
    directory = runner.directory(flow)
    if Ledger(directory).exists:
        return
    recorded = sorted(
        {
            tick
            for key in recorded_tables(instance, flow)
            for tick in instance.get_materialized_partitions(key)
        }
    )
    if recorded:
        raise DataError(
            Diagnostic(
                code="state",
                message=f"Dagster has {len(recorded):,} ticks of `{flow.name}`, the last one "
                f"{recorded[-1]}, but there is no ledger in {directory}",
                help="mount that directory or restore it from a copy; or start the flow over: "
                f"`hydrotick reset {flow.name}`",
            )
        )


def recorded_tables(instance: dg.DagsterInstance, flow: FlowAsset) -> list[dg.AssetKey]:
    """The assets of the flow that Dagster has seen, also those that its program has no more."""
    return [
        key
        for key in instance.get_asset_keys(prefix=[flow.name])
        if key.path[0] == flow.name and key.path[1:2] != ["landing"]
    ]
