"""Programs as immutable graphs of operators: nodes, walks over them, and construction."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeVar

from hydro_core.catalog.classes import OpClass
from hydro_core.catalog.itemwise import SINK, SOURCE
from hydro_core.catalog.spec import NO_ARGS, Args, Barrier, OpSpec, Port, functions_of
from hydro_core.errors import Diagnostic, Span
from hydro_core.types.records import NAME

# The representation of a program between its text and its plan: an immutable graph of operators.
#
# A node lists its inputs in the order of its operator's ports. Sharing is two nodes with one input,
# a cycle is a path of inputs that leads back. Node ids are printable and stable, so plans and
# errors use the program's names. An id is the name of the statement for the operator that it stands
# for (the last one if the name is read, else the first), the name of an output for its sink, else
# the operator and a number (`join_1`).


NodeId = str


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """An output of a node; `port` is empty unless the node has several."""

    node: NodeId
    port: str = ""

    def __str__(self) -> str:
        return f"{self.node}[{self.port}]" if self.port else self.node


@dataclass(frozen=True, slots=True)
class Node:
    """One operator of the program; `inputs` have the order of `op.inputs`."""

    id: NodeId
    op: OpSpec = field(metadata={NAME: "operator"})
    args: Args = field(default=NO_ARGS, metadata={NAME: "arguments"})
    inputs: tuple[Endpoint, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def spec(self) -> OpSpec:
        """The operator's columns under this node's arguments."""
        return self.op.at(self.args)

    @property
    def cls(self) -> OpClass:
        """The operator's class under this node's arguments."""
        return self.op.class_of(self.args)

    def port_of(self, position: int) -> Port:
        """The port of the input at `position`."""
        ports = self.spec.inputs
        return ports[0] if self.op.variadic else ports[position]

    def reads(self) -> Iterator[tuple[Port, Endpoint]]:
        """The inputs of the node, each with its port."""
        ports = self.spec.inputs
        for position, endpoint in enumerate(self.inputs):
            yield ports[0] if self.op.variadic else ports[position], endpoint

    def with_(self, **changes: Any) -> Node:
        """A copy with some fields replaced."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Graph:
    """A program. `nodes` have the order of the text; sources and sinks are nodes like any other.

    A `source` node has the argument `name`, and `schema` where it is declared; a `sink` node has
    `name`.
    """

    nodes: Mapping[NodeId, Node]
    name: str = "flow"
    warnings: tuple[Diagnostic, ...] = field(default=(), compare=False)

    @staticmethod
    def of(nodes: Iterable[Node], name: str = "flow", warnings: Iterable[Diagnostic] = ()) -> Graph:
        """The graph of these nodes; raises `ValueError` if two have one id."""
        table = {}
        for node in nodes:
            if node.id in table:
                raise ValueError(f"two nodes are called {node.id!r}")
            table[node.id] = node
        return Graph(MappingProxyType(table), name, tuple(warnings))

    def with_nodes(self, nodes: Iterable[Node]) -> Graph:
        """A graph of other nodes, outputs last, with this one's name and warnings."""
        last_sinks = sorted(nodes, key=lambda node: node.op.outputs == "none")
        return Graph.of(last_sinks, self.name, self.warnings)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    def __getitem__(self, node: NodeId) -> Node:
        return self.nodes[node]

    def readers(self, node: NodeId) -> tuple[Node, ...]:
        """The nodes that read some output of `node`."""
        return tuple(self._readers.get(node, ()))

    @cached_property
    def _readers(self) -> Mapping[NodeId, list[Node]]:
        found: dict[NodeId, list[Node]] = {}
        for reader in self:
            for read in dict.fromkeys(endpoint.node for endpoint in reader.inputs):
                found.setdefault(read, []).append(reader)
        return found

    def named(self, op: str) -> tuple[Node, ...]:
        """The nodes of the operator `op`: for sources and sinks."""
        return tuple(n for n in self if n.op.name == op)

    @cached_property
    def sources(self) -> Mapping[str, Node]:
        """The input streams by their names."""
        return {n.args["name"]: n for n in self.named(SOURCE.name)}

    @cached_property
    def sinks(self) -> Mapping[str, tuple[Node, ...]]:
        """The sinks by the outputs' names, in the order of the text; those of one name add up."""
        table: dict[str, list[Node]] = {}
        for node in self.named(SINK.name):
            table.setdefault(node.args["name"], []).append(node)
        return {name: tuple(sinks) for name, sinks in table.items()}


# Walks over a graph, none of them recursive, since a program may be long.


T = TypeVar("T", bound=Hashable)
Successors = Mapping[NodeId, list[NodeId]]


def same_tick(port: Port) -> bool:
    return port.barrier is not Barrier.TICK


