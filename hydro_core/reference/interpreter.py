"""The reference interpreter: runs a program tick by tick, by the formulas of the language page.

Within a tick the strata run in order, and within a stratum a node follows the nodes that it reads;
a recursive component runs to its least fixpoint. After the tick, every stateful operator stores its
input.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.analysis.strata import Strata
from hydro_core.ir.graph import Endpoint, Node, NodeId, components, predecessors, same_tick
from hydro_core.reference import definitions as _registers_all  # noqa: F401 - by being imported
from hydro_core.reference.bag import Bag, NodePast
from hydro_core.reference.definitions.registry import definition_of
from hydro_core.reference.fixpoint import EndlessCycle, Fixpoint, semi_naive
from hydro_core.reference.site import Moment, Site
from hydro_core.settings import Settings
from hydro_core.ticks.tick import TickInput
from hydro_core.types.item import UNKNOWN, Order, StreamType
from hydro_core.types.values import sort_key

__all__ = ["Hooks", "ReferenceRun", "TickInput", "run_ticks"]

Items = list[Any]
Watch = Callable[[Node, Sequence[Bag], Mapping[Endpoint, Bag]], None]
"""Called with each node, its inputs and its outputs, at every evaluation."""
Keep = Callable[[Node, int, int, Bag], Bag]
"""A filter of the items that enter a node, at an input and a tick."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Observers and filters of the streams of a run."""

    watch: Watch | None = None
    keep: Keep | None = None


def run_ticks(
    typed: Typed,
    strata: Strata,
    ticks: Iterable[TickInput],
    settings: Settings | None = None,
    *,
    fixpoint: Fixpoint = semi_naive,
    hooks: Hooks | None = None,
) -> Iterator[Mapping[str, Items]]:
    """The outputs of every tick: in their order if they have one, else sorted."""
    program = reference_program(typed, strata, settings, fixpoint=fixpoint, hooks=hooks)
    run = ReferenceRun(program)
    return map(run.tick, ticks)


def reference_program(
    typed: Typed,
    strata: Strata,
    settings: Settings | None = None,
    *,
    fixpoint: Fixpoint = semi_naive,
    hooks: Hooks | None = None,
) -> ReferenceProgram:
    """A program in the interpreter's form: its nodes in the order of evaluation in a tick."""
    recursive = {node for cycle in strata.recursive for node in cycle}
    groups = components(predecessors(typed.graph, same_tick))
    # Stratum by stratum; within each, a node follows the nodes that it reads.
    parts = [
        NodeGroup(tuple(map(typed.graph.__getitem__, group)), group[0] in recursive)
        for group in sorted(groups, key=lambda group: strata.of[group[0]])
    ]
    reads = {node.id: _now(node) for node in typed.graph}
    return ReferenceProgram(typed, parts, reads, settings or Settings(), fixpoint, hooks or Hooks())


class ReferenceRun:
    """A program that runs one tick after another."""

    def __init__(self, program: ReferenceProgram) -> None:
        self._program = program
        graph = program.typed.graph
        self._pasts = {n.id: past for n in graph if (past := NodePast.of(n)) is not None}
        self._ticks = 0

    def tick(self, tick: TickInput) -> Mapping[str, Items]:
        """The outputs of the next tick."""
        number = self._ticks if tick.number is None else tick.number
        self._ticks += 1
        moment = Moment(number, tick.batches, tick.start, tick.end)
        return TickRun(self._program, self._pasts, moment).outputs()

    def past(self) -> Mapping[NodeId, Sequence[Bag]]:
        """The past that every stateful operator has stored, as of now."""
        return {name: past.kept() for name, past in self._pasts.items()}


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """One node, or the nodes of a cycle within a tick."""

    nodes: tuple[Node, ...]
    recursive: bool


