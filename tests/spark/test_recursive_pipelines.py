"""Recursion in pipelines: however ticks are cut, and whatever comes late, as the reference says."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.compile import CompiledProgram, best_plan, compile_graph, planned
from hydro_core.engines import Options, run_whole
from hydro_core.errors import DataError
from hydro_core.lang.rules.translate import graph_of_rules, read_rules
from hydro_core.spark.executor import planned_rounds
from hydro_core.spark.pipeline.jobs import RangeJobs
from hydro_core.spark.pipeline.kept_plan import KEPT_PLANS, can_be_kept
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rework import correction
from hydro_core.ticks.tick import Outputs, TickInput
from tests.spark.pipelines import SETTINGS
from tests.support.refused import Refused
from tests.support.stored import batch, outputs_at, stored_outputs

pytestmark = pytest.mark.spark

TICKS = 6
RULES = """
.input edge(src: string, dst: string)
.input start(x: string)
.input cut(x: string)
.output path, far, odd, even, lonely
edge(x, y)@next :- edge(x, y).
start(x)@next :- start(x).
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
far(x, y, 1) :- edge(x, y).
far(x, z, n + 1) :- far(x, y, n), edge(y, z), n < 3.
odd(x, y) :- edge(x, y).
odd(x, z) :- even(x, y), edge(y, z).
even(x, z) :- odd(x, y), edge(y, z).
lonely(x) :- start(x), !path(x, _), !cut(x).
"""
"""Recursion by both sides, with a computed column, through two predicates."""
STAYS = """
.input edge(src: string, dst: string)
.input start(x: string)
.input cut(x: string)
.output path
edge(x, y)@next :- edge(x, y).
start(x)@next :- start(x).
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), path(y, z).
"""
IN_TURNS = """
.input edge(src: string, dst: string)
.output odd, even
edge(x, y)@next :- edge(x, y).
odd(x, y) :- edge(x, y).
odd(x, z) :- even(x, y), edge(y, z).
even(x, z) :- odd(x, y), edge(y, z).
"""
MAY_GO = """
.output reached
alive(x, y) :- edge(x, y), !cut(x).
reached(x) :- start(x).
reached(y) :- reached(x), alive(x, y).
"""
"""What is derived anew in each tick."""


def program(rules: str = RULES) -> CompiledProgram:
    return compile_graph(graph_of_rules(read_rules(rules)))


def ticks(seed: int) -> list[TickInput]:
    """Few nodes, so that there are cycles; nulls are nodes, too."""
    random = Random(seed)

    def node() -> str | None:
        return random.choice(["a", "b", "c", "d", "e", "f", "g", None])

    def tick() -> TickInput:
        edges: list[dict[str, Any]] = [
            {"src": node(), "dst": node()} for _ in range(random.randint(0, 3))
        ]
        ones = {name: [{"x": node()}] * random.randint(0, 1) for name in ("start", "cut")}
        return TickInput({"edge": edges, **ones})

    return [tick() for _ in range(TICKS)]


def with_edges(tick: TickInput, *pairs: tuple[str, str]) -> TickInput:
    more = [{"src": a, "dst": b} for a, b in pairs]
    return TickInput({**tick.batches, "edge": [*tick.batches["edge"], *more]})


def by_reference(made: CompiledProgram, given: list[TickInput]) -> str:
    return text(list(run_whole(made, iter(given), Options(optimized=False))))


def text(found: list[Outputs]) -> str:
    return repr([{name: sorted(map(repr, items)) for name, items in one.items()} for one in found])


@pytest.mark.parametrize(
    ("rules", "mode"),
    [
        pytest.param(RULES, "few", marks=pytest.mark.slow),
        pytest.param(STAYS + MAY_GO, "switched", marks=pytest.mark.slow),
        (IN_TURNS, "switched"),
    ],
)
def test_as_the_reference_says(rules: str, mode: str, tmp_path: Path, spark: SparkSession) -> None:
    made = program(rules)
    given = [TickInput({n: t.batches[n] for n in made.typed.inputs}) for t in ticks(3)]
    assert text(stored_outputs(tmp_path, made, given, mode, spark)) == by_reference(made, given)


def test_late_rows_and_more_rows_than_pass_through_the_driver(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A correction, a tick whose rounds are too large for plans of few rows, and ticks after it."""
    made = program()
    plan, items = planned(made, best_plan(made)), made.typed.inputs
    given = ticks(5)
    refused: list[str] = []

    class Noted(planned_rounds.TooManyRowsError):
        def __init__(self, name: str) -> None:
            refused.append(name)
            super().__init__(name)

    def run(pipeline: Pipeline, tick: int) -> None:
        batches = {n: batch(n, of.item, given, tick, tick) for n, of in items.items()}
        pipeline.run_range(tick, tick, batches)

    assert can_be_kept(plan)
    for tick in range(4):
        run(Pipeline(tmp_path, plan, SETTINGS, spark), tick)
    pipeline = Pipeline(tmp_path, plan, SETTINGS, spark)
    given[2] = with_edges(given[2], ("h", "a"))
    given[3] = with_edges(given[3], ("g", "h"))
    with correction(pipeline, 2) as rework:
        for tick in (2, 3):
            run(rework.staging, tick)
        rework.replace()
    given[4] = with_edges(given[4], *(("h", name) for name in "ijklmn"))
    with monkeypatch.context() as patched:
        patched.setattr(planned_rounds, "TooManyRowsError", Noted)
        patched.setattr(RangeJobs, "_has_few_rows", lambda *_: True)
        run(Pipeline(tmp_path, plan, SETTINGS.with_(small_write_rows=5), spark), 4)
    assert refused
    run(pipeline, 5)
    assert text(outputs_at(pipeline, range(TICKS))) == by_reference(made, given)


def test_a_tick_without_an_end_fails_and_nothing_of_it_stays(
    tmp_path: Path, spark: SparkSession, refused: Refused
) -> None:
    rules = """
    .input start(n: long)
    .output all
    start(n)@next :- start(n).
    all(n) :- start(n).
    all(n + 1) :- all(n), n != 5.
    """
    made = compile_graph(graph_of_rules(read_rules(rules)))
    plan = planned(made, best_plan(made))
    pipeline = Pipeline(tmp_path, plan, SETTINGS.with_(max_iterations=20), spark)
    of = made.typed.inputs["start"].item
    given = [TickInput({"start": [{"n": n}]}) for n in (1, 3, 6, 0)]

    def run(tick: int) -> None:
        pipeline.run_range(tick, tick, {"start": batch("start", of, given, tick, tick)})

    for tick in (0, 1):
        run(tick)
    with refused(DataError, "runtime", at="5:5"):
        run(2)
    given[2] = TickInput({"start": [{"n": 4}]})
    for tick in (2, 3):
        run(tick)
    assert [r["n"] for r in outputs_at(pipeline, range(3, 4))[0]["all"]] == [0, 1, 2, 3, 4, 5]


def test_plans_are_kept(tmp_path: Path, spark: SparkSession) -> None:
    """A tick of few rows is planned once, its rounds too."""
    made = program()
    plan = planned(made, best_plan(made))
    pipeline, given = Pipeline(tmp_path, plan, SETTINGS, spark), ticks(7)
    items, kept = made.typed.inputs, set(KEPT_PLANS._plans)
    for tick in range(3):
        batches = {n: batch(n, of.item, given, tick, tick) for n, of in items.items()}
        pipeline.run_range(tick, tick, batches)
    new = [plan for key, plan in KEPT_PLANS._plans.items() if key not in kept]
    assert len(new) == 1
    assert new[0] is not None
