"""Outputs with some of their columns, to see whether they are another's, or in its order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hydro_core.analysis.infer import Typed, infer
from hydro_core.artifact.deployment import Deployment
from hydro_core.artifact.make import tables_of
from hydro_core.catalog.io import SINK
from hydro_core.catalog.itemwise import SELECT
from hydro_core.catalog.spec import Args
from hydro_core.ir.graph import Endpoint, Graph, Node
from hydro_core.plan.planner import plan_of
from hydro_core.types.item import Row


def narrowed_to(typed: Typed, stream: Endpoint, columns: Sequence[str], name: str) -> Typed:
    """The program with the stream `name`: another one, with these columns in this order.

    An aggregate is made without the others, which is the same; else they are left out after it.
    """
    graph = typed.graph
    node = graph[stream.node]
    nodes = {n.id: n for n in graph if n.op.outputs != "none"}
    aggregates = node.args.get("aggregates")
    by = node.args.get("by") or ()
    if aggregates is not None and [*by] == [*columns][: len(by)]:
        of = dict(aggregates)
        kept = tuple((column, of[column]) for column in columns[len(by) :] if column in of)
        nodes[name] = node.with_(id=name, args=node.args.with_(aggregates=kept))
    else:
        select = Args().with_(columns=tuple(columns), computed=())
        nodes[name] = Node(name, SELECT, select, (stream,), node.span)
    seen = Node(f"{name}_seen", SINK, Args().with_(name=name), (Endpoint(name),))
    return infer(Graph.of((*nodes.values(), seen), graph.name), typed.schemas)


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
    rest = [n for n in nodes.values() if n.op.outputs != "none"]
    sinks = [n for n in nodes.values() if n.op.outputs == "none"]
    graph = Graph.of((*rest, *sinks), plan.graph.name, plan.graph.warnings)
    typed = infer(graph, plan.typed.schemas)
    made_plan = plan_of(after.program.typed, typed, after.streams, plan.hashes)
    return replace(after, plan=made_plan, tables=tuple(tables_of(made_plan)))