@dataclass(frozen=True, slots=True)
class ReferenceProgram:
    """The parts of a run that are the same in every tick."""

    typed: Typed
    components: Sequence[NodeGroup]
    reads: Mapping[NodeId, Sequence[Endpoint]]
    """The streams that a node reads in the same tick."""
    settings: Settings
    fixpoint: Fixpoint
    hooks: Hooks


class TickRun:
    """One tick: every stream gets its bag."""

    def __init__(
        self,
        program: ReferenceProgram,
        pasts: Mapping[NodeId, NodePast],
        moment: Moment,
    ) -> None:
        self.program, self.pasts, self.moment = program, pasts, moment
        self.streams: dict[Endpoint, Bag] = {}

    def outputs(self) -> Mapping[str, Items]:
        """Runs the tick, ends it, and gives the inputs of the sinks."""
        for component in self.program.components:
            self._evaluate(component)
        for node_id, past in self.pasts.items():
            node = self.program.typed.graph[node_id]
            (entered,) = self._kept(node, [self.streams[node.inputs[0]]])
            past.end_tick(entered, self.streams[Endpoint(node_id)])
        sinks = self.program.typed.graph.sinks
        outputs = self.program.typed.outputs
        return {name: self._collected(sinks[name], stream) for name, stream in outputs.items()}

    def _evaluate(self, component: NodeGroup) -> None:
        if not component.recursive:
            for node in component.nodes:
                reads = self.program.reads[node.id]
                self.streams.update(self._apply(node, [self.streams[e] for e in reads]))
            return
        own = {node.id for node in component.nodes}
        entering = {
            e for node in component.nodes for e in self.program.reads[node.id] if e.node not in own
        }
        given = {endpoint: self.streams[endpoint] for endpoint in entering}
        fixpoint, settings = self.program.fixpoint, self.program.settings
        try:
            self.streams.update(fixpoint(component.nodes, given, self._apply, settings))
        except EndlessCycle as problem:
            self._site(problem.node).fail(*problem.refusal)

    def _apply(self, node: Node, inputs: Sequence[Bag]) -> Mapping[Endpoint, Bag]:
        site, past = self._site(node), self.pasts.get(node.id)
        definition = definition_of(node.op.name)
        inputs = self._kept(node, inputs)
        if past is not None:
            past.now = inputs[0] if inputs else Bag()
            output = definition.function(site, past, *inputs[1:])
        else:
            output = definition.function(site, *inputs)
        if isinstance(output, Bag):
            if not (definition.exact or site.output == UNKNOWN):
                # Fields are put in the order of the node's type, and numbers are converted to its
                # types.
                output = Bag(site.fit(item, site.output) for item in output)
            given = {Endpoint(node.id): output}
        else:
            given = {Endpoint(node.id, port): bag for port, bag in output.items()}
        if self.program.hooks.watch is not None:
            self.program.hooks.watch(node, inputs, given)
        return given

    def _kept(self, node: Node, inputs: Sequence[Bag]) -> Sequence[Bag]:
        keep, tick = self.program.hooks.keep, self.moment.tick
        if keep is None:
            return inputs
        return [keep(node, i, tick, bag) for i, bag in enumerate(inputs)]

    def _site(self, node: Node) -> Site:
        types = self.program.typed.types
        given = types.get(Endpoint(node.id))
        inputs = tuple(types[e] for e in node.inputs)
        return Site(node, inputs, UNKNOWN if given is None else given.item, self.moment)

    def _collected(self, sinks: Sequence[Node], stream: StreamType) -> Items:
        items = [x for sink in sinks for x in self.streams[sink.inputs[0]]]
        if len(sinks) > 1:
            items = [self._site(sinks[0]).fit(x, stream.item) for x in items]
        return items if stream.order is Order.TOTAL else sorted(items, key=sort_key)


def _now(node: Node) -> list[Endpoint]:
    """The streams that the node reads in this tick; an operator that breaks a cycle reads the past
    only.
    """
    return [endpoint for port, endpoint in node.reads() if same_tick(port)]