def predecessors(graph: Graph, follow: Callable[[Port], bool] = lambda port: True) -> Successors:
    """By node: its inputs at ports that `follow` approves, each once."""
    return {
        node.id: list(dict.fromkeys(e.node for port, e in node.reads() if follow(port)))
        for node in graph
    }


def inputs_first(
    roots: Iterable[T], inputs: Callable[[T], Sequence[T]], done: Iterable[T] = ()
) -> Iterator[T]:
    """All nodes that roots lead to, each after its inputs where there is no cycle, without the
    `done`.

    >>> list(inputs_first(["a"], {"a": ["b", "c"], "b": ["c"], "c": []}.__getitem__))
    ['c', 'b', 'a']
    """
    begun = set(done)
    for root in roots:
        stack = [(root, False)]
        while stack:
            node, finished = stack.pop()
            if finished:
                yield node
            elif node not in begun:
                begun.add(node)
                stack.append((node, True))
                stack += [(n, False) for n in reversed(inputs(node))]


def components(successors: Successors) -> list[tuple[NodeId, ...]]:
    """The strongly connected components, each after those that its members lead to.

    >>> components({"a": ["b"], "b": ["c"], "c": ["b"]})
    [('b', 'c'), ('a',)]
    """
    search = _Search(successors)
    for root in successors:
        if root not in search.index:
            search.explore(root)
    return search.found


class _Search:
    """Tarjan's search, with an explicit stack instead of recursion."""

    def __init__(self, successors: Successors) -> None:
        self.successors = successors
        self.order = {node: i for i, node in enumerate(successors)}
        self.found: list[tuple[NodeId, ...]] = []
        self.index: dict[NodeId, int] = {}
        self.low: dict[NodeId, int] = {}
        self.open: list[NodeId] = []
        self.is_open: set[NodeId] = set()
        self.way: list[tuple[NodeId, Iterator[NodeId]]] = []

    def explore(self, root: NodeId) -> None:
        """Finds the components of all nodes that `root` leads to."""
        self._enter(root)
        while self.way:
            node, rest = self.way[-1]
            after = next(rest, None)
            if after is None:
                self._leave(node)
            elif after not in self.index:
                self._enter(after)
            elif after in self.is_open:
                self.low[node] = min(self.low[node], self.index[after])

    def _enter(self, node: NodeId) -> None:
        self.index[node] = self.low[node] = len(self.index)
        self.open.append(node)
        self.is_open.add(node)
        self.way.append((node, iter(self.successors[node])))

    def _leave(self, node: NodeId) -> None:
        self.way.pop()
        if self.way:
            parent = self.way[-1][0]
            self.low[parent] = min(self.low[parent], self.low[node])
        if self.low[node] == self.index[node]:
            members = [self.open.pop()]
            while members[-1] != node:
                members.append(self.open.pop())
            self.is_open.difference_update(members)
            self.found.append(tuple(sorted(members, key=self.order.__getitem__)))


def shortest_path(
    successors: Successors, start: NodeId, end: NodeId, within: Iterable[NodeId]
) -> list[NodeId]:
    """A shortest path from `start` to `end` through nodes of `within`; empty if there is none."""
    allowed = set(within)
    before: dict[NodeId, NodeId | None] = {start: None}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        if node == end:
            way: list[NodeId] = []
            step: NodeId | None = node
            while step is not None:
                way.append(step)
                step = before[step]
            return way[::-1]
        for after in successors[node]:
            if after in allowed and after not in before:
                before[after] = node
                queue.append(after)
    return []


def reachable(start: Iterable[T], successors: Callable[[T], Iterable[T]]) -> set[T]:
    """The start, and all that it leads to.

    >>> sorted(reachable(["a"], {"a": ["b"], "b": ["b"], "c": ["a"]}.__getitem__))
    ['a', 'b']
    """
    found = set(start)
    queue = deque(found)
    while queue:
        new = set(successors(queue.popleft())) - found
        found |= new
        queue += new
    return found


def first_inputs(graph: Graph, stream: Endpoint) -> Iterator[Endpoint]:
    """A stream, then the first input of the node that gives it, then that of the next, and so on.

    The walk ends at a node without inputs, or before a node that it has visited: operators of one
    input may be a cycle, as in `s = filter(f)` and `s -> s`.
    """
    left: set[NodeId] = set()
    while stream.node not in left:
        left.add(stream.node)
        yield stream
        inputs = graph[stream.node].inputs
        if not inputs:
            return
        stream = inputs[0]


def behind(graph: Graph | Mapping[NodeId, Node], nodes: Iterable[NodeId]) -> set[NodeId]:
    """The nodes, and all nodes that they are derived from."""
    return reachable(nodes, lambda name: (end.node for end in graph[name].inputs))


