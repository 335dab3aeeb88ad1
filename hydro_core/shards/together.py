"""The programs of all shards as one: they stand beside each other, and what they give is added up.

A pipeline runs it like any other program. Every shard has states of its own in it, and each output
is one: an ordered one is sorted again. What no shard has a part of is computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from hydro_core.catalog.combine import UNION
from hydro_core.catalog.internal import OF_SHARD
from hydro_core.catalog.itemwise import SINK, SOURCE
from hydro_core.compile import CompiledProgram, best_plan, compile_graph
from hydro_core.engines import Options, run_whole
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId, behind, reachable
from hydro_core.optimize.optimizer import OptimizedProgram
from hydro_core.plan.semantic_hash import hash_of, program_hashes
from hydro_core.shards.program import ShardedProgram
from hydro_core.ticks.tick import Outputs, TickInput


def run_shards(
    program: ShardedProgram, ticks: Iterable[TickInput], options: Options
) -> Iterator[Outputs]:
    """The outputs of every tick, as items: those of the whole program."""
    planned = side_by_side(program, optimize=options.optimized)
    return run_whole(planned, ticks, replace(options, optimized=False))


def side_by_side(program: ShardedProgram, *, optimize: bool) -> CompiledProgram:
    """What runs: all shards by their best plan, or as they are written."""
    return ShardedPlan.of(program, best_plan if optimize else as_written).compiled


@dataclass(frozen=True)
class ShardedPlan:
    """A program that is cut into shards, with the plan by which a shard runs."""

    cut: ShardedProgram
    shard: OptimizedProgram
    """The plan of the first shard: those of the others have another number in them."""

    @staticmethod
    def of(
        cut: ShardedProgram, planned: Callable[[CompiledProgram], OptimizedProgram]
    ) -> ShardedPlan:
        """A program that is cut, with the plan that is found for a shard."""
        return ShardedPlan(cut, planned(cut.first))

    @cached_property
    def compiled(self) -> CompiledProgram:
        """All of it as a program that can be run."""
        types, graph = self.cut.first.typed.inputs, self.graph
        return compile_graph(graph, {n: t.item for n, t in types.items() if n in graph.sources})

    @cached_property
    def graph(self) -> Graph:
        """All of it as one program, with the inputs and outputs of the whole."""
        nodes = {node.id: node for node in self._nodes()}
        sinks = [node for node in nodes.values() if node.op is SINK]
        ends = (n.id for n in nodes.values() if n.op is SINK or n.op is SOURCE)
        used = behind(nodes, ends)
        order = list(self.cut.outputs)
        sinks.sort(key=lambda sink: order.index(sink.args["name"]))
        inner = [n for n in nodes.values() if n.id in used and n.op is not SINK]
        graph = self.cut.first.graph
        return Graph.of([*inner, *sinks], graph.name, graph.warnings)

    def optimized(self) -> OptimizedProgram:
        """The same as a plan, with what is to be said of it; costs are those of all shards."""
        count = self.cut.count
        return replace(
            self.shard,
            typed=self.compiled.typed,
            cost_before=count * self.shard.cost_before,
            cost_after=count * self.shard.cost_after,
            streams={},
            statements=(),
            bounds=(),
        )

    def hashes(self, program: Mapping[NodeId, str]) -> Mapping[NodeId, str]:
        """What streams of `graph` mean, whatever plan was found for a shard.

        Args:
            program: the hashes of the streams of the whole program.
        """
        found: dict[NodeId, str] = {}
        plain = ShardedPlan.of(self.cut, as_written)
        own = program_hashes(plain.compiled.typed)
        for number in range(self.cut.count):
            for node, stream in self.shard.streams.items():
                meant = own.get(plain.name_in(stream, number))
                if meant is not None:
                    found[self.name_in(node, number)] = meant
        for then in self.cut.merges.values():
            found |= {self._merged(n.id): program[n.id] for n in then if n.id in program}
        written = self.cut.first.graph
        for sinks in written.sinks.values():
            for sink in sinks:
                reads = sink.inputs[0]
                while written[reads.node].op is OF_SHARD:
                    reads = written[reads.node].inputs[0]
                if reads.node in program:
                    of = hash_of(reads, program) if reads.port else program[reads.node]
                    found[_whole(sink)] = of
        return {node: found[node] for node in found if node in self.graph.nodes}

    def name_in(self, node: NodeId, number: int) -> NodeId:
        """The name that a node of a shard's plan has in the graph, for one of the shards."""
        return f"{node} of shard {number}" if node in self._in_shards else node

    def _nodes(self) -> Iterator[Node]:
        for node in self._graph:
            if node.op is not SINK and node.id not in self._in_shards:
                yield node
        for number in range(self.cut.count):
            for node in self._graph:
                if node.id in self._in_shards and node.op is not SINK:
                    yield self._copied(node, number)
        for sinks in self._graph.sinks.values():
            for sink in sinks:
                yield from self._put_out(sink)

    def _copied(self, node: Node, number: int) -> Node:
        args = node.args.with_(shard=number) if node.op is OF_SHARD else node.args
        inputs = tuple(self._end(end, number) for end in node.inputs)
        return node.with_(id=self.name_in(node.id, number), args=args, inputs=inputs)

    def _put_out(self, sink: Node) -> Iterator[Node]:
        """What a sink of the shards gives: all parts of it, or what the first shard alone has."""
        reads = sink.inputs[0]
        if reads.node not in self._routed:
            yield sink.with_(inputs=(self._end(reads, 0),))
            return
        ends = tuple(self._end(reads, number) for number in range(self.cut.count))
        last = Endpoint(_whole(sink))
        yield Node(last.node, UNION, inputs=ends, span=sink.span)
        for node in self.cut.merges.get(sink.args["name"], ()):
            yield node.with_(id=self._merged(node.id), inputs=(last,))
            last = Endpoint(self._merged(node.id))
        yield sink.with_(inputs=(last,))

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

    def _end(self, end: Endpoint, number: int) -> Endpoint:
        return Endpoint(self.name_in(end.node, number), end.port)

    def _merged(self, node: NodeId) -> NodeId:
        taken = node in self._graph.nodes and node not in self._in_shards
        return f"{node} merged" if taken else node


def as_written(program: CompiledProgram) -> OptimizedProgram:
    """A program as its own plan."""
    return OptimizedProgram(
        program.typed, 0.0, 0.0, streams={node.id: node.id for node in program.graph}
    )


def _whole(sink: Node) -> NodeId:
    return f"{sink.id} of all shards"
