"""From a plan back to a graph: every chosen node becomes an operator, with arguments and span.

A node of the program keeps its id; another one gets its operator's name and a number. It has the
span of a related statement: the node of the program that gives its stream, else one with its
arguments, else one that gives an input of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hydro_core.analysis.infer import Typed
from hydro_core.catalog.combine import CHAIN, UNION
from hydro_core.catalog.spec import Args, OpSpec, OrderRule
from hydro_core.ir.graph import (
    Endpoint,
    Graph,
    Node,
    NodeId,
    add_node,
    behind,
    free_name,
    inputs_first,
    reachable,
)
from hydro_core.optimize.egraph import ClassId, ENode, Space
from hydro_core.optimize.extract import Plan
from hydro_core.optimize.load import LoadedProblem
from hydro_core.optimize.loop import Loop, UnrolledLoop, cycle_of
from hydro_core.optimize.rule import BAG, FeedbackShape, Payload


@dataclass(slots=True)
class _Rebuild:
    loaded: LoadedProblem
    payloads: tuple[Payload, ...]
    space: Space
    plan: Plan
    endpoints: dict[ClassId, Endpoint] = field(default_factory=dict)
    nodes: dict[NodeId, Node] = field(default_factory=dict)
    shared: dict[tuple[object, ...], NodeId] = field(default_factory=dict)
    """By operator, arguments and inputs: the node with several outputs."""
    reserved: set[NodeId] = field(default_factory=set)
    named: dict[ClassId, list[str]] = field(default_factory=dict)
    known_above: dict[NodeId, set[NodeId]] = field(default_factory=dict)

    @property
    def typed(self) -> Typed:
        return self.loaded.typed

    @property
    def chosen(self) -> set[NodeId]:
        """The ids of the program's nodes, and those that the plan's streams have."""
        return {*self.reserved, *(end.node for end in self.endpoints.values())}

    def above(self, node: Node) -> set[NodeId]:
        """The nodes that a node of the program is derived from."""
        if node.id not in self.known_above:
            reads = (end.node for end in node.inputs)
            self.known_above[node.id] = behind(self.typed.graph, reads)
        return self.known_above[node.id]

    def enode(self, cls: ClassId) -> ENode:
        """The node that the plan chose."""
        return self.space.nodes[self.plan.choice[cls]]


def rebuild(
    loaded: LoadedProblem, payloads: tuple[Payload, ...], space: Space, plan: Plan
) -> tuple[Graph, Mapping[NodeId, NodeId]]:
    """The graph of a plan, and by node the stream of the program that it computes.

    All sources stay, so the plan has the same inputs as the program.
    """
    graph = loaded.typed.graph
    work = _Rebuild(loaded, payloads, space, plan)
    work.reserved = set(graph.nodes)
    for name, cls in space.named.items():
        work.named.setdefault(cls, []).append(name)
    for source in graph.sources.values():
        work.nodes[source.id] = source
    classes = tuple(inputs_first(work.space.roots, lambda cls: work.enode(cls).inputs))
    for cls in classes:
        _name(work, cls)
    for cls in classes:
        _emit(work, cls)
    sources = [work.nodes[n.id] for n in graph.sources.values()]
    sinks = [n for n in work.nodes.values() if n.op.outputs == "none"]
    ends = {n.id for n in (*sources, *sinks)}
    middle = [n for n in work.nodes.values() if n.id not in ends]
    text_order = {name: i for i, name in enumerate(graph.nodes)}
    sinks.sort(key=lambda n: text_order.get(n.id, len(text_order)))
    made = Graph.of((*sources, *middle, *sinks), graph.name, graph.warnings)
    return made, dict(_streams(work, made))


def _streams(work: _Rebuild, made: Graph) -> Iterator[tuple[NodeId, NodeId]]:
    """By node of the plan: the first stream of the program that it computes."""
    program = work.typed.graph
    yield from ((source.id, source.id) for source in program.sources.values())
    for cls, end in work.endpoints.items():
        names = [n for n in work.named.get(cls, ()) if n in program.nodes]
        alone = [n for n in names if program[n].op.outputs == "one"]
        if alone and end.node in made.nodes and made[end.node].op.outputs == "one":
            yield end.node, end.node if end.node in alone else alone[0]


def _name(work: _Rebuild, cls: ClassId) -> None:
    """Chooses the endpoint of the class's stream."""
    enode = work.enode(cls)
    if enode.shape.name == BAG.name:
        return
    loop = work.loaded.loops.get(enode.shape.name)
    if loop is not None:
        work.endpoints[cls] = loop[1]
        return
    if enode.shape.cls == FeedbackShape(new=True):
        _, end = work.loaded.loops[cycle_of(enode.shape.name)]
        work.endpoints[cls] = Endpoint(free_name(f"{end.node}_new", work.chosen))
        return
    origin = _origin(work, cls, enode)
    op = _operator(enode)
    payload = _payload(work, enode)
    if op.outputs == "ports":
        key = (op, payload.args, enode.inputs)
        if key not in work.shared:
            work.shared[key] = _fresh(work, origin, op)
        work.endpoints[cls] = Endpoint(work.shared[key], payload.port)
        return
    work.endpoints[cls] = Endpoint(_fresh(work, origin, op, work.named.get(cls, ())))


def _fresh(work: _Rebuild, origin: Node | None, op: OpSpec, own: Sequence[str] = ()) -> NodeId:
    taken = {e.node for e in work.endpoints.values()}
    if origin is not None and origin.id not in taken:
        return origin.id
    for name in own:
        # another operator should not have an operator's name and a number
        numbered = name.rpartition("_")[2].isdigit()
        if name not in taken and name in work.reserved and not numbered:
            return name
    number = 1
    while (name := f"{op.name}_{number}") in taken or name in work.reserved:
        number += 1
    return name


