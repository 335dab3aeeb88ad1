"""Ways through a graph, none of them recursive: a program may be as long as it likes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

from hydro_core.catalog.spec import Barrier, Port
from hydro_core.ir.graph import Endpoint, Graph, Node, NodeId

Successors = Mapping[NodeId, list[NodeId]]


def same_tick(port: Port) -> bool:
    """Whether what enters at the port is of this tick."""
    return port.barrier is not Barrier.TICK


def predecessors(graph: Graph, follow: Callable[[Port], bool] = lambda port: True) -> Successors:
    """Of each node those that it reads, at ports that `follow` approves, each once."""
    return {
        node.id: list(dict.fromkeys(e.node for port, e in node.reads() if follow(port)))
        for node in graph
    }


def components(successors: Successors) -> list[tuple[NodeId, ...]]:
    """The strongly connected components, each after those that its members lead to (Tarjan, without recursion).

    >>> components({"a": ["b"], "b": ["c"], "c": ["b"]})
    [('b', 'c'), ('a',)]
    """
    found: list[tuple[NodeId, ...]] = []
    index: dict[NodeId, int] = {}
    low: dict[NodeId, int] = {}
    stack: list[NodeId] = []
    on_stack: set[NodeId] = set()
    order = {node: i for i, node in enumerate(successors)}
    for root in successors:
        if root in index:
            continue
        work: list[tuple[NodeId, Iterator[NodeId]]] = []
        _enter(root, successors, index, low, stack, on_stack, work)
        while work:
            node, rest = work[-1]
            for after in rest:
                if after not in index:
                    _enter(after, successors, index, low, stack, on_stack, work)
                    break
                if after in on_stack:
                    low[node] = min(low[node], index[after])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    members = _popped(stack, node)
                    on_stack.difference_update(members)
                    found.append(tuple(sorted(members, key=order.__getitem__)))
    return found


def _enter(
    node: NodeId,
    successors: Successors,
    index: dict[NodeId, int],
    low: dict[NodeId, int],
    stack: list[NodeId],
    on_stack: set[NodeId],
    work: list[tuple[NodeId, Iterator[NodeId]]],
) -> None:
    index[node] = low[node] = len(index)
    stack.append(node)
    on_stack.add(node)
    work.append((node, iter(successors[node])))


def _popped(stack: list[NodeId], last: NodeId) -> list[NodeId]:
    members = [stack.pop()]
    while members[-1] != last:
        members.append(stack.pop())
    return members


def shortest_path(
    successors: Successors, start: NodeId, end: NodeId, within: Iterable[NodeId]
) -> list[NodeId]:
    """A shortest way from `start` to `end` through nodes of `within`, both included; empty where there is none."""
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


def is_cycle(component: tuple[NodeId, ...], successors: Successors) -> bool:
    """Whether a component is a cycle and not a single node that does not reach itself."""
    return len(component) > 1 or component[0] in successors[component[0]]


def in_reading_order(graph: Graph) -> list[Node]:
    """The nodes, each after those of this tick that it reads, cycles in the order of the text."""
    return [graph[n] for c in components(predecessors(graph, same_tick)) for n in c]


def outputs(node: Node) -> tuple[Endpoint, ...]:
    """What can be read of a node."""
    if node.op.outputs == "none" or (node.op.optional_input and node.inputs):
        return ()
    if node.op.outputs == "ports":
        return tuple(Endpoint(node.id, port) for port in node.args["ports"])
    return (Endpoint(node.id),)
