"""From a typed program to the problem that the rules see.

A cycle inside a tick is one opaque shape per stream that leaves it: choosing a node through such a
cycle would be unsound. A cycle through `prev` or `old` is cut where it is first read; the cut is
equated to the stream. `tee` has no node: equal streams share a class anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from hydro_core.analysis.conditions import without_conditions
from hydro_core.analysis.identity import with_typed_functions
from hydro_core.analysis.infer import Typed, never_null
from hydro_core.catalog.classes import Output, Sum
from hydro_core.catalog.spec import Barrier
from hydro_core.ir.graph import Endpoint, Node, NodeId, inputs_first
from hydro_core.optimize.egraph import Problem, StreamDefinition
from hydro_core.optimize.loop import CYCLE, Loop, loops_of, resumes
from hydro_core.optimize.rule import (
    BAG,
    CHAIN,
    UNION,
    FeedbackShape,
    Payload,
    Shape,
    Sort,
    shape_of,
    sort_of,
    two,
)
from hydro_core.types.item import Order

_PLAIN = "@[]"
"""Characters that names of shapes may have, besides letters, digits and `_.-~`."""


@dataclass(frozen=True, slots=True)
class LoadedProblem:
    """A problem, and the way back from it to the program."""

    problem: Problem
    typed: Typed
    loops: Mapping[str, tuple[Loop, Endpoint]]
    """By shape of a loop: the loop and its stream."""
    origins: Mapping[str, Node]
    """By name of a definition: its node."""
    steps: frozenset[str] = frozenset()
    """The shapes of loops that can be updated from the tick before."""
    names: Mapping[str, str] = field(default_factory=dict)
    """By stream of the program: its definition, or the cut of one."""
    solid: frozenset[NodeId] = frozenset()
    """The nodes of the program that never give null."""


@dataclass(slots=True)
class _Builder:
    typed: Typed
    loops: tuple[Loop, ...]
    shapes: dict[str, Shape] = field(default_factory=dict)
    payloads: dict[Payload, int] = field(default_factory=dict)
    definitions: list[StreamDefinition] = field(default_factory=list)
    defined: dict[str, str] = field(default_factory=dict)
    cuts: dict[str, str] = field(default_factory=dict)
    looped: dict[str, tuple[Loop, Endpoint]] = field(default_factory=dict)
    origins: dict[str, Node] = field(default_factory=dict)

    def add(self, name: str, shape: Shape, payload: Payload | None, inputs: tuple[str, ...]) -> str:
        """Defines the stream `name`."""
        shape = self._named(shape)
        number = None
        if shape.payload:
            number = self.payloads.setdefault(payload or Payload(), len(self.payloads))
        self.definitions.append(StreamDefinition(name, shape.name, number, inputs))
        self.defined[name] = name
        return name

    def _named(self, shape: Shape) -> Shape:
        """The shape, with a name that no other shape has."""
        plain, bang = shape.name.removesuffix("!"), "!" if shape.name.endswith("!") else ""
        number = 1
        while self.shapes.setdefault(shape.name, shape) != shape:
            # columns may depend on the arguments: `limit` with a key is not `limit` without
            number += 1
            shape = replace(shape, name=f"{plain}:{number}{bang}")
        return shape

    def loop(self, endpoint: Endpoint) -> Loop | None:
        """The cycle inside a tick that gives a stream; None if there is none."""
        return next((x for x in self.loops if endpoint.node in x.nodes), None)

    def order(self, endpoint: Endpoint) -> Order:
        """The order of a stream."""
        return self.typed.types[endpoint].order

    def as_sort(self, name: str, order: Order, wanted: Sort) -> str:
        if sort_of(order) is wanted:
            return name
        bag = f"bag {name}"
        return bag if bag in self.defined else self.add(bag, BAG, None, (name,))


def load(typed: Typed) -> LoadedProblem:
    """The problem of a program; its roots are the sinks, in the order of the text."""
    typed = with_typed_functions(without_conditions(typed))
    builder = _Builder(typed, tuple(loops_of(typed.graph)))
    sinks = [n for n in typed.graph if isinstance(n.cls, Output)]
    ends = (Endpoint(sink.id) for sink in sinks)
    for endpoint in inputs_first(ends, lambda end: _reads(builder, end)):
        _define(builder, endpoint)
    problem = Problem(
        shapes=builder.shapes,
        payloads=tuple(builder.payloads),
        definitions=tuple(builder.definitions),
        cuts={cut: builder.defined[name] for cut, name in builder.cuts.items()},
        roots=tuple(sink.id for sink in sinks),
    )
    graph = typed.graph
    steps = frozenset(
        name for name, (loop, end) in builder.looped.items() if resumes(graph, loop, end)
    )
    solid = never_null(graph)
    return LoadedProblem(
        problem, typed, builder.looped, builder.origins, steps, builder.defined, solid
    )


def _reads(builder: _Builder, endpoint: Endpoint) -> tuple[Endpoint, ...]:
    loop = builder.loop(endpoint)
    return loop.reads if loop else builder.typed.graph[endpoint.node].inputs


def _define(builder: _Builder, endpoint: Endpoint) -> None:
    loop = builder.loop(endpoint)
    if loop:
        _define_loop(builder, loop, endpoint)
        return
    node = builder.typed.graph[endpoint.node]
    name = str(endpoint)
    if node.op.outputs == "copies":
        builder.defined[name] = _read(builder, node.inputs[0])
        return
    orders = tuple(builder.order(e) for e in node.inputs)
    output = builder.order(endpoint) if node.op.outputs != "none" else orders[0]
    shape = shape_of(node, orders, output)
    inputs = tuple(
        builder.as_sort(_read(builder, e), order, sort)
        for e, order, sort in zip(node.inputs, orders, shape.inputs, strict=True)
    )
    builder.origins[name] = node
    joint, types = isinstance(node.cls, Sum), builder.typed.types
    # where all inputs of a union have the output's item type, no item changes
    if joint and all(types[e].item == types[endpoint].item for e in node.inputs):
        _define_chain(builder, name, shape, inputs)
        return
    if joint:
        shape = replace(shape, name=f"{shape.name}:mixed:{len(inputs)}", cls=Sum(widens=True))
    own = node.id if isinstance(node.cls, Output) else ""
    builder.add(name, shape, Payload(node.args, endpoint.port, own), inputs)


def _read(builder: _Builder, endpoint: Endpoint) -> str:
    """The name by which a stream is read: its own, or its cut if it is not defined yet."""
    name = str(endpoint)
    if name in builder.defined:
        return builder.defined[name]
    cut = f"cut {name}"
    builder.cuts[cut] = name
    return cut


def _define_chain(builder: _Builder, name: str, shape: Shape, inputs: tuple[str, ...]) -> None:
    """Defines a union as nested unions of two."""
    pair = two(UNION if shape.output is Sort.BAG else f"{CHAIN}!", shape.output)
    if len(inputs) == 1:
        builder.defined[name] = inputs[0]
        return
    total = inputs[0]
    for i, other in enumerate(inputs[1:-1], start=1):
        total = builder.add(f"{name} {i}", pair, None, (total, other))
    builder.add(name, pair, None, (total, inputs[-1]))


def _define_loop(builder: _Builder, loop: Loop, endpoint: Endpoint) -> None:
    """Defines a loop's stream as an operator on the loop's inputs."""
    graph = builder.typed.graph
    orders = tuple(builder.order(e) for e in loop.reads)
    specs = [graph[n].spec for n in loop.nodes]
    shape = Shape(
        # Rules are read as text, and names of streams may have blanks and brackets.
        name=f"{CYCLE}{quote(str(endpoint), _PLAIN)}",
        inputs=tuple(map(sort_of, orders)),
        cls=FeedbackShape(),
        output=sort_of(builder.order(endpoint)),
        linear=(False,) * len(orders),
        zero=all(s.zero for s in specs),
        time_invariant=all(s.time_invariant for s in specs),
        strict=(False,) * len(orders),
        monotone=all(
            s.monotone and all(p.barrier is Barrier.NONE for p in graph[n].spec.inputs)
            for n, s in zip(loop.nodes, specs, strict=True)
        ),
    )
    builder.looped[shape.name] = (loop, endpoint)
    builder.origins[str(endpoint)] = graph[endpoint.node]
    builder.add(str(endpoint), shape, None, tuple(_read(builder, e) for e in loop.reads))
