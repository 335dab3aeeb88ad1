"""Random programs: plans give what programs give and cost no more, and do not depend on chance."""

from __future__ import annotations

from random import Random

import pytest

from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.ir.sexpr import show
from hydro_core.ir.term import to_terms
from hydro_core.lang.resolve import parse
from hydro_core.optimize.optimizer import optimize
from hydro_core.running import given_types, read_ticks
from hydro_core.validation.random_ticks import random_ticks, validate
from tests.laws.programs import random_program
from tests.support.flows import typed_program
from tests.support.selection import mostly_slow

RUNS = 3
MOST_NODES = 5_000
"""Nodes that a small program's rules make; where terms are made without end it is millions."""


def _plan(compiled: CompiledProgram) -> CompiledProgram:
    found = optimize(compiled.typed)
    assert found.cost_after <= found.cost_before * 1.0001
    assert found.saturation.nodes < MOST_NODES
    return compile_graph(found.graph, {n: t.item for n, t in compiled.typed.inputs.items()})


def _check_stateful(seed: int) -> None:
    rng = Random(seed)
    text, compiled = typed_program(rng, rng.randint(2, 7))
    plan = _plan(compiled)
    for number in range(RUNS):
        ticks = random_ticks(compiled, Random(f"{seed}/{number}"))
        found = validate(plan, compiled, ticks)
        assert found is None, f"{text}\n{found}"


def _check_any(seed: int) -> None:
    made = random_program(seed, steps=8)
    graph = parse(made.text)
    compiled = compile_graph(graph, given_types(graph, made.schemas, made.ticks))
    plan = _plan(compiled)
    runs = [list(read_ticks(compiled.typed, made.ticks))]
    runs += [random_ticks(compiled, Random(f"{seed}/{number}")) for number in range(RUNS)]
    for ticks in runs:
        found = validate(plan, compiled, ticks)
        assert found is None, f"{made}\n{found}"


@pytest.mark.parametrize("seed", mostly_slow(range(50), 12))
def test_a_stateful_program_and_its_plan_agree(seed: int) -> None:
    _check_stateful(seed)


@pytest.mark.parametrize("seed", mostly_slow(range(50), 12))
def test_any_program_and_its_plan_agree(seed: int) -> None:
    _check_any(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_a_thousand_programs_and_their_plans_agree(block: int) -> None:
    for seed in range(1000 + 50 * block, 1050 + 50 * block):
        _check_stateful(seed) if seed % 2 else _check_any(seed)


def test_plans_and_explanations_are_the_same_each_time() -> None:
    compiled = typed_program(Random(11), 8)[1]
    shown = []
    for _ in range(2):
        found = optimize(compiled.typed, explain=True)
        shown.append(
            (
                [show(t) for t in to_terms(found.graph).values()],
                list(found.graph.nodes),
                found.cost_after,
                [d.render() for d in found.derivations],
            )
        )
    assert shown[0] == shown[1]


def test_explaining_does_not_change_the_plan() -> None:
    for seed in (3, 5, 8):
        compiled = typed_program(Random(seed), 6)[1]
        plain, explained = optimize(compiled.typed), optimize(compiled.typed, explain=True)
        assert plain.graph.nodes == explained.graph.nodes
