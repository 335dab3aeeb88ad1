"""Programs in two steps: what every shard does with its part, and what is then done once.

One result of all items can be made of one result of each shard, if it is an aggregate whose parts
can be merged; an order can be made anew, if the items that were sorted are still the same. What is
made of these results is done once too, in the last step. It reads nothing else of what is cut: it
would be the whole program again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.partition.steps import FlowStep, Steps
from hydro_core.catalog.group import REDUCE
from hydro_core.catalog.internal import AGGREGATE_RESULT
from hydro_core.catalog.io import SINK, SOURCE
from hydro_core.catalog.parts import merging, shard_parts
from hydro_core.catalog.spec import Args, Never, OpSpec, OrderRule, Replicated
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.ir.walk import behind
from hydro_core.types.item import ItemType
from hydro_core.types.stream import Order

Made = tuple[OpSpec, Args]
"""An operator with its arguments."""


@dataclass(frozen=True)
class TwoSteps:
    """A program in two steps, each a program."""

    shards: Graph
    """Every shard's: beside outputs of the program it has those that the last step reads."""
    cut: Graph
    """The same without the operators that make one result of a part: what must be cut well."""
    last: Graph | None
    """None: all outputs are made by the shards."""

    @property
    def gathered(self) -> tuple[str, ...]:
        """The names of what the shards give to the last step."""
        sources = () if self.last is None else self.last.sources
        return tuple(name for name in sources if name in self.shards.sinks)


def steps_of_result(typed: Typed, node: Node) -> tuple[Made, tuple[Made, ...]] | None:
    """How one result of all items is made of one of each shard; None where it cannot be."""
    aggregates = node.args.get("aggregates")
    if len(node.inputs) != 1:
        return None
    item, output = typed.types[node.inputs[0]].item, typed.of(node.id).item
    if aggregates is not None:
        return _of_aggregate(node, item, output)
    function = node.args.get("f")
    if function is None or not node.spec.single or ("init" in node.args and item != output):
        return None
    if not (function.algebra.commutative and function.algebra.associative):
        return None
    return (REDUCE, Args((("f", function),))), ((node.op, node.args),)


def _of_aggregate(
    node: Node, item: ItemType, output: ItemType
) -> tuple[Made, tuple[Made, ...]] | None:
    if node.args["by"]:
        return None
    parts = shard_parts(node.args, item, output)
    merged = None if parts is None else merging(parts.given["aggregates"])
    if parts is None or merged is None:
        return None
    merge = node.args.with_(aggregates=merged)
    return (node.op, parts.given), ((node.op, merge), (AGGREGATE_RESULT, parts.made))


def in_two_steps(steps: Steps, replicated: frozenset[str] = frozenset()) -> TwoSteps | None:
    """The program in two steps, or as it is if the shards can do all of it.

    None where the last step would have to read what is cut as it is.
    """
    cut = steps.cut(replicated)
    whole = {step.node.id for step in steps if _is_one_result(step, cut)}
    graph = steps.typed.graph
    last = _Last(steps, cut, frozenset(whole))
    for sinks in graph.sinks.values():
        for sink in sinks:
            if last.makes(sink, behind(graph, [sink.id])) and not last.take(sink):
                return None
    return TwoSteps(last.of_shards(), last.as_cut(), last.graph())


def _is_one_result(step: FlowStep, cut: frozenset[NodeId]) -> bool:
    """Whether the operator needs in one place what is cut."""
    if not isinstance(step.node.spec.partition, Never | Replicated):
        return False
    parts = [i for i, name in enumerate(step.inputs) if name in cut]
    alone = len(parts) == 1 and step.linear[parts[0]] and len(step.inputs) > 1
    return bool(parts) and not alone


