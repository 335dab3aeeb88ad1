"""Random programs with functions that fail on some items: which tick fails, and what stays.

A plan never fails where the program does not, and may run where the program would fail. Ticks
before the one that fails are as they are in the program, and stay; a range fails at the tick at
which single ticks fail, and tells it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from hydro_core.compile import CompiledProgram, best_plan, compile_graph, compile_text, planned
from hydro_core.errors import DataError
from hydro_core.optimize.optimizer import optimize
from hydro_core.running import read_ticks
from hydro_core.settings import Settings
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.ticks.tick import Outputs, TickInput
from hydro_core.types.item import Order
from hydro_core.validation.random_ticks import outputs_before_failure, same_items
from tests.support.flows import INPUTS, typed_program
from tests.support.selection import mostly_slow
from tests.support.stored import FEW, MANY, batch, outputs_at, storable

TICKS = 6
FAILING = {
    "lambda x: (x[1], x[0])": "lambda x: (x[1], 6 // x[0])",
    "lambda x: (x[0], x[1] % 2)": "lambda x: (x[0], 6 % x[1])",
    "lambda x: (x[0], 1)": "lambda x: (x[0], 6 // x[1])",
    "lambda x: x[0] != 1": "lambda x: 6 // x[0] != 1",
    "lambda x: x[1] > 0": "lambda x: x[0] != 1 and 6 // x[1] > 2",
    "lambda x: x[0] == x[1]": "lambda x: 6 // x[0] == x[1] or 6 // x[1] == x[0]",
    "lambda s, v: s + v": "lambda s, v: s + 6 // v",
}
"""Functions that always have a value, and some that have none where something is 0."""


def _made(seed: int) -> tuple[str, CompiledProgram, list[TickInput]]:
    """A program, of whose functions every other one may fail, and ticks with few zeros."""
    rng = Random(seed)
    text, _ = typed_program(rng, rng.randint(4, 8))
    for always, failing in FAILING.items():
        parts = text.split(always)
        ends = [failing if rng.random() < 0.8 else always for _ in parts[1:]]
        text = "".join([parts[0], *(end + part for end, part in zip(ends, parts[1:], strict=True))])
    given = [
        {name: [_pair(rng, tick) for _ in range(rng.randint(1, 4))] for name in INPUTS}
        for tick in range(TICKS)
    ]
    compiled = compile_text(text)
    used = compiled.typed.inputs
    ticks = [{name: tick[name] for name in used} for tick in given]
    return text, compiled, list(read_ticks(compiled.typed, ticks))


def _pair(rng: Random, tick: int) -> list[int]:
    """Numbers, some of which are zero from the third tick on."""
    return [0 if tick > 1 and rng.random() < 0.15 else rng.randint(1, 3) for _ in range(2)]


def _compare(
    program: CompiledProgram, expected: Sequence[Outputs], found: Sequence[Outputs]
) -> None:
    """The ticks of the program are there, as they are in it."""
    assert len(found) >= len(expected), f"tick {len(found)} fails by the plan alone"
    for tick, outputs in enumerate(expected):
        for name, stream in program.typed.outputs.items():
            ordered = stream.order is Order.TOTAL
            assert same_items(outputs[name], found[tick][name], ordered), (tick, name)


def _before_failure(compiled: CompiledProgram, ticks: Sequence[TickInput]) -> list[Outputs]:
    found, _ = outputs_before_failure(compiled, ticks)
    return found


@pytest.mark.parametrize("seed", mostly_slow(range(60), 15))
def test_a_plan_fails_only_where_its_program_does(seed: int) -> None:
    text, program, ticks = _made(seed)
    types = {n: t.item for n, t in program.typed.inputs.items()}
    plan = compile_graph(optimize(program.typed).graph, types)
    try:
        _compare(program, _before_failure(program, ticks), _before_failure(plan, ticks))
    except AssertionError as error:
        error.add_note(text)
        raise


def test_many_of_these_programs_fail_and_many_do_not() -> None:
    done = [len(_before_failure(program, ticks)) for _, program, ticks in map(_made, range(60))]
    assert done.count(TICKS) >= 20
    assert sum(0 < ticks < TICKS for ticks in done) >= 15


def _committed(pipeline: Pipeline, ticks: Sequence[TickInput], length: int) -> int:
    """How many ticks are committed, in ranges of a length, until one fails, which is told."""
    items = {name: stream.item for name, stream in pipeline.plan.typed.inputs.items()}
    for first in range(0, len(ticks), length):
        last = min(first + length, len(ticks)) - 1
        try:
            pipeline.run_range(
                first, last, {n: batch(n, of, ticks, first, last) for n, of in items.items()}
            )
        except DataError as error:
            done = (pipeline.last_committed if pipeline.last_committed is not None else -1) + 1
            message = error.diagnostics[0].message
            assert re.search(rf"\btick {done}\b", message), message
            return done
    return len(ticks)


def _check(seed: int, settings: Settings, directory: Path, spark: SparkSession) -> None:
    text, program, ticks = _made(seed)
    program = storable(program)
    try:
        plan = planned(program, best_plan(program))
        expected = _before_failure(program, ticks)
        as_range = Pipeline(directory / "range", plan, settings, spark)
        done = _committed(as_range, ticks, TICKS)
        _compare(program, expected, outputs_at(as_range, range(done)))
        by_tick = Pipeline(directory / "ticks", plan, settings, spark)
        assert _committed(by_tick, ticks, 1) == done, "ranges and ticks fail at different ones"
        _compare(program, outputs_at(as_range, range(done)), outputs_at(by_tick, range(done)))
    except Exception as error:
        error.add_note(text)
        raise


@pytest.mark.spark
@pytest.mark.parametrize(("seed", "settings"), [(16, FEW), (19, MANY)], ids=["few", "many"])
def test_pipelines_tell_the_tick_that_fails(
    seed: int, settings: Settings, tmp_path: Path, spark: SparkSession
) -> None:
    _check(seed, settings, tmp_path, spark)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("settings", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("seed", range(100, 140))
def test_more_pipelines_tell_the_tick_that_fails(
    seed: int, settings: Settings, tmp_path: Path, spark: SparkSession
) -> None:
    _check(seed, settings, tmp_path, spark)