def _origin(work: _Rebuild, cls: ClassId, enode: ENode) -> Node | None:
    """The node of the program that computes this stream by this operator."""
    payload = _payload(work, enode)
    for name in work.named.get(cls, ()):
        node = work.loaded.origins.get(name)
        if node is not None and node.op is enode.shape.op and node.args == payload.args:
            return node
    return None


def _emit(work: _Rebuild, cls: ClassId) -> None:
    enode = work.enode(cls)
    if enode.shape.name == BAG.name:
        return
    found = work.loaded.loops.get(enode.shape.name)
    if found is not None:
        _emit_loop(work, enode, found[0])
        return
    endpoint = work.endpoints[cls]
    if enode.shape.cls == FeedbackShape(new=True):
        _emit_step(work, enode, endpoint.node)
        return
    if endpoint.node in work.nodes:
        return
    op, payload = _called(work, cls, enode), _payload(work, enode)
    inputs = tuple(
        _input(work, enode, op, payload.args, position) for position in range(len(enode.inputs))
    )
    origin = _origin(work, cls, enode) or _named(work, cls) or _relative(work, enode)
    span = origin.span if origin else None
    work.nodes[endpoint.node] = Node(endpoint.node, op, payload.args, inputs, span)


def _input(work: _Rebuild, enode: ENode, op: OpSpec, args: Args, position: int) -> Endpoint:
    """The input of a node; a sequence that must lose its order does so in a union of one."""
    cls = enode.inputs[position]
    inner = work.enode(cls)
    rule = op.at(args).order
    keeps = rule is OrderRule.KEEPS and position == 0
    if inner.shape.name == BAG.name and not (keeps or rule is OrderRule.KEEPS_IF_ALL):
        return work.endpoints[inner.inputs[0]]
    return _end(work, cls)


def _end(work: _Rebuild, cls: ClassId) -> Endpoint:
    """The endpoint of the class's stream; a sequence loses its order in a union of one."""
    inner = work.enode(cls)
    if inner.shape.name != BAG.name:
        return work.endpoints[cls]
    sequence = work.endpoints[inner.inputs[0]]
    span = work.nodes[sequence.node].span if sequence.node in work.nodes else None
    bag = Node(f"union_of_{sequence.node}", UNION, Args(), (sequence,), span)
    return Endpoint(add_node(work.nodes, bag, work.chosen))


def _emit_loop(work: _Rebuild, enode: ENode, loop: Loop) -> None:
    """Adds the nodes of a cycle inside a tick, with the plan's streams as their inputs."""
    read = dict(zip(loop.reads, enode.inputs, strict=True))
    for name in loop.nodes:
        if name in work.nodes:
            continue
        node = work.typed.graph[name]
        inputs = tuple(_end(work, read[e]) if e in read else e for e in node.inputs)
        work.nodes[name] = node.with_(inputs=inputs)


def _emit_step(work: _Rebuild, enode: ENode, name: NodeId) -> None:
    """Adds the nodes that compute a loop's new items, the last of this name."""
    loop, end = work.loaded.loops[cycle_of(enode.shape.name)]
    count = len(loop.reads)
    ends = [_end(work, c) for c in enode.inputs]
    given = {
        read: (ends[i], ends[count + i], ends[2 * count + i]) for i, read in enumerate(loop.reads)
    }
    taken = {*work.nodes, *work.chosen}
    unrolled = UnrolledLoop(work.typed.graph, end, taken, given, ends[-1])
    unrolled.build(name)
    work.nodes |= unrolled.nodes


def _relative(work: _Rebuild, enode: ENode) -> Node | None:
    """A node of the program with the same operator or arguments: the one that shares most inputs.

    An operator without arguments has none, and gets a node that gives one of its inputs.
    """
    payload = _payload(work, enode)
    op = _operator(enode)
    alike = [n for n in work.typed.graph if n.op is op and n.args == payload.args]
    if not alike and enode.shape.payload:
        alike = [n for n in work.typed.graph if n.args == payload.args]
    read = None if enode.shape.payload else _first_named(work, enode.inputs)
    if alike and read is None:
        mine = _sources(work, enode)
        return max(alike, key=lambda n: len(mine & work.above(n)))
    return read or _first_named(work, enode.inputs)


def _first_named(work: _Rebuild, classes: Sequence[ClassId]) -> Node | None:
    """The node of the program that gives the first of these streams that the program has."""
    return next((node for cls in classes if (node := _named(work, cls)) is not None), None)


def _named(work: _Rebuild, cls: ClassId) -> Node | None:
    """The node of the program that gives the same stream, by any operator."""
    origins = work.loaded.origins
    return next((origins[name] for name in work.named.get(cls, ()) if name in origins), None)


def _sources(work: _Rebuild, enode: ENode) -> set[NodeId]:
    above = reachable(enode.inputs, lambda cls: work.enode(cls).inputs)
    return {work.endpoints[cls].node for cls in above if cls in work.endpoints}


def _called(work: _Rebuild, cls: ClassId, enode: ENode) -> OpSpec:
    """The operator; a sum is a `chain` where the program has one."""
    op = _operator(enode)
    if op is UNION:
        nodes = (work.loaded.origins.get(name) for name in work.named.get(cls, ()))
        if any(n is not None and n.op is CHAIN for n in nodes):
            return CHAIN
    return op


def _operator(enode: ENode) -> OpSpec:
    sums = {op.name: op for op in (CHAIN, UNION)}
    op = enode.shape.op or sums.get(enode.shape.flat)
    if op is None:
        raise KeyError(f"{enode.shape.name} is no operator")
    return op


def _payload(work: _Rebuild, enode: ENode) -> Payload:
    return Payload() if enode.payload is None else work.payloads[enode.payload]
