"""The strongly connected components of a graph, what is read before what reads it (Tarjan)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

V = TypeVar("V")


def strongly_connected(vertices: Iterable[V], reads: Callable[[V], Iterable[V]]) -> list[list[V]]:
    """The components in an order in which each comes after all that it reads.

    Within a component, a vertex stands after what it reads, but for the readings that close a cycle.

    >>> strongly_connected("abc", {"a": "b", "b": "ac", "c": ""}.get)
    [['c'], ['b', 'a']]
    """
    index: dict[V, int] = {}
    low: dict[V, int] = {}
    stack: list[V] = []
    finished: list[V] = []
    components: list[list[V]] = []
    for root in vertices:
        if root in index:
            continue
        todo: list[tuple[V, list[V]]] = []
        _enter(root, index, low, stack, todo, reads)
        while todo:
            vertex, rest = todo[-1]
            if rest:
                following = rest.pop(0)
                if following not in index:
                    _enter(following, index, low, stack, todo, reads)
                elif following in stack:
                    low[vertex] = min(low[vertex], index[following])
                continue
            todo.pop()
            finished.append(vertex)
            if todo:
                low[todo[-1][0]] = min(low[todo[-1][0]], low[vertex])
            if low[vertex] == index[vertex]:
                members = set()
                while vertex not in members:
                    members.add(stack.pop())
                components.append([v for v in finished if v in members])
    return components


def _enter(
    vertex: V,
    index: dict[V, int],
    low: dict[V, int],
    stack: list[V],
    todo: list[tuple[V, list[V]]],
    reads: Callable[[V], Iterable[V]],
) -> None:
    index[vertex] = low[vertex] = len(index)
    stack.append(vertex)
    todo.append((vertex, list(reads(vertex))))
