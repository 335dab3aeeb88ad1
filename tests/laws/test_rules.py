"""Every rule is true: both sides give the same on random ticks, with functions drawn anew."""

from __future__ import annotations

from random import Random

import pytest

from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.errors import DataError
from hydro_core.optimize.rule import Fact, Rule, Var, rule
from hydro_core.reference.interpreter import run_ticks
from hydro_core.types.item import Order
from hydro_core.types.values import canonical
from hydro_core.validation.random_ticks import random_ticks
from tests.support.patterns import Instance, all_rules, all_shapes

EVERYTHING = all_rules()
ELSEWHERE = {"join_left", "join_right", "cross_left", "cross_right", "on_keys"} | {
    "joined",
    "composed",
    "conjunct",
    "kept",
    "equates",
    "equates_as",
}
"""Facts about pairs of functions: rules that need them are tested in `test_filters.py`,
that of joined streams in `test_orders.py`, those of rows of which no two are the same in
`test_matches_before_single.py` and `test_equal_to_single.py`.
"""
RULES = [
    r for r in EVERYTHING if not any(isinstance(c, Fact) and c.name in ELSEWHERE for c in r.when)
]
ENDLESS = {"empty-added-left", "empty-added-right"}
"""Where the stream has an item these programs never end, so few draws are left."""
SHAPES = all_shapes()
DRAWS = 6
RUNS = 6


def test_rules_have_different_names_and_reasons() -> None:
    names = [r.name for r in EVERYTHING]
    assert len(names) == len(set(names))
    assert all(r.because and r.because[0].islower() for r in EVERYTHING)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_a_rule_is_true_on_random_ticks(rule: Rule) -> None:
    compared = 0
    for draw in range(DRAWS):
        rng = Random(f"{rule.name}/{draw}")
        program = compile_graph(Instance(rule, rng, SHAPES).graph())
        for _ in range(RUNS):
            compared += _check(rule, program, rng)
    assert compared > (0 if rule.name in ENDLESS else DRAWS)


def _check(rule: Rule, program: CompiledProgram, rng: Random) -> int:
    try:
        ticks = list(run_ticks(program.typed, program.strata, random_ticks(program, rng)))
    except DataError:
        return 0
    before: list[object] = []
    for tick in ticks:
        left = list(map(canonical, tick["left"]))
        if rule.rhs == Fact("empty", (Var("x"),)):
            assert not left, f"{rule.name}: {left} is there"
            continue
        if isinstance(rule.rhs, Fact):
            lost = list(before)
            for item in left:
                if item in lost:
                    lost.remove(item)
            assert not lost, f"{rule.name}: {lost} is gone"
            before = left
            continue
        right = list(map(canonical, tick["right"]))
        ordered = program.typed.outputs["left"].order is Order.TOTAL
        same = left == right if ordered else _bag(left) == _bag(right)
        assert same, f"{rule}: {left} is not {right}"
    return len(ticks)


def _bag(items: list[object]) -> list[str]:
    return sorted(map(repr, items))


WRONG = {
    "persist-persist": "(persist (persist ?a)) => (persist ?a)",
    "persist-delta": "(persist (delta ?a)) => ?a",
    "delta-map": "(delta (map ?f ?a)) => (map ?f (delta ?a))",
    "delta-delta": "(delta (delta ?a)) => (delta ?a)",
    "delta-chain": "(delta (chain ?a ?b)) => (chain (delta ?a) (delta ?b))",
    "delta-difference": "(delta (difference (persist ?a) ?b)) => (difference ?a ?b)",
    "difference-persist": "(difference (persist ?a) (persist ?b))"
    " => (persist (difference ?a (persist ?b)))",
    "persist-cross": "(persist (cross ?a ?b)) => (cross (persist ?a) (persist ?b))",
    "unique-persist": "(unique (persist ?a)) => (persist (unique ?a))",
    "fold-prev": "(fold ?f (prev ?a)) => (prev (fold ?f ?a))",
    "chain-commutes-in-order": "(chain! ?a ?b) => (chain! ?b ?a)",
    "left-join-splits": "(join:left ?f ?a (chain (prev ?b) ?c))"
    " => (chain (join:left ?f ?a (prev ?b)) (join:left ?f ?a ?c))",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_caught(name: str) -> None:
    with pytest.raises(AssertionError, match="is not"):
        _check_often(name)


def _check_often(name: str) -> None:
    for number in range(10):
        (wrong,) = rule(f"{name}-{number}", WRONG[name], "it is not true", SHAPES)
        test_a_rule_is_true_on_random_ticks(wrong)
