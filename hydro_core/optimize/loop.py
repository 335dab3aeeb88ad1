"""Cycles inside a tick: each as one shape with inputs and outputs, the same for equal equations,
with a rule that updates it from the tick before.

Let `x = unique(g(x, e…))`, where g has only row-wise operators, sums and joins, so it is monotone
in each input. If every e only grows, x only grows, and x of the tick before is closed under g over
the e of the tick before. So the new items d of x are the least fixpoint of

    d = difference(unique(g's terms with at least one new part), x before)

in which a new part is d itself or the additions of some e; and x is the history of d.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.classes import DistinctItems, Sum
from hydro_core.catalog.combine import DIFFERENCE, UNION
from hydro_core.catalog.spec import Args, OrderRule, State
from hydro_core.catalog.state import DELTA, OLD, PERSIST, PREV
from hydro_core.ir.graph import (
    Endpoint,
    Graph,
    Node,
    NodeId,
    components,
    free_name,
    is_cycle,
    predecessors,
    same_tick,
)
from hydro_core.optimize.rule import EqualClasses, Fact, FeedbackShape, Pat, Rule, Shape, Sort, Var

CYCLE = "loop:"
"""Prefix of a stream's name: the shape of the cycle that gives it."""
PREFIX = "step:"
"""Prefix of a loop's name: the shape of its new items."""
BECAUSE = (
    "what the cycle found before is closed under what its inputs were: "
    "only terms with a new part give new items"
)


@dataclass(frozen=True, slots=True)
class Loop:
    """A cycle inside a tick: its nodes, the streams that it reads from outside, and its streams
    that are read outside.
    """

    nodes: tuple[NodeId, ...]
    reads: tuple[Endpoint, ...]
    gives: tuple[Endpoint, ...]


def loops_of(graph: Graph) -> Iterator[Loop]:
    """The cycles inside a tick, in the order of the text."""
    within = predecessors(graph, same_tick)
    for members in components(within):
        if not is_cycle(members, within):
            continue
        inside = set(members)
        nodes = tuple(n.id for n in graph if n.id in inside)
        reads: dict[Endpoint, None] = {}
        for name in nodes:
            for endpoint in graph[name].inputs:
                if endpoint.node not in inside:
                    reads.setdefault(endpoint)
        gives: dict[Endpoint, None] = {}
        for node in graph:
            for endpoint in node.inputs if node.id not in inside else ():
                if endpoint.node in inside:
                    gives.setdefault(endpoint)
        yield Loop(nodes, tuple(reads), tuple(gives))


@dataclass(slots=True)
class _LoopWalk:
    typed: Typed
    inside: frozenset[NodeId]
    places: dict[NodeId, int] = field(default_factory=dict)
    reads: dict[Endpoint, int] = field(default_factory=dict)


def loop_form(typed: Typed, loop: Loop, end: Endpoint) -> tuple[Any, tuple[int, ...]]:
    """The equations behind a stream of a loop, independent of the names of nodes.

    The second part is the order in which they read streams from outside: positions in `loop.reads`.
    The functions of `typed` are in normal form.
    """
    walk = _LoopWalk(typed, frozenset(loop.nodes))
    todo = [end.node]
    equations = []
    while todo:
        name = todo.pop()
        if name in walk.places:
            continue
        walk.places[name] = len(walk.places)
        todo += [e.node for e in reversed(_inputs(walk, name)) if e.node in walk.inside]
    for name in walk.places:
        node = typed.graph[name]
        item = typed.of(name).item
        inputs = tuple(_read(walk, endpoint) for endpoint in _inputs(walk, name))
        equations.append((node.op.name, node.args, item, inputs))
    order = tuple(loop.reads.index(endpoint) for endpoint in walk.reads)
    return (end.port, tuple(equations)), order


def _inputs(walk: _LoopWalk, name: NodeId) -> tuple[Endpoint, ...]:
    """The inputs of a node; those of a sum in an order that does not depend on the text."""
    graph = walk.typed.graph
    node = graph[name]
    if not node.op.variadic or node.spec.order is not OrderRule.LOSES:
        return node.inputs

    def place(endpoint: Endpoint) -> tuple[bool, str, str, str]:
        other = graph[endpoint.node]
        return (endpoint.node in walk.inside, other.op.name, repr(other.args), endpoint.port)

    return tuple(sorted(node.inputs, key=place))


def _read(walk: _LoopWalk, endpoint: Endpoint) -> tuple[str, int, str]:
    if endpoint.node in walk.inside:
        return "within", walk.places[endpoint.node], endpoint.port
    return "from outside", walk.reads.setdefault(endpoint, len(walk.reads)), ""


def resumes(graph: Graph, loop: Loop, end: Endpoint) -> bool:
    """True if the stream is the set of items that the loop finds, and every operator of it is
    additive.
    """
    inside = set(loop.nodes)
    if not isinstance(graph[end.node].cls, DistinctItems) or end.port:
        return False
    rest = [n for n in loop.nodes if n != end.node]
    edges = {
        n: [e.node for e in graph[n].inputs if e.node in inside and e.node != end.node]
        for n in rest
    }
    if any(is_cycle(group, edges) for group in components(edges)):
        return False
    return all(_adds_up(graph[n], inside) for n in loop.nodes)


def _adds_up(node: Node, inside: set[NodeId]) -> bool:
    spec = node.spec
    if spec.state is not State.NONE or spec.outputs != "one" or not spec.time_invariant:
        return False
    if isinstance(node.cls, DistinctItems):
        return True
    # all inputs count as changing, those from outside, too
    return spec.zero and bool(node.inputs) and all(p.linear for p, _ in node.reads())


