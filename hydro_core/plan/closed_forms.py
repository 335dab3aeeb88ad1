"""Feedback through `prev` that has a closed form: programs that say by hand what an operator says.

Each rewrite is an equation by induction over ticks, and leaves a plan in which a range needs no
tick by tick. With d free of x, and the union read by nobody else:

- `prev(persist a)` is `old a`;
- `x = union(prev x, d)` is `persist d`, also where d depends on x;
- `x = unique(union(prev x, d))` is `persist n`, `n = difference(unique d, old n)`;
- `x = f(union(prev x, d))` is `running_f(d)`, for a reduction that is associative and commutative,
  `latest`, and sums and extremes of columns that keep their names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hydro_core.analysis.infer import Typed, infer
from hydro_core.catalog.classes import Before, Distinct, History, Sum, passes_on
from hydro_core.catalog.combine import DIFFERENCE, UNION
from hydro_core.catalog.internal import running
from hydro_core.catalog.parts import MERGES
from hydro_core.catalog.spec import NO_ARGS
from hydro_core.catalog.state import OLD, PERSIST
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.ir.walk import predecessors, reachable
from hydro_core.types.common import common_type
from hydro_core.types.item import ItemType
from hydro_core.types.stream import Order


def with_closed_forms(typed: Typed) -> Typed:
    """The program with its closed forms in the place of feedback; it gives the same outputs."""
    while (graph := _rewritten(typed)) is not None:
        found = infer(graph, {name: s.item for name, s in typed.inputs.items()})
        typed = found
    return typed


def origin(graph: Graph, stream: Endpoint, *, as_sets: bool = False) -> Endpoint:
    """Where a stream comes from, behind operators that pass it on.

    With `as_sets` it is asked only which items are there, not how often.
    """
    seen: set[NodeId] = set()
    while stream.node not in seen:
        cls = graph[stream.node].cls
        if not (passes_on(cls) or (as_sets and isinstance(cls, Distinct))):
            break
        seen.add(stream.node)
        stream = graph[stream.node].inputs[0]
    return stream


@dataclass(frozen=True, slots=True)
class _Sum:
    """`union(prev x, d)`: what comes from the tick before, and the streams that make up d."""

    node: Node
    before: Endpoint
    added: tuple[Endpoint, ...]


def _rewritten(typed: Typed) -> Graph | None:
    """The graph with one more closed form; None where there is none left."""
    for node in typed.graph:
        if typed.of(node.id).order is Order.TOTAL or node.op.outputs == "none":
            continue
        found = (
            _before(typed, node)
            or _history(typed, node)
            or _distinct(typed, node)
            or _running(typed, node)
        )
        if found:
            return _with(typed.graph, found)
    return None


def _before(typed: Typed, x: Node) -> list[Node]:
    """`prev(persist a)`."""
    if not isinstance(x.cls, Before):
        return []
    persist = typed.graph[origin(typed.graph, x.inputs[0]).node]
    if persist.cls != History():
        return []
    return [x.with_(op=OLD, inputs=persist.inputs)]


def _history(typed: Typed, x: Node) -> list[Node]:
    """`x = union(prev x, d)`."""
    fed = _fed_by(typed, x, Endpoint(x.id))
    if fed is None:
        return []
    added, more = _added(typed, x, fed.added)
    if added is None:
        return []
    return [*more, x.with_(op=PERSIST, args=NO_ARGS, inputs=(added,))]


def _distinct(typed: Typed, x: Node) -> list[Node]:
    """`x = unique(union(prev x, d))`."""
    fed = _feeding(typed, x) if isinstance(x.cls, Distinct) else None
    if fed is None:
        return []
    added, more = _added(typed, x, fed.added)
    if added is None:
        return []
    each, seen, new = (Node(_name(typed.graph, f"{x.id}_{n}"), x.op) for n in _PARTS)
    return [
        *more,
        each.with_(inputs=(added,), span=x.span),
        seen.with_(op=OLD, inputs=(Endpoint(new.id),), span=x.span),
        new.with_(op=DIFFERENCE, inputs=(Endpoint(each.id), Endpoint(seen.id)), span=x.span),
        x.with_(op=PERSIST, args=NO_ARGS, inputs=(Endpoint(new.id),)),
    ]


_PARTS = ("each", "seen", "new")


def _running(typed: Typed, x: Node) -> list[Node]:
    """`x = f(union(prev x, d))` for an f whose result is an item like those that it is made of."""
    over_all = running(x.op)
    if over_all is None or not _absorbs(x):
        return []
    fed = _feeding(typed, x)
    if fed is None:
        return []
    added, more = _added(typed, x, fed.added)
    if added is None:
        return []
    return [*more, x.with_(op=over_all, inputs=(added,))]


def _absorbs(x: Node) -> bool:
    """Whether a result counts for the items that it was made of, in any order."""
    if "init" in x.args:
        return False
    if "aggregates" in x.args:
        return all(
            MERGES.get(a.function) == a.function and a.arguments == (name,)
            for name, a in x.args["aggregates"]
        )
    f = x.args.get("f")
    return f is None or (f.algebra.associative and f.algebra.commutative)


def _feeding(typed: Typed, x: Node) -> _Sum | None:
    """The sum that x reads, if x feeds it, nobody else reads it and d is free of x."""
    graph = typed.graph
    end = origin(graph, x.inputs[0])
    union = graph[end.node]
    way = _way(graph, x.inputs[0], end)
    if any(len(_readings(graph, n)) > 1 for n in way):
        return None
    fed = _fed_by(typed, union, Endpoint(x.id))
    if fed is None or x.id in reachable(predecessors(graph), (e.node for e in fed.added)):
        return None
    return fed


def _fed_by(typed: Typed, union: Node, x: Endpoint) -> _Sum | None:
    """The node as the sum of the tick before of x and of others."""
    graph = typed.graph
    if not isinstance(union.cls, Sum) or typed.of(union.id).order is Order.TOTAL:
        return None
    for i, stream in enumerate(union.inputs):
        before = origin(graph, stream)
        added = (*union.inputs[:i], *union.inputs[i + 1 :])
        if added and _is_prev_of(graph, before, x):
            return _Sum(union, before, added)
    return None


def _is_prev_of(graph: Graph, before: Endpoint, x: Endpoint) -> bool:
    node = graph[before.node]
    return isinstance(node.cls, Before) and origin(graph, node.inputs[0]) == x


def _added(
    typed: Typed, x: Node, added: tuple[Endpoint, ...]
) -> tuple[Endpoint | None, list[Node]]:
    """One stream of what is added, of the item type of x; with the nodes that make it."""
    types = [_item(typed, e) for e in added]
    item: ItemType | None = types[0]
    for other in types[1:]:
        item = None if item is None else common_type(item, other)
    if item != typed.of(x.id).item:
        return None, []
    if len(added) == 1:
        return added[0], []
    union = Node(_name(typed.graph, f"{x.id}_added"), UNION, NO_ARGS, added, x.span)
    return Endpoint(union.id), [union]


def _item(typed: Typed, stream: Endpoint) -> ItemType:
    found = typed.types.get(stream) or typed.of(stream.node)
    return found.item


def _way(graph: Graph, start: Endpoint, end: Endpoint) -> list[NodeId]:
    """The nodes from one stream back to another, behind operators that pass it on."""
    way = [start.node]
    while way[-1] != end.node:
        way.append(graph[way[-1]].inputs[0].node)
    return way


def _readings(graph: Graph, node: NodeId) -> list[Node]:
    return [n for n in graph for e in n.inputs if e.node == node]


def _name(graph: Graph, wanted: str) -> NodeId:
    """A name that no node has."""
    name, number = wanted, 1
    while name in graph.nodes:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _with(graph: Graph, changed: Iterable[Node]) -> Graph:
    """The graph with these nodes, without those that were read and are not any more."""
    nodes: dict[NodeId, Node] = {**graph.nodes, **{n.id: n for n in changed}}
    was_read = {e.node for n in graph for e in n.inputs}
    while True:
        read = {e.node for n in nodes.values() for e in n.inputs}
        gone = [n for n in nodes if n in was_read and n not in read]
        if not gone:
            return Graph.of(nodes.values(), graph.name, graph.warnings)
        for n in gone:
            del nodes[n]
