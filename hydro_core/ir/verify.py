"""What every graph must satisfy, whatever made it: a step that gives another one has a bug."""

from __future__ import annotations

from collections.abc import Iterator

from hydro_core.catalog.io import SOURCE
from hydro_core.ir.graph import Graph, Node
from hydro_core.ir.walk import outputs


class BrokenGraphError(Exception):
    """A graph that no program could mean."""


def verify(graph: Graph) -> Graph:
    """The graph itself; `BrokenGraphError` says what is wrong with it."""
    wrong = [f"{node.id}: {problem}" for node in graph for problem in _problems(graph, node)]
    names = [node.args.get("name") for node in graph.named(SOURCE.name)]
    wrong += [f"two inputs are called {name!r}" for name in set(names) if names.count(name) > 1]
    if wrong:
        raise BrokenGraphError("; ".join(wrong))
    return graph


def _problems(graph: Graph, node: Node) -> Iterator[str]:
    op = node.op
    if graph.nodes.get(node.id) is not node:
        yield "stands under another id"
    missing = [arg.name for arg in node.spec.args if arg.name not in node.args]
    if missing:
        yield f"lacks the argument {missing[0]}"
    count = len(node.inputs)
    if op.variadic:
        fits = count >= 1
    else:
        fits = count == len(op.inputs) or (op.optional_input and count == 0)
    if not fits:
        yield f"has {count} inputs"
    for endpoint in node.inputs:
        if endpoint.node not in graph.nodes:
            yield f"reads {endpoint}, which is not there"
        elif endpoint not in outputs(graph[endpoint.node]):
            yield f"reads {endpoint}, which is no output"