def is_cycle(component: tuple[NodeId, ...], successors: Successors) -> bool:
    """True if a component is a cycle, not a single node that does not reach itself."""
    return len(component) > 1 or component[0] in successors[component[0]]


def is_generated(node: Node) -> bool:
    """True if the program gives the node no name: its id is the operator and a number."""
    return node.id.removeprefix(f"{node.op.name}_").isdigit()


def outputs(node: Node) -> tuple[Endpoint, ...]:
    """The endpoints of a node that others can read."""
    if node.op.outputs == "none" or (node.op.optional_input and node.inputs):
        return ()
    if node.op.outputs == "ports":
        return tuple(Endpoint(node.id, port) for port in node.args["ports"])
    return (Endpoint(node.id),)


# Nodes under construction, which refer to each other by number until they get their ids.


Wire = tuple[int, str]
"""The output of a draft: its number, and the port where it has several."""


@dataclass(slots=True)
class Draft:
    """A node under construction; `name` is its name in the program."""

    op: OpSpec
    args: Args = NO_ARGS
    span: Span | None = None
    name: str | None = None
    inputs: list[Wire] = field(default_factory=list)

    @property
    def own_name(self) -> str | None:
        """The name that its arguments give it."""
        return self.args.get("name") if self.op.family == "io" else None


def build(
    drafts: Sequence[Draft], name: str = "flow", warnings: Iterable[Diagnostic] = ()
) -> Graph:
    ids = _ids(drafts)
    nodes = (
        Node(
            ids[i],
            draft.op,
            draft.args,
            tuple(Endpoint(ids[source], port) for source, port in draft.inputs),
            draft.span,
        )
        for i, draft in enumerate(drafts)
    )
    return Graph.of(nodes, name, (*warnings, *_unrepeatable(drafts)))


def _unrepeatable(drafts: Sequence[Draft]) -> Iterator[Diagnostic]:
    """Warnings for functions whose results differ when a tick runs again."""
    for draft in drafts:
        for fn in functions_of(draft.args):
            for used, span in fn.unrepeatable:
                yield Diagnostic(
                    "runtime",
                    f"`{draft.op.name}`: the function {fn.name} uses `{used}`, which is not the "
                    "same each time: a tick that runs again, and Spark, may get other results",
                    span or draft.span,
                    draft.op.name,
                    help="give it in as data; what time it is for a tick, `tick()` says",
                    severity="warning",
                )


def _ids(drafts: Sequence[Draft]) -> list[NodeId]:
    """Names first, then inputs and outputs by their own names, then operators and numbers."""
    ids: dict[int, NodeId] = {i: d.name for i, d in enumerate(drafts) if d.name is not None}
    taken = set(ids.values())
    for i, draft in enumerate(drafts):
        own = draft.own_name
        if i not in ids and own is not None:
            ids[i] = free_name(own, taken)
            taken.add(ids[i])
    counts: Counter[str] = Counter()
    for i, draft in enumerate(drafts):
        if i in ids:
            continue
        counts[draft.op.name] += 1
        while f"{draft.op.name}_{counts[draft.op.name]}" in taken:
            counts[draft.op.name] += 1
        ids[i] = f"{draft.op.name}_{counts[draft.op.name]}"
        taken.add(ids[i])
    return [ids[i] for i in range(len(drafts))]


def numbered(drafts: Sequence[Draft], kept: Iterable[int]) -> list[Draft]:
    """The drafts at these numbers, in this order, with the numbers of their inputs adapted."""
    chosen = list(kept)
    new = {old: position for position, old in enumerate(chosen)}
    for draft in drafts:
        draft.inputs = [(new[number], port) for number, port in draft.inputs]
    return [drafts[number] for number in chosen]


def free_name(name: str, taken: Collection[str]) -> str:
    """The name, with the first number from 2 on that makes it unused."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}_{number}"
    return free


def add_node(
    nodes: MutableMapping[NodeId, Node], node: Node, reserved: Collection[NodeId] = ()
) -> NodeId:
    """Adds a node that the program does not have, and returns the id that it gets: its own, or that
    with a number where another node has it. A node that is there already is not added again.

    Args:
        nodes: the nodes so far.
        node: the node.
        reserved: ids that nodes will get that are not there yet.
    """
    name, number = node.id, 1
    while name in reserved or name in nodes:
        there = nodes.get(name)
        if there is not None and node == there.with_(id=node.id, span=node.span):
            return name
        number += 1
        name = f"{node.id}_{number}"
    nodes[name] = node.with_(id=name)
    return name


def source_args(name: str, **others: Any) -> Args:
    """The arguments of a source, in the entry's order."""
    given: Mapping[str, Any] = {"schema": None, "name": name, "fds": (), **others}
    return Args(tuple(given.items()))
