"""Where the items of a stream go to other shards, since the operator behind it has another key.

Instead of that, an input may be whole on every shard, where this is less by the estimates: what is
read of it is read by all shards then, and the other side of a join stays where it is.

A program that no routing serves as a whole is cut at some of its streams. On the far side of a cut
stands an input, which is routed by itself: the parts are programs that can be cut into shards. What
the shards have of the stream on the near side is that input: its items are exchanged. A cut right
behind an input exchanges nothing: every shard reads it, and takes a part for each routing. Of
several ways the one is taken that sends fewest bytes in a tick, by the optimizer's cost model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import combinations, islice
from math import inf
from typing import NamedTuple

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.partition.search import ChoiceSearch
from hydro_core.analysis.partition.steps import Steps, steps_of
from hydro_core.analysis.partition.two_steps import in_two_steps
from hydro_core.catalog.io import SINK, SOURCE
from hydro_core.catalog.spec import Args
from hydro_core.compile import Compiled, compile_graph
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.optimize.cost import CostModel
from hydro_core.optimize.egraph import EGraph
from hydro_core.optimize.load import load
from hydro_core.optimize.optimizer import preferred, prepare
from hydro_core.optimize.statistics import ROWS, Statistics
from hydro_core.types.item import Array, Decimal, ItemType, Scalar, children
from hydro_core.types.stream import Order

_MOST_TRIED = 24
"""How many sets of cuts are tried that are cheaper than the one that is found step by step."""

_MOST_BROADCAST = 2
"""So many inputs at most are whole on every shard without that somebody has chosen it."""
_MARGIN = 2.0
"""How many times less the bytes of a broadcast must be than those of the exchanges that it spares:
a broadcast that was estimated too low costs each shard all of it, and grows with their number.
"""

ExchangedInput = tuple[NodeId, int]
"""An operator, and which of its inputs is exchanged before it enters."""


@dataclass(frozen=True)
class Exchanged:
    """A program that is cut at some of its streams."""

    typed: Typed
    streams: Mapping[str, str | None]
    """The inputs on the far sides, by their names; of a cut right behind an input, its name."""
    broadcast: frozenset[str] = frozenset()
    """The inputs that every shard gets whole, beside those that somebody has chosen."""


def exchanged(
    typed: Typed, replicated: frozenset[str], count: int, stats: Statistics | None = None
) -> Exchanged | None:
    """The program with exchanges, or inputs whole on every shard, of as few bytes as make it one
    that can be cut.

    None where none do. `replicated` are the inputs that somebody has chosen to be whole on every
    shard; without `stats` each input has the same number of rows.
    """
    traffic = Traffic(typed, stats)
    best = _exchanges(typed, replicated, traffic)
    # Both are to be sent to the others: all of what is whole, of what is exchanged a part.
    least = inf if best is None else best.bytes / max(2, count)
    steps = steps_of(typed)
    found = None if best is None else _with(typed, best.cuts)
    for some, bytes_ in _broadcasts(steps, replicated, traffic):
        if _MARGIN * bytes_ >= least:
            break
        way = _exchanges(typed, replicated | some, traffic)
        if way is None:
            continue
        total = _MARGIN * bytes_ + way.bytes / max(2, count)
        if total < least:
            least, found = total, replace(_with(typed, way.cuts), broadcast=some)
    return found


class _Cuts(NamedTuple):
    """Cuts that are enough, and how many bytes they send in a tick."""

    cuts: frozenset[ExchangedInput]
    bytes: float


def _broadcasts(
    steps: Steps, replicated: frozenset[str], traffic: Traffic
) -> list[tuple[frozenset[str], float]]:
    """Some inputs that may be whole on every shard while others are cut, and what all shards then
    read of them; what is least comes first.
    """
    names = [s.name for s in steps.sources.values() if s.name not in replicated]
    before = steps.cut(replicated)
    found = []
    for size in range(1, min(_MOST_BROADCAST, len(names) - 1) + 1):
        for some in map(frozenset, combinations(names, size)):
            after = steps.cut(replicated | some)
            if not any(step.node.op is SINK and step.node.id in after for step in steps):
                continue
            whole = before - after
            sent = {Endpoint(node) for node, s in steps.sources.items() if s.name in some}
            for step in steps:
                if step.node.id in after:
                    sent |= {end for end in step.node.inputs if end.node in whole}
            found.append((some, sum(map(traffic.of, sorted(sent)))))
    return sorted(found, key=lambda way: (way[1], sorted(way[0])))


def _exchanges(typed: Typed, replicated: frozenset[str], traffic: Traffic) -> _Cuts | None:
    """The exchanges of the fewest bytes that are enough; None where none are."""
    cuts = _candidates(typed, replicated, traffic)
    if not cuts:
        return None if cuts is None else _Cuts(cuts, 0.0)
    costs = {edge: _cost(typed, edge, traffic) for edge in cuts}
    enough = cuts
    for edge in sorted(cuts, key=lambda edge: (-costs[edge], edge)):
        # What costs most is first given up. What is left can do without none of them.
        if _serves(_with(typed, enough - {edge}), replicated):
            enough -= {edge}
    for fewer in islice(_cheapest_first(costs), _MOST_TRIED):
        if _total(costs, fewer) >= _total(costs, enough):
            break
        if _serves(_with(typed, fewer), replicated):
            enough = fewer
    return _Cuts(enough, _total(costs, enough))


def _cost(typed: Typed, edge: ExchangedInput, traffic: Traffic) -> float:
    """The bytes that an exchange sends in a tick; behind an input it is one more routing."""
    end = _read_by(typed, edge)
    return 1.0 if typed.graph[end.node].op is SOURCE else traffic.of(end)


def _total(costs: Mapping[ExchangedInput, float], cuts: Collection[ExchangedInput]) -> float:
    return sum(costs[edge] for edge in cuts)


def _cheapest_first(costs: Mapping[ExchangedInput, float]) -> Iterator[frozenset[ExchangedInput]]:
    """All sets of cuts but the empty one, by what they cost.

    From a set the next ones have one edge more, or another one as their dearest.
    """
    edges = sorted(costs, key=lambda edge: (costs[edge], edge))
    queue: list[tuple[float, tuple[int, ...]]] = [(costs[edges[0]], (0,))]
    while queue:
        total, chosen = heappop(queue)
        yield frozenset(edges[place] for place in chosen)
        after = chosen[-1] + 1
        if after < len(edges):
            more = total + costs[edges[after]]
            heappush(queue, (more, (*chosen, after)))
            heappush(queue, (more - costs[edges[after - 1]], (*chosen[:-1], after)))


def _candidates(
    typed: Typed, replicated: frozenset[str], traffic: Traffic
) -> frozenset[ExchangedInput] | None:
    """Cuts that are enough; each round adds those before the operators that are in the way."""
    cuts: frozenset[ExchangedInput] = frozenset()
    while True:
        found = _with(typed, cuts)
        steps = _cut_steps(found.typed, replicated)
        if steps is None:
            return None
        search = ChoiceSearch(steps)
        if search.exists(replicated):
            return cuts
        blocked = [step.node.id for step in search.blockers() if step.node.id in typed.graph.nodes]
        ways = ([e for e in w if e not in cuts] for node in blocked for w in _before(typed, node))
        more = {min(way, key=lambda edge: _cost(typed, edge, traffic)) for way in ways if way}
        if not more:
            return None
        cuts |= more


def _before(typed: Typed, node: NodeId) -> Iterator[list[ExchangedInput]]:
    """The edges that lead to each input of an operator, as far up as one stream alone leads there.

    The farthest comes first: where all cost the same, operators stand behind the exchange.
    """
    graph = typed.graph
    for position in range(len(graph[node].inputs)):
        edges = [(node, position)]
        while True:
            end = _read_by(typed, edges[0])
            above = graph[end.node]
            if len(above.inputs) != 1 or len(graph.readers(above.id)) != 1 or end.port:
                break
            edges.insert(0, (above.id, 0))
        kinds = [(edge, typed.types.get(_read_by(typed, edge))) for edge in edges]
        yield [e for e, k in kinds if k is not None and k.order is Order.NONE and not k.single]


def _read_by(typed: Typed, edge: ExchangedInput) -> Endpoint:
    node, position = edge
    return typed.graph[node].inputs[position]


def _serves(found: Exchanged, replicated: frozenset[str]) -> bool:
    steps = _cut_steps(found.typed, replicated)
    return steps is not None and ChoiceSearch(steps).exists(replicated)


def _cut_steps(typed: Typed, replicated: frozenset[str]) -> Steps | None:
    """What of a program must be cut well; None where it is not made in two steps either."""
    steps = steps_of(typed)
    parts = in_two_steps(steps, replicated)
    if parts is None:
        return None
    return steps_of(part_of(typed, parts.cut).typed)


def part_of(typed: Typed, graph: Graph) -> Compiled:
    """A part of a program, or what was made of it; its inputs are as they are in the program."""
    given = {name: typed.inputs[name].item for name in graph.sources if name in typed.inputs}
    return compile_graph(graph, given)


def _with(typed: Typed, cuts: Collection[ExchangedInput]) -> Exchanged:
    """The program, cut at these edges."""
    graph, streams = typed.graph, dict[str, str | None]()
    nodes: dict[NodeId, Node] = {}
    for node in graph:
        inputs = list(node.inputs)
        for position, end in enumerate(node.inputs):
            if (node.id, position) not in cuts:
                continue
            above = graph[end.node]
            name = f"{end} for {node.id}" + (f".{position}" if position else "")
            item = typed.types[end].item
            fds = above.args["fds"] if above.op is SOURCE else ()
            args = Args((("schema", item), ("name", name), ("fds", fds)))
            nodes[name] = Node(name, SOURCE, args, (), node.span)
            inputs[position] = Endpoint(name)
            streams[name] = above.args["name"] if above.op is SOURCE else None
            if streams[name] is None:
                given = f"{name} given"
                nodes[given] = Node(given, SINK, Args((("name", name),)), (end,), node.span)
        nodes[node.id] = node.with_(inputs=tuple(inputs))
    if not streams:
        return Exchanged(typed, {})
    cut = Graph.of(nodes.values(), graph.name, graph.warnings)
    return Exchanged(part_of(typed, cut).typed, streams)


_BYTES = {"boolean": 1, "byte": 1, "short": 2, "integer": 4, "float": 4, "date": 4}
_LONG = 8
_TEXT = 16
"""What a text is expected to take, and what is known by its name only."""
_MANY = 4
"""How many elements an array is expected to have."""


class Traffic:
    """The expected size of the streams of a program, in bytes a tick."""

    def __init__(self, typed: Typed, stats: Statistics | None = None) -> None:
        """`stats`: what is known of the inputs; None: each has the same number of rows."""
        self._typed = typed
        self._rows = _rows(typed, stats or Statistics())

    def of(self, stream: Endpoint) -> float:
        """The bytes of a stream; one that leads to no output is taken for a batch."""
        rows = self._rows.get(str(stream), self._rows.get(stream.node, ROWS))
        return rows * width(self._typed.types[stream].item)


def width(item: ItemType) -> int:
    """The bytes that an item is expected to take.

    >>> from hydro_core.types.ddl import parse_ddl
    >>> width(parse_ddl("id long, name string, paid boolean"))
    25
    """
    match item:
        case Scalar(name):
            return _BYTES.get(name, _TEXT if name in {"string", "binary"} else _LONG)
        case Decimal():
            return 2 * _LONG
        case Array(element):
            return _MANY * width(element)
        case _:
            return sum(width(part) for _, part in children(item)) or _TEXT


def _rows(typed: Typed, stats: Statistics) -> Mapping[str, float]:
    """Rows in a tick, by the names of streams."""
    loaded = load(typed)
    if not loaded.problem.roots:
        return {}
    problem, _ = prepare(loaded)
    space = EGraph(problem, ()).space()
    model = CostModel(space, problem.payloads, stats)
    sizes = model.sizes(tuple(preferred(problem, space).values()))
    named = {name: sizes[cls] for name, cls in space.named.items()}
    streams = {name: named[of] for name, of in loaded.names.items() if of in named}
    return {**named, **streams}
