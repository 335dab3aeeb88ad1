"""Ways through a graph, none of them recursive: a program may be as long as it likes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from hydro_core.catalog.spec import Barrier, Port
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId

T = TypeVar("T", bound=Hashable)
Successors = Mapping[NodeId, list[NodeId]]


def same_tick(port: Port) -> bool:
    return port.barrier is not Barrier.TICK


def predecessors(graph: Graph, follow: Callable[[Port], bool] = lambda port: True) -> Successors:
    """Of each node those that it reads, at ports that `follow` approves, each once."""
    return {
        node.id: list(dict.fromkeys(e.node for port, e in node.reads() if follow(port)))
        for node in graph
    }


def inputs_first(
    roots: Iterable[T], inputs: Callable[[T], Sequence[T]], done: Iterable[T] = ()
) -> Iterator[T]:
    """All that roots lead to, each after its inputs where there is no cycle, without the `done`.

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
    """Tarjan's search, with a stack of its own in the place of recursion."""

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
        """Finds the components of all that `root` leads to."""
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
    """A shortest way from `start` to `end` through nodes of `within`; empty where none is."""
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
    """What stands at the start, and all that it leads to.

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

    The walk ends at a node without inputs, or before a node that it has left: operators of one
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
    """The nodes, and all that they are made of."""
    return reachable(nodes, lambda name: (end.node for end in graph[name].inputs))


def is_cycle(component: tuple[NodeId, ...], successors: Successors) -> bool:
    """Whether a component is a cycle and not a single node that does not reach itself."""
    return len(component) > 1 or component[0] in successors[component[0]]


def is_generated(node: Node) -> bool:
    """Whether the program gave the node no name: its id is the operator and a number."""
    return node.id.removeprefix(f"{node.op.name}_").isdigit()


def outputs(node: Node) -> tuple[Endpoint, ...]:
    """What can be read of a node."""
    if node.op.outputs == "none" or (node.op.optional_input and node.inputs):
        return ()
    if node.op.outputs == "ports":
        return tuple(Endpoint(node.id, port) for port in node.args["ports"])
    return (Endpoint(node.id),)
