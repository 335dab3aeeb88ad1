"""The programs of all shards as one: they stand beside each other, and what they give is added up.

A pipeline runs it like any other program. Every shard has states of its own in it, the last step
stands behind the shards, and each output is one. What no shard has a part of is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from hydro_core.catalog.combine import UNION
from hydro_core.catalog.internal import OF_SHARD
from hydro_core.catalog.io import SINK, SOURCE, SOURCE_ITER
from hydro_core.catalog.spec import Args
from hydro_core.compile import Compiled, compile_graph
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId
from hydro_core.ir.walk import behind, reachable
from hydro_core.optimize.optimizer import Optimized
from hydro_core.plan.semantic_hash import hash_of, program_hashes
from hydro_core.shards.program import Sharded


@dataclass(frozen=True)
class Together:
    """A program that is cut into shards, with the plans by which a shard and the last step run."""

    cut: Sharded
    shard: Optimized
    """The plan of the first shard: those of the others have another number in them."""
    last: Optimized | None = None

    @staticmethod
    def of(cut: Sharded, planned: Callable[[Compiled], Optimized]) -> Together:
        """A program that is cut, with the plan that is found for each of its two parts."""
        return Together(cut, planned(cut.first), None if cut.last is None else planned(cut.last))

    @cached_property
    def compiled(self) -> Compiled:
        """All of it as a program that can be run."""
        types, graph = self.cut.first.typed.inputs, self.graph
        return compile_graph(graph, {n: t.item for n, t in types.items() if n in graph.sources})

    @cached_property
    def graph(self) -> Graph:
        """All of it as one program, with the inputs and outputs of the whole."""
        nodes = {node.id: node for node in self._nodes()}
        sinks = [node for node in nodes.values() if node.op.outputs == "none"]
        ends = (n for n in nodes.values() if n.op.outputs == "none" or n.op is SOURCE)
        used = behind(nodes, (node.id for node in ends))
        order = list(self.cut.outputs)
        sinks.sort(key=lambda sink: order.index(sink.args["name"]))
        inner = [n for n in nodes.values() if n.id in used and n.op.outputs != "none"]
        graph = self.cut.first.graph
        return Graph.of([*inner, *sinks], graph.name, graph.warnings)

    def optimized(self) -> Optimized:
        """The same as a plan, with what is to be said of it; costs are those of all shards."""
        parts = [self.shard] * self.cut.count + ([self.last] if self.last else [])
        once = [self.shard] + ([self.last] if self.last else [])
        return Optimized(
            self.compiled.typed,
            sum(part.cost_before for part in parts),
            sum(part.cost_after for part in parts),
            tuple(step for part in once for step in part.steps),
            tuple(note for part in once for note in part.notes),
            self.shard.saturation,
            self.shard.statistics,
            tuple(limit for part in once for limit in part.limits),
        )

    def hashes(self, program: Mapping[NodeId, str]) -> Mapping[NodeId, str]:
        """What streams of `graph` mean, whatever plan was found for a shard.

        Args:
            program: the hashes of the streams of the whole program.
        """
        found: dict[NodeId, str] = {}
        # As they are written, and together: what is exchanged is what was made before it.
        plain = Together.of(self.cut, as_written)
        own = program_hashes(plain.compiled.typed)
        for number in range(self.cut.count):
            for node, stream in self.shard.streams.items():
                meant = own.get(plain.name_in(stream, number))
                if meant is not None:
                    found[self.name_in(node, number)] = meant
        if self.last is not None:
            same = {n: s for n, s in self.last.streams.items() if s in program}
            found |= {self._of_last(node): program[stream] for node, stream in same.items()}
        written = self.cut.first.graph
        for name, sinks in written.sinks.items():
            for sink in sinks:
                reads = sink.inputs[0] if name in self.cut.outputs else None
                while reads is not None and written[reads.node].op is OF_SHARD:
                    reads = written[reads.node].inputs[0]
                if reads is not None and reads.node in program:
                    found_hash = hash_of(reads, program) if reads.port else program[reads.node]
                    found[_whole(sink)] = found_hash
        return {node: found[node] for node in found if node in self.graph.nodes}

    def name_in(self, node: NodeId, number: int) -> NodeId:
        """The name that a node of a shard's plan has in the graph, for one of the shards."""
        return f"{node} of shard {number}" if node in self._in_shards else node

    def _nodes(self) -> Iterator[Node]:
        for node in self._graph:
            if node.op is not SINK and node.id not in self._in_shards | self._exchanged.keys():
                yield node
        for number in range(self.cut.count):
            for node in self._graph:
                if node.id in self._in_shards and node.op.outputs != "none":
                    yield self._copied(node, number)
        for sinks in self._graph.sinks.values():
            for sink in sinks:
                yield from self._put_out(sink)
        yield from self._last_nodes()

    def _copied(self, node: Node, number: int) -> Node:
        args = node.args.with_(shard=number) if node.op is OF_SHARD else node.args
        inputs = tuple(self._end(end, number) for end in node.inputs)
        return node.with_(id=self.name_in(node.id, number), args=args, inputs=inputs)

    def _put_out(self, sink: Node) -> Iterator[Node]:
        """What a sink of the shards gives: all parts of it, or what the first shard alone has."""
        reads, name = sink.inputs[0], sink.args["name"]
        is_whole = reads.node not in self._routed
        ends = [self._end(reads, n) for n in range(1 if is_whole else self.cut.count)]
        if name in self.cut.outputs and is_whole:
            yield sink.with_(inputs=(ends[0],))
            return
        union = _whole(sink) if name in self.cut.outputs else name
        if union in self._fed_back:
            # Where no item ever comes, nothing but this says what the items would be.
            nothing = Node(f"no items of {union}", SOURCE_ITER, self._fed_back[union])
            yield nothing
            ends.append(Endpoint(nothing.id))
        yield Node(union, UNION, inputs=tuple(ends), span=sink.span)
        if name in self.cut.outputs:
            yield sink.with_(inputs=(Endpoint(union),))

    def _last_nodes(self) -> Iterator[Node]:
        if self.last is None:
            return
        graph = self.last.graph
        for node in graph:
            if node.op is SOURCE:
                continue
            inputs = tuple(self._behind_last(graph, end) for end in node.inputs)
            yield node.with_(id=self._of_last(node.id), inputs=inputs)

    def _behind_last(self, graph: Graph, end: Endpoint) -> Endpoint:
        """What the last step reads as a node of the whole."""
        node = graph[end.node]
        if node.op is not SOURCE:
            return Endpoint(self._of_last(end.node), end.port)
        name = node.args["name"]
        return Endpoint(name if name in self.cut.gathered else self._graph.sources[name].id)

    @cached_property
    def _fed_back(self) -> Mapping[str, Args]:
        """What is exchanged and made of itself: literals without items, of the same types.

        A shard's plan takes it as an input, whose type is declared; the whole has no such input.
        """
        reads: dict[str, set[str]] = {}
        for name, source in self.cut.exchanged.items():
            ends = [sink.id for sink in self._graph.sinks.get(name, ()) if source is None]
            made_of = behind(self._graph.nodes, ends)
            named = self._graph.sources.items()
            reads[name] = {other for other, node in named if node.id in made_of}
        types = self.cut.first.typed.inputs
        return {
            name: Args((("items", ()), ("schema", types[name].item)))
            for name in reads
            if name in reachable(reads[name], lambda other: reads.get(other, ()))
        }

    @property
    def _graph(self) -> Graph:
        return self.shard.graph

    @cached_property
    def _in_shards(self) -> set[NodeId]:
        """What is made of what an operator gives that takes the items of a shard."""
        return self._made_of(node for node in self._graph if node.op is OF_SHARD)

    @cached_property
    def _routed(self) -> set[NodeId]:
        """The same where items do not all go to the first shard."""
        cuts = (node for node in self._graph if node.op is OF_SHARD)
        return self._made_of(n for n in cuts if n.args["by"] or n.args["f"] is not None)

    def _made_of(self, nodes: Iterable[Node]) -> set[NodeId]:
        readers = self._graph.readers
        return reachable((n.id for n in nodes), lambda name: (n.id for n in readers(name)))

    @cached_property
    def _exchanged(self) -> Mapping[NodeId, NodeId]:
        """The nodes that stand for inputs which the program has not, and what they are."""
        sources = self._graph.sources
        found = {}
        for name, source in self.cut.exchanged.items():
            if name in sources:
                found[sources[name].id] = name if source is None else sources[source].id
        return found

    def _end(self, end: Endpoint, number: int) -> Endpoint:
        end = Endpoint(self._exchanged.get(end.node, end.node), end.port)
        return Endpoint(self.name_in(end.node, number), end.port)

    def _of_last(self, node: NodeId) -> NodeId:
        taken = node in self._graph.nodes and node not in self._in_shards
        return f"{node} of the last step" if taken else node


def as_written(program: Compiled) -> Optimized:
    """A program as its own plan."""
    return Optimized(program.typed, 0.0, 0.0, streams={node.id: node.id for node in program.graph})


def _whole(sink: Node) -> NodeId:
    return f"{sink.id} of all shards"
