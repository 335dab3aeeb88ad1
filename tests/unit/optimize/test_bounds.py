"""Programs of many operators, in the shapes that grow: how much is looked at stays within bounds.

Nodes, rounds and characters are counted, not seconds.
"""

from collections.abc import Callable

import pytest

from hydro_core.compile import compile_text
from hydro_core.optimize.egraph import EGraph
from hydro_core.optimize.extract import MAX_VISITS
from hydro_core.optimize.load import load
from hydro_core.optimize.optimizer import OptimizedProgram, optimize, prepare
from hydro_core.optimize.report import as_text, explanation
from tests.support.selection import mostly_slow

ROWS = 'a = source("k long, v long"); b = source("k long, w long"); q = b -> persist()\n'
NUMBERS = 'a = source("long")\n'
MAX_TEXT = 1_500_000
"""Characters of a plan or of an explanation."""


def _chain(count: int, start: str, step: str, end: str) -> str:
    """A stream that goes through one step after another."""
    steps = "\n".join(step.format(i=i, j=i + 1) for i in range(count))
    return f"{start}\n{steps}\nx{count} -> {end}out"


def _inputs(count: int, kind: str, step: str) -> str:
    """Histories of many inputs, one after the other."""
    named = "\n".join(f'a{i} = source("{kind}"); p{i} = a{i} -> persist()' for i in range(count))
    return _chain(count - 1, f"{named}\nx0 = p0", step, "delta() -> ")


def _diamonds(n: int) -> str:
    step = (
        "l{i} = x{i} -> map(lambda x: x + {i}); r{i} = x{i} -> filter(lambda x: x != {i})\n"
        "u{i} = union(); l{i} -> u{i}; r{i} -> u{i}; x{j} = u{i} -> unique()"
    )
    return _chain(n // 4, NUMBERS + "x0 = a -> persist()", step, "delta() -> ")


def _joined(n: int) -> str:
    step = (
        'l{i} = x{i} -> select("k", v=lambda r: r.v); r{i} = x{i} -> select("k", w=lambda r: r.v)\n'
        'x{j} = l{i} -> join(right=r{i}, on="k") -> select("k", v=lambda r: r.w)'
    )
    return _chain(n // 4, ROWS + "x0 = a -> persist(); q -> more", step, "delta() -> ")


def _aggregates(n: int) -> str:
    outputs = (
        f'a -> persist() -> filter(lambda r: r.v != {i}) -> aggregate(by="k", n=count()) -> o{i}'
        for i in range(n // 4)
    )
    return ROWS + "q -> more\n" + "\n".join(outputs)


SHAPES: dict[str, Callable[[int], str]] = {
    "maps": lambda n: NUMBERS + "a" + " -> map(lambda x: x + 1)" * n + " -> out",
    "filters": lambda n: (
        NUMBERS + "a" + "".join(f" -> filter(lambda x: x != {i})" for i in range(n)) + " -> out"
    ),
    "histories": lambda n: NUMBERS + "a" + " -> persist()" * n + " -> out",
    "before": lambda n: NUMBERS + "a" + " -> prev()" * n + " -> out",
    "before a history": lambda n: (
        NUMBERS + "a -> persist()" + " -> prev()" * n + " -> delta() -> out"
    ),
    "new": lambda n: NUMBERS + "a -> persist()" + " -> delta()" * n + " -> out",
    "distinct": lambda n: NUMBERS + "a" + " -> persist() -> unique()" * (n // 2) + " -> out",
    "mapped and distinct": lambda n: (
        NUMBERS + "a -> persist()" + " -> map(lambda x: x // 2) -> unique()" * (n // 2) + " -> out"
    ),
    "squares": lambda n: _chain(
        min(n, 60), NUMBERS + "x0 = a", "x{j} = cross(); x{i} -> [0]x{j}; x{i} -> [1]x{j}", ""
    ).replace("cross()", "cross() -> map(lambda x, y: x)"),
    "crosses": lambda n: _inputs(
        n // 4, "long", "x{j} = x{i} -> cross(right=p{j}) -> map(lambda x, y: x + y)"
    ),
    "joins": lambda n: _inputs(
        n // 4, "(long, long)", "x{j} = x{i} -> join(right=p{j}) -> map(lambda k, p: (k, p[0]))"
    ),
    "unions": lambda n: _inputs(n // 3, "long", "x{j} = union(); x{i} -> x{j}; p{j} -> x{j}"),
    "diamonds": _diamonds,
    "diamonds of joins": _joined,
    "aggregates": _aggregates,
    "aggregates of aggregates": lambda n: _chain(
        n // 2,
        ROWS + "q -> more; x0 = a -> persist()",
        'x{j} = x{i} -> aggregate(by="k", v=max("v")) -> persist()',
        "",
    ),
    "semi and anti joins": lambda n: _chain(
        n // 2,
        ROWS + "x0 = a -> persist()",
        'y{i} = x{i} -> join(right=q, on="k", how="anti")\n'
        'x{j} = y{i} -> join(right=q, on="k", how="semi")',
        "delta() -> ",
    ),
    "left joins": lambda n: _chain(
        n // 3,
        ROWS + "x0 = a -> persist()",
        'x{j} = x{i} -> join(right=q, on="k", how="left") -> select("k", "v")',
        "changes() -> ",
    ),
}
QUICK = ("histories", "mapped and distinct", "joins", "diamonds", "left joins")


def _check(found: OptimizedProgram) -> None:
    assert found.cost_after <= found.cost_before * (1 + 1e-9)
    assert found.saturation.nodes <= 80_000
    assert len(as_text(found)) + len(explanation(found)) <= MAX_TEXT


@pytest.mark.parametrize("shape", mostly_slow(SHAPES, QUICK))
def test_fifty_operators_are_optimized_and_explained_in_full(shape: str) -> None:
    found = optimize(compile_text(SHAPES[shape](50)).typed, explain=True)
    _check(found)
    assert found.saturation.saturated
    assert found.saturation.nodes <= 1_500
    assert found.saturation.iterations <= 200
    assert found.derivations


@pytest.mark.parametrize("shape", mostly_slow(SHAPES, QUICK))
def test_what_is_loaded_is_the_program(shape: str) -> None:
    problem, rules = prepare(load(compile_text(SHAPES[shape](300)).typed))
    space = EGraph(problem, rules).space()
    of = {n: space.named[problem.cuts.get(n, n)] for n in (*space.named, *problem.cuts)}
    nodes = {(n.shape.name, n.payload, n.inputs, n.cls) for n in space.nodes}
    for d in problem.definitions:
        assert (d.shape, d.payload, tuple(of[i] for i in d.inputs), of[d.name]) in nodes, d


@pytest.mark.slow
@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_three_hundred_operators_are_optimized(shape: str, explain: bool) -> None:
    found = optimize(compile_text(SHAPES[shape](300)).typed, explain=explain)
    _check(found)
    assert (
        found.derivations or not explain or any("not explained" in limit for limit in found.limits)
    )


def test_the_search_says_where_it_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_VISITS > 1_000
    monkeypatch.setattr("hydro_core.optimize.extract.MAX_VISITS", 1_000)
    found = optimize(compile_text(SHAPES["diamonds"](40)).typed)
    assert any("search among plans stopped" in limit for limit in found.limits)
    assert "search among plans stopped" in as_text(found)


def test_six_hundred_operators_are_explained() -> None:
    found = optimize(compile_text(SHAPES["maps"](600)).typed, explain=True)
    assert len(found.derivations) == 1
    assert "(let " in as_text(found)
    assert len(explanation(found)) < 30_000