def cycle_of(step: str) -> str:
    """The name of the cycle's shape, from that of its new items."""
    return CYCLE + step.removeprefix(PREFIX)


def step_shape(loop_shape: Shape) -> Shape:
    """The new items of a loop, from its inputs, their additions, their tick before, and itself."""
    count = len(loop_shape.inputs)
    sorts = (*loop_shape.inputs * 3, Sort.BAG)
    return Shape(
        name=PREFIX + loop_shape.name.removeprefix(CYCLE),
        inputs=sorts,
        cls=FeedbackShape(new=True),
        linear=(False,) * (3 * count + 1),
        strict=(False,) * (3 * count + 1),
    )


def step_rule(loop_shape: Shape) -> Rule:
    """The rule that a loop is the history of its new items if its inputs only grow."""
    inputs = tuple(Var(f"a{i}") for i in range(len(loop_shape.inputs)))
    new = tuple(Pat(DELTA.name, None, (v,)) for v in inputs)
    before = tuple(Pat(PREV.name, None, (v,)) for v in inputs)
    self_before = Pat(PREV.name, None, (Var("x"),))
    step = Pat(step_shape(loop_shape).name, None, (*inputs, *new, *before, self_before))
    return Rule(
        name=f"{loop_shape.name}-goes-on",
        lhs=Var("x"),
        rhs=Pat(PERSIST.name, None, (step,)),
        because=BECAUSE,
        when=(
            EqualClasses(Var("x"), Pat(loop_shape.name, None, inputs)),
            *(Fact("growing", (v,)) for v in inputs),
        ),
    )


@dataclass(slots=True)
class LoopDelta:
    """A stream of the loop in parts: the tick before, the new items, and both."""

    old: Callable[[], Endpoint]
    new: Callable[[], Endpoint]
    now: Callable[[], Endpoint]
    inside: bool
    """True if it depends on the loop's own items."""


@dataclass(slots=True)
class UnrolledLoop:
    """The nodes that compute the new items of a loop."""

    graph: Graph
    end: Endpoint
    taken: set[NodeId]
    given: Mapping[Endpoint, tuple[Endpoint, Endpoint, Endpoint]]
    """By stream read from outside: the stream, its additions, and its tick before."""
    before: Endpoint
    """The loop's items before this tick."""
    nodes: dict[NodeId, Node] = field(default_factory=dict)
    made: dict[tuple[object, ...], Endpoint] = field(default_factory=dict)

    def build(self, name: NodeId) -> Endpoint:
        """The stream of new items, under this name, which is taken; its nodes are in `nodes`."""
        unique = self.graph[self.end.node]
        result = Endpoint(name)
        self.nodes[result.node] = Node(result.node, DIFFERENCE)
        parts = self._parts(unique.inputs[0], result)
        found = self._add(unique, (parts.new(),))
        self.nodes[result.node] = Node(
            result.node, DIFFERENCE, Args(), (found, self.before), unique.span
        )
        return result

    def _parts(self, end: Endpoint, result: Endpoint) -> LoopDelta:
        if end in self.given:
            now, new, old = self.given[end]
            return LoopDelta(lambda: old, lambda: new, lambda: now, inside=False)
        if end == self.end:
            both = (self.before, result)
            return LoopDelta(
                lambda: self.before, lambda: result, lambda: self._sum(both), inside=True
            )
        node = self.graph[end.node]
        inputs = tuple(self._parts(e, result) for e in node.inputs)
        inside = any(i.inside for i in inputs)
        if isinstance(node.cls, DistinctItems):
            # copies do not matter, since the result is distinct
            return inputs[0]
        if isinstance(node.cls, Sum):
            return LoopDelta(
                lambda: self._add(node, tuple(i.old() for i in inputs)),
                lambda: self._add(node, tuple(i.new() for i in inputs)),
                lambda: self._add(node, tuple(i.now() for i in inputs)),
                inside,
            )

        def added() -> Endpoint:
            if len(inputs) == 1:
                return self._add(node, (inputs[0].new(),))
            left, right = inputs
            # Old rows are looked up by new ones, so the two stay separate.
            rights = (right.old(), right.new()) if right.inside else (right.now(),)
            pairs = [*((left.new(), one) for one in rights), (left.old(), right.new())]
            return self._sum(tuple(self._add(node, pair) for pair in pairs))

        # the old rows are stored: computing them again would read all of history
        def before() -> Endpoint:
            return self._make(f"{node.id}_old", Node("", OLD), (added(),))

        return LoopDelta(before, added, lambda: self._sum((before(), added())), inside)

    def _sum(self, parts: tuple[Endpoint, ...]) -> Endpoint:
        return self._make(UNION.name, Node("", UNION), parts)

    def _add(self, node: Node, inputs: tuple[Endpoint, ...]) -> Endpoint:
        return self._make(node.id, node, inputs)

    def _make(self, base: str, node: Node, inputs: tuple[Endpoint, ...]) -> Endpoint:
        key = (node.op, node.args, inputs)
        if key not in self.made:
            name = self._name(base)
            self.nodes[name] = node.with_(id=name, inputs=inputs)
            self.made[key] = Endpoint(name)
        return self.made[key]

    def _name(self, base: str) -> NodeId:
        name = free_name(base, self.taken)
        self.taken.add(name)
        return name
