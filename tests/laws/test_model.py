"""The e-graph is checked against the reference: every node of a class computes its stream.

Each class is computed in one way, each of its nodes from there once more, all in one program.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from hydro_core.catalog.classes import Output
from hydro_core.catalog.internal import operator
from hydro_core.catalog.spec import Args
from hydro_core.compile import CompiledProgram, compile_graph, compile_text
from hydro_core.errors import DataError
from hydro_core.optimize.egraph import EGraph, ENode, Problem, Space
from hydro_core.optimize.extract import Plan, _search, _trees
from hydro_core.optimize.load import LoadedProblem, load
from hydro_core.optimize.optimizer import preferred, prepare
from hydro_core.optimize.rebuild import rebuild
from hydro_core.optimize.rule import Payload, Rule, Shape, Sort, rule
from hydro_core.reference.interpreter import run_ticks
from hydro_core.types.values import canonical
from hydro_core.validation.random_ticks import random_ticks
from tests.support.flows import typed_program
from tests.support.selection import mostly_slow

MOST_NODES = 400
ROUNDS, TRIES = 3, 12
"""How often a program is run, and with how many data at most: some make a function fail."""


def _saturated(
    compiled: CompiledProgram, more: tuple[Rule, ...] = ()
) -> tuple[LoadedProblem, Problem, Space]:
    loaded = load(compiled.typed)
    problem, rules = prepare(loaded)
    egraph = EGraph(problem, (*rules, *more))
    for _ in range(25):
        if not egraph.step() or egraph.size() > MOST_NODES:
            break
    return loaded, problem, egraph.space()


def _spread(problem: Problem, space: Space) -> tuple[tuple[Payload, ...], Space, Plan, list[int]]:
    """A plan with an output for each node, beside its class's chosen one, and their classes."""
    costs = [1.0] * len(space.nodes)
    search = _search(space, costs)
    trees = _trees(search, lambda node: (*search.now[node], *search.later[node]))
    chosen = {**trees, **preferred(problem, space)}
    sinks = {
        b: Shape(
            "sink" if b is Sort.BAG else "sink!",
            (b,),
            Output(),
            b,
            True,
            operator("sink"),
            (True,),
            strict=(False,),
        )
        for b in Sort
    }
    nodes, of, roots = list(space.nodes), [list(o) for o in space.of], []
    payloads, classes = list(problem.payloads), []

    def add(node: ENode) -> int:
        nodes.append(node)
        of.append([len(nodes) - 1])
        chosen[node.cls] = len(nodes) - 1
        return node.cls

    def output(cls: int, sort: Sort, original: int) -> None:
        payloads.append(Payload(Args((("name", f"n{len(classes)}"),))))
        classes.append(original)
        roots.append(add(ENode(sinks[sort], len(payloads) - 1, (cls,), len(of))))

    for cls, options in enumerate(space.of):
        if cls not in chosen or nodes[chosen[cls]].shape.name.startswith("sink"):
            continue
        sort = nodes[chosen[cls]].shape.output
        output(cls, sort, cls)
        for option in options:
            node = space.nodes[option]
            if option != chosen[cls] and all(i in chosen for i in node.inputs):
                output(add(replace(node, cls=len(of))), sort, cls)
    made = Space(tuple(nodes), tuple(map(tuple, of)), tuple(roots), space.named)
    return tuple(payloads), made, Plan(chosen, 0.0), classes


def check_model(compiled: CompiledProgram, rng: Random, more: tuple[Rule, ...] = ()) -> list[str]:
    """The nodes that do not compute their class."""
    loaded, problem, space = _saturated(compiled, more)
    payloads, made, plan, classes = _spread(problem, space)
    graph, _ = rebuild(loaded, payloads, made, plan)
    types = {n: t.item for n, t in compiled.typed.inputs.items()}
    everything = compile_graph(graph, types)
    first = {cls: number for number, cls in reversed(list(enumerate(classes)))}
    wrong, compared = [], 0
    for _ in range(TRIES):
        ticks = random_ticks(compiled, rng)
        try:
            found = list(run_ticks(everything.typed, everything.strata, ticks))
        except DataError:
            continue
        compared += 1
        for number, cls in enumerate(classes):
            for tick in found:
                one, other = tick[f"n{first[cls]}"], tick[f"n{number}"]
                if Counter(map(canonical, one)) != Counter(map(canonical, other)):
                    wrong.append(f"class {cls}: {one} or {other}")
        if compared == ROUNDS:
            break
    assert compared > ROUNDS // 2
    return wrong


@pytest.mark.parametrize("seed", mostly_slow(range(25), 6))
def test_every_node_computes_its_class(seed: int) -> None:
    rng = Random(seed)
    _, compiled = typed_program(rng, rng.randint(2, 5))
    assert not check_model(compiled, rng)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("(persist (persist ?a)) => (persist ?a)", "a -> persist() -> persist() -> out"),
        ("(persist (delta ?a)) => ?a", "a -> delta() -> persist() -> out"),
        ("(unique (persist ?a)) => (persist (unique ?a))", "a -> persist() -> unique() -> out"),
        (
            "(delta (union ?a ?b)) => (union (delta ?a) (delta ?b))",
            "a -> union(b) -> delta() -> out",
        ),
        (
            "(difference ?a (union ?b ?c)) => (union (difference ?a ?b) (difference ?a ?c))",
            "n = a -> union(b); a -> difference(neg=n) -> out",
        ),
    ],
)
def test_a_wrong_rule_is_caught_within_a_few_inputs(text: str, source: str) -> None:
    compiled = compile_text('a = source("long"); b = source("long"); ' + source)
    loaded = load(compiled.typed)
    shapes = prepare(loaded)[0].shapes
    wrong = rule("wrong", text, "it is not", shapes)
    assert any(check_model(compiled, Random(i), wrong) for i in range(8))
