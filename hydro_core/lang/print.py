"""A graph as text: `parse(to_text(graph)) == graph`.

Nodes are written in their order, since that is what generated ids are counted by. A node that only the next one reads
is written before it in one pipeline; every other one is a statement under its id.
"""

from __future__ import annotations

import keyword
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from hydro_core.catalog.spec import Aggregate, Arg, functions_of
from hydro_core.errors import HydroError
from hydro_core.functions.fn import Fn
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.lang.literal import function_text, left_names, literal, quoted, schema_text
from hydro_core.lang.resolve import parse

WIDTH = 100


def to_text(graph: Graph) -> str:
    """The program's text. What is no expression stands under its name, for the reader to bind: `names_in` tells which."""
    pretty = "".join(f"{s}\n" for s in _statements(graph, _chained(graph)))
    if _reads_back(pretty, graph):
        return pretty
    # Ids that no text would generate are written out, one statement a node.
    return "".join(f"{s}\n" for s in _statements(graph, {}))


def names_in(graph: Graph) -> tuple[str, ...]:
    """The names in the text that its reader must bind: of functions that are no expressions, or call such."""
    return tuple(
        dict.fromkeys(n for node in graph for fn in functions_of(node.args) for n in left_names(fn))
    )


def _reads_back(text: str, graph: Graph) -> bool:
    bindings = dict.fromkeys(names_in(graph), _anything)
    try:
        return parse(text, bindings=bindings).nodes.keys() == graph.nodes.keys()
    except HydroError:
        return False


def _anything(x: Any) -> Any:
    """Stands for a function of which only the name matters."""
    return x


def _chained(graph: Graph) -> dict[NodeId, NodeId]:
    """From a node to the one that is written behind it in the same pipeline."""
    reads = Counter(endpoint.node for node in graph for endpoint in node.inputs)
    chained = {}
    nodes = [node for node in graph if not _is_implicit(node, reads)]
    for node, after in zip(nodes, nodes[1:], strict=False):
        generated = node.id.startswith(f"{node.op.name}_")
        first = after.inputs[:1] == (Endpoint(node.id),)
        if generated and first and reads[node.id] == 1 and node.op.outputs == "one":
            chained[node.id] = after.id
    return chained


def _is_implicit(node: Node, reads: Mapping[NodeId, int]) -> bool:
    """Whether a source is known by being read."""
    return (
        node.op.name == "source"
        and node.args["schema"] is None
        and node.id == node.args["name"]
        and reads[node.id] > 0
    )


def _statements(graph: Graph, chained: Mapping[NodeId, NodeId]) -> Iterator[str]:
    reads = Counter(endpoint.node for node in graph for endpoint in node.inputs)
    behind = set(chained.values())
    for node in graph:
        if node.id in behind or _is_implicit(node, reads):
            continue
        elements = [_end(endpoint) for endpoint in node.inputs[:1]]
        last = node
        elements.append(_element(graph, last))
        while last.id in chained:
            last = graph[chained[last.id]]
            elements.append(_element(graph, last))
        named = last.op.outputs != "none" and not (last.op.optional_input and last.inputs)
        # What nobody reads needs no name, unless it is not the one that would be generated.
        generated = last.id.startswith(f"{last.op.name}_") and chained and not reads[last.id]
        yield _pipeline(elements, f"{last.id} = " if named and not generated else "")


def _pipeline(elements: list[str], head: str) -> str:
    line = head + " -> ".join(elements)
    if len(line) <= WIDTH or len(elements) < 3:
        return line
    return head + "\n  -> ".join(elements)


def _end(endpoint: Endpoint) -> str:
    if not endpoint.port:
        return endpoint.node
    plain = endpoint.port.isdigit() or endpoint.port.isidentifier()
    return f"{endpoint.node}[{endpoint.port if plain else quoted(endpoint.port)}]"


def _element(graph: Graph, node: Node) -> str:
    if node.op.name == "sink" and _may_be_a_name(graph, node):
        return str(node.args["name"])
    return f"{node.op.name}({', '.join(_arguments(node))})"


def _may_be_a_name(graph: Graph, sink: Node) -> bool:
    name = sink.args["name"]
    taken = name in graph.nodes and graph[name].op.name != "sink"
    return name.isidentifier() and not taken and name not in graph.sources


def _arguments(node: Node) -> Iterator[str]:
    ports = node.op.inputs
    for position, endpoint in enumerate(node.inputs[1:], start=1):
        label = "" if node.op.variadic else f"{ports[position].keyword}="
        yield label + _end(endpoint)
    for arg in node.op.args:
        yield from _argument(node, arg)


def _argument(node: Node, arg: Arg) -> Iterator[str]:
    value = node.args[arg.name]
    match arg.kind:
        case "named_columns":
            yield from map(quoted, value)
        case "computed":
            yield from (f"{name}={function_text(fn)}" for name, fn in value)
        case "renames":
            yield from (f"{new}={quoted(old)}" for new, old in value)
        case "aggregates":
            yield from (f"{name}={_aggregate(a)}" for name, a in value)
        case "function":
            yield function_text(value) if arg.positional else f"{arg.name}={function_text(value)}"
            yield from _promises(value)
        case _ if value == arg.default and not arg.required:
            return
        case "name" if node.op.name == "source" and value == node.id:
            return
        case _:
            text = _text(arg, value)
            yield text if arg.positional and arg.required else f"{arg.name}={text}"


def _promises(fn: Fn) -> Iterator[str]:
    algebra = fn.algebra
    for name in ("commutative", "associative", "idempotent", "neutral"):
        if getattr(algebra, name):
            yield f"{name}=True"
    if fn.returns is not None:
        yield f"returns={schema_text(fn.returns)}"


def _aggregate(aggregate: Aggregate) -> str:
    parts = (function_text(a) if isinstance(a, Fn) else quoted(a) for a in aggregate.arguments)
    return f"{aggregate.function}({', '.join(parts)})"


def _text(arg: Arg, value: Any) -> str:
    match arg.kind:
        case "schema":
            return schema_text(value)
        case "order" if isinstance(value, Fn):
            return function_text(value)
        case "columns" | "order" if len(value) == 1:
            return quoted(value[0])
        case "columns" | "order" | "ports" | "items":
            return literal(list(value))
        case "fds":
            pairs = (f"{_fields(left)}: {_fields(right)}" for left, right in value)
            return f"{{{', '.join(pairs)}}}"
        case _:
            return literal(value)


def _fields(names: tuple[str, ...]) -> str:
    return quoted(names[0]) if len(names) == 1 else literal(names)


def is_name(text: str) -> bool:
    """Whether a text can be the name of a stream.

    >>> is_name("add_member"), is_name("a b"), is_name("lambda")
    (True, False, False)
    """
    return text.isidentifier() and not keyword.iskeyword(text)
