"""Random programs over stored histories: however ticks are cut, Spark gives what the reference
says, looks up what is stored, and emits the updates of each result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hydro_core.compile import CompiledProgram, compile_graph, optimized
from hydro_core.lang.resolve import parse
from hydro_core.plan.planner import plan
from hydro_core.running import given_types, read_ticks
from hydro_core.settings import Settings
from hydro_core.spark.executor.memory import Memory
from hydro_core.spark.session.session import few_rows_session
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.tick import Outputs
from hydro_core.validation.simulation.pipelines import on_pipelines
from hydro_core.validation.simulation.simulate import Case, OnSpark, RankedItem, Simulation, Subject
from tests.laws.conditions import CONDITIONS, NEAREST
from tests.laws.keyed_histories import BY_KEY, OVER_TIME, PER_ITEM, KeyedHistory, keyed_history
from tests.laws.ordered_histories import ordered_history
from tests.spark.pipelines import SETTINGS
from tests.support.selection import mostly_slow

pytestmark = pytest.mark.spark

WINDOWS = Calendar(datetime(2024, 1, 1, tzinfo=UTC), "1d").window
SECONDS = 60
"""How long a case that differs is made smaller."""
CUTS = ((1, 1, 1, 1, 1), (2, 3), (1, 3, 1), (2, 1, 2), (1, 1, 3), (3, 1, 1), (5,))


def joined_history(seed: int) -> KeyedHistory:
    """Joins of histories, windows and results by a condition, or in time."""
    two = NEAREST if seed % 2 else CONDITIONS
    return keyed_history(seed, kinds=(OVER_TIME, BY_KEY, BY_KEY, PER_ITEM, two, two))


FAMILIES: dict[str, Callable[[int], Any]] = {
    "results by key": keyed_history,
    "rows of keys in order": ordered_history,
    "joins by a condition": joined_history,
}
families = pytest.mark.parametrize("family", FAMILIES)


@families
@pytest.mark.parametrize("seed", mostly_slow(range(220), 1))
def test_in_memory(family: str, seed: int, spark: SparkSession) -> None:
    made = FAMILIES[family](seed)
    check(made, seed, lambda compiled: in_memory(optimized(compiled), spark))


@pytest.mark.slow
@families
@pytest.mark.parametrize("seed", range(1000, 1050))
def test_as_written(family: str, seed: int, spark: SparkSession) -> None:
    check(FAMILIES[family](seed), seed, lambda compiled: in_memory(compiled, spark))


@families
@pytest.mark.parametrize("seed", mostly_slow(range(2000, 2030), 1))
def test_on_tables(family: str, seed: int, spark: SparkSession) -> None:
    made = FAMILIES[family](seed)
    check(made, seed, lambda compiled: on_pipelines(compiled, WINDOWS, SETTINGS))


def in_memory(compiled: CompiledProgram, spark: SparkSession) -> OnSpark:
    """What runs cases in memory."""

    def run(case: Case) -> Sequence[Outputs]:
        memory = Memory(plan(compiled.typed), few_rows_session(spark), Settings())
        ticks = iter(case.inputs(WINDOWS))
        return [
            outputs
            for length in case.ranges
            for outputs in memory.run([next(ticks) for _ in range(length)])
        ]

    return run


def check(made: Any, seed: int, engine: Callable[[CompiledProgram], OnSpark]) -> None:
    graph = parse(made.text)
    compiled = compile_graph(graph, given_types(graph, made.schemas, made.ticks))
    case = cut(made, compiled, seed)
    found = Simulation(Subject(compiled, WINDOWS), engine(compiled)).check(case, SECONDS)
    assert found is None, f"{made.schemas}\n{made.text}\n{found}"


def cut(made: Any, compiled: CompiledProgram, seed: int) -> Case:
    """The ticks in ranges, and another order of their rows."""
    rng = Random(seed)
    ticks = tuple(
        {n: tuple(RankedItem(rng.random(), x) for x in items) for n, items in tick.batches.items()}
        for tick in read_ticks(compiled.typed, made.ticks)
    )
    return Case(ticks, CUTS[seed % len(CUTS)])
