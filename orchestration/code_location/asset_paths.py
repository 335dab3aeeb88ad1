"""The paths of a flow's assets, as Dagster's keys have them; known without loading Dagster."""

from __future__ import annotations

import re

from hydro_core.plan.tick_plan import TickPlan
from hydro_core.project.flow_asset import FlowAsset

_NO_NAME = re.compile(r"\W+", re.ASCII)


def asset_path(flow: FlowAsset, asset: str) -> list[str]:
    """The path of an asset of the flow: of "state/NAME", "landing/NAME", or an output.

    An input that is another flow's output has the path that it has there.
    """
    kind, _, name = asset.rpartition("/")
    if kind == "landing" and name in flow.reads:
        read = flow.reads[name]
        return [read.flow, read.output]
    # The UI shows the last part of a key, and a state often has the name of an input.
    match kind:
        case "":
            return [flow.name, name]
        case "state":
            # What a plan has more of than the program is named in words: `totals of shard 2`.
            return [flow.name, kind, f"{_NO_NAME.sub('_', name)}_state"]
        case _:
            return [flow.name, kind, name]


def last_path(flow: FlowAsset, plan: TickPlan) -> list[str]:
    """The path of the asset that a tick records last: a tick that it has, all have."""
    tables = [*(f"state/{slot.id}" for slot in plan.slots), *plan.graph.sinks]
    return asset_path(flow, tables[-1])
