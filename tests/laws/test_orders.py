"""Joins in other orders: plans agree, statistics choose, and what may not be taken apart is not."""

from __future__ import annotations

from random import Random

import pytest

from hydro_core.compile import CompiledProgram, compile_graph, compile_text
from hydro_core.ir.sexpr import flatten, to_tree
from hydro_core.ir.term import to_terms
from hydro_core.optimize.cost import InputStatistics, Statistics
from hydro_core.optimize.optimizer import optimize
from hydro_core.optimize.orders import trees_of
from hydro_core.validation.random_ticks import validate_randomly
from tests.laws.test_filters import _fired
from tests.laws.test_model import check_model

CHAIN = """
a = source("x long, p long"); b = source("x long, y long"); c = source("y long, q long")
pa = a -> persist(); pb = b -> persist(); pc = c -> persist()
pa -> join(right=pb, on="x") -> join(right=pc, on="y") -> delta() -> out
"""
STAR = """
a = source("x long, p string"); b = source("x long, q double"); c = source("x long, r long")
d = source("p string, s long")
a -> join(right=b, on="x") -> join(right=c, on="x") -> join(right=d, on="p") -> out
"""
BUSHY = """
a = source("x long, y long"); b = source("x long, q long"); c = source("y long, z long")
d = source("z long, r long")
e = c -> join(right=d, on="z")
a -> persist() -> join(right=b, on="x") -> join(right=e, on="y") -> out
"""
CASES = {"chain": CHAIN, "star": STAR, "bushy": BUSHY}
APART = {
    "padded": CHAIN.replace('on="y")', 'on="y", how="left")'),
    "suffix": CHAIN.replace('on="y")', 'on="y", suffix="_c")'),
    "other types": CHAIN.replace("y long, q long", "y int, q long"),
    "two leaves": 'a = source("x long"); b = source("x long"); a -> join(right=b, on="x") -> out',
    "tuples": 'a = source("(long, long)"); b = source("(long, long)"); c = source("(long, long)")\n'
    "a -> join(right=b) -> join(right=c) -> out",
}


def _checked(program: CompiledProgram, stats: Statistics | None = None) -> str:
    found = optimize(program.typed, stats=stats)
    plan = compile_graph(found.graph, {n: t.item for n, t in program.typed.inputs.items()})
    assert validate_randomly(plan, program, 80) is None
    (term,) = to_terms(found.graph).values()
    return flatten(to_tree(term, {}))


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_joins_are_taken_in_other_orders(text: str) -> None:
    program = compile_text(text)
    assert "join-order" in _fired(program)
    for big in program.typed.inputs:
        inputs = {
            name: InputStatistics(rows=1000 if name == big else 10, keys=10)
            for name in program.typed.inputs
        }
        _checked(program, Statistics(inputs=inputs))


@pytest.mark.parametrize("text", APART.values(), ids=APART)
def test_what_is_no_natural_join_stays(text: str) -> None:
    program = compile_text(text)
    assert not list(trees_of(program.typed))
    assert "join-order" not in _fired(program)
    _checked(program)


@pytest.mark.parametrize("text", CASES.values(), ids=CASES)
def test_every_order_computes_the_same(text: str) -> None:
    for seed in range(4):
        assert not check_model(compile_text(text), Random(seed))


def test_statistics_choose_the_order() -> None:
    """Few rows of one side come first: then the others meet fewer."""
    program = compile_text(CHAIN)
    small, large = InputStatistics(rows=1, keys=20), InputStatistics(rows=1000, keys=100)
    first_a = _checked(program, Statistics(inputs={"a": small, "b": large, "c": large}))
    first_c = _checked(program, Statistics(inputs={"a": large, "b": large, "c": small}))
    assert first_a == (
        "(let old_1 (old a) (let pb (persist b)"
        " (chain (join on=('y',) (chain (join on=('x',) old_1 b) (join on=('x',) a pb)) (old c))"
        " (join on=('y',) (join on=('x',) (chain old_1 a) pb) c))))"
    )
    assert first_c == (
        "(let old_1 (old b) (let old_2 (old c) (select columns=('y', 'x', 'p', 'q') (chain"
        " (join on=('x',) a (select columns=('y', 'x', 'q') (join on=('y',) old_1 old_2)))"
        " (join on=('x',) (persist a) (select columns=('y', 'x', 'q')"
        " (chain (join on=('y',) old_1 c) (join on=('y',) b (chain old_2 c)))))))))"
    )
