"""Broken graphs are found."""

from __future__ import annotations

import pytest

from hydro_core.catalog.spec import Args
from hydro_core.ir.graph import Endpoint, Graph, Node
from hydro_core.lang.resolve import parse
from hydro_core.optimize.optimizer import BrokenGraphError, verify

GOOD = parse("p = a -> partition(lambda x: 'x', ['x'])\np[x] -> union(b) -> null()\nnull() -> out")


def test_a_good_graph() -> None:
    assert verify(GOOD) is GOOD


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("p", {"inputs": ()}, "p: has 0 inputs"),
        ("p", {"inputs": (Endpoint("q"),)}, "p: reads q, which is not there"),
        ("union_1", {"inputs": (Endpoint("p"),)}, "union_1: reads p, which is no output"),
        ("union_1", {"inputs": (Endpoint("out"),)}, "reads out, which is no output"),
        ("union_1", {"inputs": ()}, "union_1: has 0 inputs"),
        ("out", {"args": Args()}, "out: lacks the argument name"),
        ("b", {"args": GOOD["a"].args}, "two inputs are called 'a'"),
    ],
)
def test_a_broken_graph(name: str, changes: dict[str, object], words: str) -> None:
    nodes: list[Node] = [n.with_(**changes) if n.id == name else n for n in GOOD]
    with pytest.raises(BrokenGraphError, match=words.replace("(", r"\(")):
        verify(Graph.of(nodes))