@dataclass
class _Last:
    """The last step, as it is put together from its sinks backwards."""

    steps: Steps
    cut: frozenset[NodeId]
    whole: frozenset[NodeId]
    """The operators that need in one place what is cut."""
    nodes: dict[NodeId, Node] = field(default_factory=dict)
    sinks: set[NodeId] = field(default_factory=set)
    parts: dict[Endpoint, Node] = field(default_factory=dict)
    """The sinks of what is gathered; maybe behind an operator that makes the part."""
    partials: dict[NodeId, Node] = field(default_factory=dict)

    @property
    def _typed(self) -> Typed:
        return self.steps.typed

    def makes(self, sink: Node, behind: set[NodeId]) -> bool:
        """Whether the last step makes what a sink puts out."""
        reads = sink.inputs[0]
        if reads.node not in self.cut:
            return False
        return not self.whole.isdisjoint(behind) or self._typed.types[reads].order is Order.TOTAL

    def take(self, sink: Node) -> bool:
        """Puts all that leads to the sink into the last step; False where that is not possible."""
        self.sinks.add(sink.id)
        self.nodes[sink.id] = sink
        todo = list(sink.inputs)
        while todo:
            stream = todo.pop()
            if stream.node in self.nodes:
                continue
            node = self._typed.graph[stream.node]
            if self._gather(stream, node):
                continue
            if stream.node in self.cut and not node.inputs:
                return False
            self.nodes[node.id] = node
            todo += node.inputs
        return True

    def _gather(self, stream: Endpoint, node: Node) -> bool:
        """Whether what the shards give makes the stream; then it does."""
        if stream in self.parts:
            return True
        if node.id in self.whole:
            made = steps_of_result(self._typed, node)
            if made is None:
                return False
            of_part, of_parts = made
            name = _part_of(stream)
            self.partials[name] = node.with_(id=name, op=of_part[0], args=of_part[1])
            self._give(stream, Endpoint(name), of_parts)
            return True
        sort = self._sort_of(stream)
        if sort is None:
            return False
        given = sort.inputs[0] if stream.node == sort.id else stream
        self._give(stream, given, ((sort.op, sort.args),))
        return True

    def _give(self, stream: Endpoint, given: Endpoint, then: tuple[Made, ...]) -> None:
        name = _part_of(stream)
        span = self._typed.graph[stream.node].span
        sink = Node(f"{name} given", SINK, Args((("name", name),)), (given,), span)
        self.parts[stream] = sink
        reads = Endpoint(name)
        for number, (op, args) in enumerate(then):
            made = f"{stream} merged" if number < len(then) - 1 else str(stream)
            self.nodes[made] = Node(made, op, args, (reads,), span)
            reads = Endpoint(made)

    def _sort_of(self, stream: Endpoint) -> Node | None:
        """The operator that gave the stream its order, if sorting it again gives the same."""
        types = self._typed.types
        item, seen = types[stream].item, set[NodeId]()
        while types[stream].order is Order.TOTAL and stream.node not in seen:
            seen.add(stream.node)
            node = self._typed.graph[stream.node]
            same = node.op.lineage is None and node.inputs and types[stream].item == item
            if not same or node.id in self.whole:
                return None
            if node.spec.order is OrderRule.GIVES:
                return node
            if node.spec.order is not OrderRule.KEEPS:
                return None
            stream = node.inputs[0]
        return None

    def of_shards(self) -> Graph:
        return self._of_shards({**self.partials, **{sink.id: sink for sink in self.parts.values()}})

    def as_cut(self) -> Graph:
        """The same without the operators that make one result of a part."""
        sinks = {}
        for sink in self.parts.values():
            (reads,) = sink.inputs
            partial = self.partials.get(reads.node)
            sinks[sink.id] = sink if partial is None else sink.with_(inputs=partial.inputs)
        return self._of_shards(sinks)

    def _of_shards(self, given: Mapping[NodeId, Node]) -> Graph:
        graph = self._typed.graph
        sinks = [s for sinks in graph.sinks.values() for s in sinks if s.id not in self.sinks]
        known: Mapping[NodeId, Node] = {**graph.nodes, **given}
        sources = (node.id for node in graph.sources.values())
        used = behind(known, (*sources, *(sink.id for sink in sinks), *given))
        return Graph.of((node for name, node in known.items() if name in used), graph.name)

    def graph(self) -> Graph | None:
        """The last step; it reads what the shards give, and what every shard has whole."""
        if not self.sinks:
            return None
        sources = []
        for sink in self.parts.values():
            name, item = sink.args["name"], self._item(sink.inputs[0])
            args = Args((("schema", item), ("name", name), ("fds", ())))
            sources.append(Node(name, SOURCE, args, (), sink.span))
        nodes = [
            node.with_(inputs=tuple(map(self._renamed, node.inputs)))
            for node in self.nodes.values()
        ]
        return Graph.of((*sources, *nodes), self._typed.graph.name)

    def _item(self, stream: Endpoint) -> ItemType:
        partial = self.partials.get(stream.node)
        if partial is None:
            return self._typed.types[stream].item
        return partial.op.result(partial.args, (self._typed.types[partial.inputs[0]].item,))

    def _renamed(self, stream: Endpoint) -> Endpoint:
        return Endpoint(str(stream)) if stream in self.parts else stream


def _part_of(stream: Endpoint) -> str:
    return f"{stream} of shards"
