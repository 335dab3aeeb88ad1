"""Streams that are surely empty in a range, since nothing came that could reach them.

A day without new airlines needs no job that finds out how many there are.
"""

from __future__ import annotations

from collections.abc import Collection

from hydro_core.catalog.spec import State
from hydro_core.ir.graph import NodeId
from hydro_core.plan.tick_plan import TickPlan


def surely_empty(plan: TickPlan, inputs: Collection[str]) -> frozenset[NodeId]:
    """The nodes that give nothing where these inputs are empty.

    Those with an input that is not, with a past, or in a cycle are left out: so are operators of
    which one empty input would do, since others may fail on what the other one has.
    """
    graph = plan.graph
    found = {graph.sources[name].id for name in inputs}
    for component in plan.components:
        for name in component.nodes if component.how == "once" else ():
            node = graph[name]
            if (
                node.inputs
                and node.spec.zero
                and node.spec.state is State.NONE
                and all(stream.node in found for stream in node.inputs)
            ):
                found.add(name)
    return frozenset(found)
