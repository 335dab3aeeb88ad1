"""Strongly connected components of a graph of names, in the order of dependence."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def components(edges: Mapping[T, Sequence[T]]) -> Iterator[tuple[T, ...]]:
    """The components, each after those that it leads to. `edges` leads from every name to what it reads.

    >>> list(components({"a": ["b"], "b": ["a", "c"], "c": []}))
    [('c',), ('b', 'a')]
    """
    index: dict[T, int] = {}
    low: dict[T, int] = {}
    stack: list[T] = []
    on_stack: set[T] = set()
    for root in edges:
        if root in index:
            continue
        work: list[tuple[T, Iterator[T]]] = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            name, rest = work[-1]
            following = next((n for n in rest if n not in index or n in on_stack), None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[name])
                if low[name] == index[name]:
                    yield tuple(_unwind(stack, on_stack, name))
            elif following in index:
                low[name] = min(low[name], index[following])
            else:
                index[following] = low[following] = len(index)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(edges[following])))


def _unwind(stack: list[T], on_stack: set[T], root: T) -> Iterator[T]:
    while True:
        name = stack.pop()
        on_stack.discard(name)
        yield name
        if name == root:
            return
