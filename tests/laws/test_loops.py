"""Cycles inside a tick that go on from the tick before: plans agree, and are incremental."""

from __future__ import annotations

import pytest

from hydro_core.compile import compile_graph, compile_text
from hydro_core.optimize.optimizer import optimize
from hydro_core.validation.random_ticks import validate_randomly

EDGES = 'edges = source("(long, long)"); known = edges -> persist()\n'
START = 'start = source("(long, long)"); begun = start -> persist()\n'
GROWING = {
    "reachable": EDGES
    + """
        reach = union() -> unique()
        known -> reach
        reach -> map(lambda a, b: (b, a)) -> join(right=known) -> map(lambda k, p: p) -> reach
        reach -> delta() -> out""",
    "closure by itself": EDGES
    + """
        reach = union() -> unique()
        known -> reach
        turned = reach -> map(lambda a, b: (b, a))
        turned -> join(right=reach) -> map(lambda k, p: p) -> reach
        reach -> delta() -> out""",
    "from a start, filtered": EDGES
    + START
    + """
        found = union() -> unique()
        begun -> filter(lambda x: x[0] != 2) -> found
        turned = found -> join(right=known) -> map(lambda k, p: (p[1], p[0] % 3))
        turned -> filter(lambda x: x[0] > 0) -> found
        found -> delta() -> out; found -> all""",
    "two joins": EDGES
    + START
    + """
        found = union() -> unique()
        begun -> found
        one = found -> join(right=known) -> map(lambda k, p: (p[1], k))
        one -> join(right=begun) -> map(lambda k, p: (p[1], p[0])) -> unique() -> found
        found -> delta() -> out""",
    "cross": START
    + """
        found = union() -> unique()
        begun -> found
        found -> cross(right=begun) -> map(lambda x, y: (x[0], y[1])) -> found
        found -> delta() -> out""",
}
SHRINKING = {
    "edges of this tick": """
        edges = source("(long, long)")
        reach = union() -> unique()
        edges -> reach
        reach -> map(lambda a, b: (b, a)) -> join(right=edges) -> map(lambda k, p: p) -> reach
        reach -> delta() -> out""",
    "a window": """
        edges = source("(long, long)")
        known = edges -> window(2)
        reach = union() -> unique()
        known -> reach
        reach -> map(lambda a, b: (b, a)) -> join(right=known) -> map(lambda k, p: p) -> reach
        reach -> delta() -> out""",
}


@pytest.mark.parametrize("name", GROWING)
def test_a_growing_cycle_is_incremental(name: str) -> None:
    program = compile_text(GROWING[name])
    found = optimize(program.typed)
    assert not found.notes
    plan = compile_graph(found.graph)
    assert not any(n.op.name == "delta" for n in plan.graph)
    assert plan.strata.recursive
    assert validate_randomly(plan, program, 60) is None


@pytest.mark.parametrize("name", SHRINKING)
def test_a_cycle_whose_inputs_lose_items_starts_again(name: str) -> None:
    program = compile_text(SHRINKING[name])
    found = optimize(program.typed)
    assert any(n.op.name == "delta" for n in found.graph)
    assert validate_randomly(compile_graph(found.graph), program, 40) is None
