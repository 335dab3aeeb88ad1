"""The code location: every flow of `assets.ALL_ASSETS` as Dagster definitions.

Loading parses the programs and builds assets; it starts no Spark and optimizes nothing.
"""

from __future__ import annotations

import warnings

import dagster as dg

from assets import ALL_ASSETS
from orchestration.factory import flow_definitions
from orchestration.runner import TickRunner
from orchestration.settings import project_settings


def definitions() -> dg.Definitions:
    """The definitions of all flows."""
    runner = TickRunner(project_settings())
    with warnings.catch_warnings():
        # Checks that know their tick are a preview in Dagster; what we use of them is tested here.
        warnings.simplefilter("ignore", category=dg.PreviewWarning)
        flows = [flow_definitions(flow, runner) for flow in ALL_ASSETS]
    return dg.Definitions(
        assets=[asset for flow in flows for asset in flow.assets],
        asset_checks=[check for flow in flows for check in flow.checks],
        jobs=[flow.job for flow in flows],
        sensors=[flow.sensor for flow in flows],
        executor=dg.in_process_executor,
    )


defs = definitions()
