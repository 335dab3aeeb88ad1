"""A program whose output has some of its columns: to see whether that is another one's."""

from __future__ import annotations

from collections.abc import Sequence

from hydro_core.analysis.infer import Typed, infer
from hydro_core.catalog.io import SINK
from hydro_core.catalog.itemwise import SELECT
from hydro_core.catalog.spec import Args
from hydro_core.ir.graph import Endpoint, Graph, Node


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
