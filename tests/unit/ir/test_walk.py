"""Ways through graphs, against plain recursive definitions."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hydro_core.ir.graph import Endpoint, behind, components, outputs, shortest_path
from hydro_core.lang.resolve import parse

NODES = "abcdef"
GRAPHS = st.fixed_dictionaries({n: st.lists(st.sampled_from(NODES), max_size=3) for n in NODES})


def reachable(graph: dict[str, list[str]], start: str) -> set[str]:
    found: set[str] = set()
    todo = list(graph[start])
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo.extend(graph[node])
    return found


@given(GRAPHS)
def test_components(graph: dict[str, list[str]]) -> None:
    found = components(graph)
    assert sorted(n for c in found for n in c) == sorted(NODES)
    number = {n: i for i, c in enumerate(found) for n in c}
    for a in NODES:
        for b in NODES:
            together = a == b or (b in reachable(graph, a) and a in reachable(graph, b))
            assert together == (number[a] == number[b])
        assert all(number[b] <= number[a] for b in graph[a])


@given(GRAPHS, st.sampled_from(NODES), st.sampled_from(NODES))
def test_shortest_path(graph: dict[str, list[str]], start: str, end: str) -> None:
    way = shortest_path(graph, start, end, NODES)
    if start == end:
        assert way == [start]
    elif end in reachable(graph, start):
        assert way[0] == start
        assert way[-1] == end
        assert all(b in graph[a] for a, b in pairwise(way))
    else:
        assert way == []


def test_what_is_behind_a_node() -> None:
    graph = parse("later -> out\nlater = b -> sort()\nx = later -> union(y)\ny = x -> prev()")
    assert behind(graph, ["out"]) == {"b", "later", "out"}
    assert behind(graph, ["y"]) == {"b", "later", "x", "y"}


def test_outputs() -> None:
    graph = parse("p = a -> partition(lambda x: 'x', ['x', 'y'])\np[x] -> null()\np[y] -> out")
    assert outputs(graph["p"]) == (Endpoint("p", "x"), Endpoint("p", "y"))
    assert outputs(graph["null_1"]) == outputs(graph["out"]) == ()
    assert outputs(graph["a"]) == (Endpoint("a"),)
