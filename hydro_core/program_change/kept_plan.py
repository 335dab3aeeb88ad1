"""A program in other words goes on by the plan that serves, where that keeps more than its own.

All outputs are the same, so either plan gives them. What each stores may differ in the order of
columns, or in what is kept on the way: by the new one it would be made anew, for nothing. Where the
new plan is to serve, it gives rows with their columns in the order of the tables that are there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hydro_core.analysis.infer import infer
from hydro_core.artifact.deployment import Deployment
from hydro_core.artifact.make import tables_of
from hydro_core.catalog.itemwise import SELECT
from hydro_core.catalog.spec import Args
from hydro_core.ir.graph import Endpoint, Node
from hydro_core.optimize.compare import ComparedStream
from hydro_core.plan.planner import plan_of
from hydro_core.program_change.difference import NEW, OLD_PLAN, Difference
from hydro_core.types.item import Row

CHEAPER = 0.99
"""A plan that costs less than this part of the other one is worth being made for."""


def serves_on(found: Difference) -> bool:
    """Whether the plan that serves is to be that of the new program, too."""
    before, after = found.before, found.after
    outputs = found.outputs.values()
    return (
        all(output.change == "same" for output in outputs)
        and (bool(found.turned) or any(s.change != "kept" for s in found.states.values()))
        and before.sharding == after.sharding
        and {*before.plan.graph.sources} == {*after.plan.graph.sources}
        # By other statistics than the one that serves, it was chosen since it costs less.
        and after.costs.statistics == before.costs.statistics
        and after.costs.after >= CHEAPER * before.costs.after
    )


def by_the_plan_that_serves(found: Difference) -> Deployment:
    """The deployment of the new program, by the plan that serves."""
    before, after = found.before, found.after
    classes = found.streams.classes
    named = {
        classes[s]: end.node
        for end in after.program.typed.types
        if (s := ComparedStream(NEW, end)) in classes
    }
    streams = {
        end.node: named[cls]
        for end in before.plan.typed.types
        if (cls := classes.get(ComparedStream(OLD_PLAN, end))) in named
    }
    return replace(
        after,
        plan=before.plan,
        tables=before.tables,
        costs=replace(after.costs, after=before.costs.after),
        explanation=before.explanation,
        streams=streams,
    )


def in_the_order_of(before: Deployment, after: Deployment, outputs: Iterable[str]) -> Deployment:
    """A deployment whose plan gives the rows of some outputs with their columns in the order of
    another one's, so that they fit its tables.
    """
    plan = after.plan
    nodes = dict(plan.graph.nodes)
    for name in outputs:
        item = before.plan.typed.outputs[name].item
        assert isinstance(item, Row)
        select = Args().with_(columns=item.names, computed=())
        for sink in plan.graph.sinks[name]:
            made = Node(f"{sink.id}_as_stored", SELECT, select, sink.inputs, sink.span)
            nodes[made.id] = made
            nodes[sink.id] = sink.with_(inputs=(Endpoint(made.id),))
    typed = infer(plan.graph.with_nodes(nodes.values()), plan.typed.schemas)
    made_plan = plan_of(after.program.typed, typed, after.streams, plan.hashes)
    return replace(after, plan=made_plan, tables=tuple(tables_of(made_plan)))
