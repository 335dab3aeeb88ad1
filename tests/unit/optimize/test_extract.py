"""Extraction against an exact search, on random programs and on small spaces."""

from __future__ import annotations

from random import Random

import highspy
import numpy as np
import pytest

from hydro_core.catalog.classes import ExternalItems, ItemEffect, PerItem, PreviousTick, Sum
from hydro_core.ir.graph import reachable
from hydro_core.optimize.cost import CostModel, Statistics
from hydro_core.optimize.egraph import EGraph, ENode, Space
from hydro_core.optimize.extract import extract, plan_cost
from hydro_core.optimize.load import load
from hydro_core.optimize.optimizer import preferred, prepare
from hydro_core.optimize.rule import Shape, Sort
from tests.support.flows import typed_program

INFINITY = 1e30


def exact(space: Space, costs: list[float]) -> float:
    """The cost of the best legal plan: one node per used class; levels forbid cycles in a tick."""
    ways = lambda cls: (c for i in space.of[cls] for c in space.nodes[i].inputs)  # noqa: E731
    classes = sorted(reachable(space.roots, ways))
    nodes = [i for c in classes for i in space.of[c]]
    column = {node: i for i, node in enumerate(nodes)}
    level = {c: len(nodes) + i for i, c in enumerate(classes)}
    most = float(len(classes))
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("mip_rel_gap", 0.0)
    model.setOptionValue("time_limit", 20.0)
    count = len(nodes) + len(classes)
    upper = np.array([1.0] * len(nodes) + [most] * len(classes))
    model.addVars(count, np.zeros(count), upper)
    model.changeColsCost(
        len(nodes), np.arange(len(nodes), dtype=np.int32), np.array([costs[i] for i in nodes])
    )
    kinds = np.array([highspy.HighsVarType.kInteger] * len(nodes))
    model.changeColsIntegrality(len(nodes), np.arange(len(nodes), dtype=np.int32), kinds)

    def row(low: float, high: float, terms: dict[int, float]) -> None:
        names = np.array(list(terms), dtype=np.int32)
        model.addRow(low, high, len(terms), names, np.array(list(terms.values())))

    for root in space.roots:
        row(1, 1, {column[i]: 1.0 for i in space.of[root]})
    for i in nodes:
        node = space.nodes[i]
        for child, strict in zip(node.inputs, node.shape.strict, strict=True):
            terms = {column[j]: 1.0 for j in space.of[child]}
            terms[column[i]] = terms.get(column[i], 0.0) - 1.0
            row(0, INFINITY, terms)
            if not strict:
                if child == node.cls:
                    row(0, 0, {column[i]: 1.0})
                    continue
                row(
                    -most,
                    INFINITY,
                    {level[node.cls]: 1.0, level[child]: -1.0, column[i]: -most - 1},
                )
    model.run()
    if model.modelStatusToString(model.getModelStatus()) != "Optimal":
        pytest.skip("the exact search takes too long")
    return float(model.getInfo().objective_function_value)


@pytest.mark.parametrize("seed", range(30))
def test_the_search_finds_the_best_plan_or_nearly(seed: int) -> None:
    rng = Random(seed)
    _, compiled = typed_program(rng, rng.randint(2, 5))
    loaded = load(compiled.typed)
    problem, rules = prepare(loaded)
    egraph = EGraph(problem, rules)
    egraph.saturate()
    space = egraph.space()
    if len(space.nodes) > 150:
        pytest.skip("too large for the exact search")
    start = preferred(problem, space)
    model = CostModel(space, problem.payloads, Statistics())
    costs = model.costs(model.sizes(tuple(start.values())))
    plan = extract(space, costs, start)
    assert plan.cost == pytest.approx(plan_cost(space, costs, plan.choice))
    best = exact(space, costs)
    assert best * (1 - 1e-6) <= plan.cost <= best * 1.05 + 1e-6


LEAF = Shape("leaf", (), ExternalItems())
ONE = Shape("one", (Sort.BAG,), PerItem(ItemEffect.ONE), strict=(False,))
TWO = Shape("two", (Sort.BAG, Sort.BAG), Sum(), strict=(False, False))
LATER = Shape("later", (Sort.BAG,), PreviousTick(), strict=(True,))


def _space(*nodes: ENode) -> Space:
    classes = max(n.cls for n in nodes) + 1
    of = tuple(tuple(i for i, n in enumerate(nodes) if n.cls == c) for c in range(classes))
    return Space(nodes, of, (0,), {})


def test_a_shared_class_is_paid_once() -> None:
    space = _space(
        ENode(TWO, None, (1, 2), 0),
        ENode(ONE, None, (3,), 1),
        ENode(LEAF, None, (), 1),
        ENode(ONE, None, (3,), 2),
        ENode(LEAF, None, (), 2),
        ENode(LEAF, None, (), 3),
    )
    # apart, each side is cheaper by its leaf; together, the shared one is
    plan = extract(space, [1.0, 0.0, 6.0, 0.0, 6.0, 10.0], {0: 0, 1: 2, 2: 4})
    assert plan.cost == 11.0
    assert 3 in plan.choice


def test_a_cycle_within_a_tick_is_no_plan() -> None:
    space = _space(ENode(ONE, None, (1,), 0), ENode(ONE, None, (0,), 1), ENode(LEAF, None, (), 1))
    plan = extract(space, [1.0, 1.0, 100.0], {0: 0, 1: 2})
    assert plan.cost == 101.0


def test_a_cycle_through_an_earlier_tick_is_a_plan() -> None:
    space = _space(ENode(ONE, None, (1,), 0), ENode(LATER, None, (0,), 1), ENode(LEAF, None, (), 1))
    plan = extract(space, [1.0, 1.0, 100.0], {0: 0, 1: 2})
    assert plan.cost == 2.0
