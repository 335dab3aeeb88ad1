"""Two operators over one input as pipelines: what is stored of both is what the program says.

A few of them, and where there is time as many as it allows: `--told-for` says how many seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from pyspark.sql import SparkSession

from hydro_core.engines import Options
from hydro_core.running import run_items
from hydro_core.ticks.tick import Outputs
from tests.laws.operator_pairs import Part, all_pairs, made, program_of, ticks_of
from tests.support.selection import mostly_slow
from tests.support.stored import FEW, MANY, Mode, storable, stored_outputs
from tests.support.stored import Part as Range

pytestmark = pytest.mark.spark

LOW = FEW.with_(held_rows=0, compact_every=2)
"""Nothing is held by this process that executors can do."""
ALL_LOW = MANY.with_(held_rows=0, compact_every=2)
FAILING = 5
"""After so many that are wrong the long run ends."""


def handed_over(_: int) -> Iterator[Range]:
    """Ticks whose rows are handed to Spark, by a plan that is kept; two that read tables."""
    parts = ((1, FEW), (1, FEW), (2, ALL_LOW), (1, FEW), (2, FEW))
    return (Range(ticks, settings) for ticks, settings in parts)


def from_tables(_: int) -> Iterator[Range]:
    """A range of few rows, a tick that reads tables, ticks of few rows, and a range of many."""
    parts = ((2, LOW), (1, ALL_LOW), (1, LOW), (1, LOW), (2, ALL_LOW))
    return (Range(ticks, settings) for ticks, settings in parts)


MODES: Sequence[Mode] = (handed_over, from_tables)
TOLD: Sequence[tuple[Part, ...]] = (
    (Part("day", "rows", "counted"), Part("days", "rows", "changes")),
    (Part("days", "most", "delta"), Part("days", "top two", "changes")),
    (Part("two", "lag", "as they are"), Part("before", "padded both", "tick before")),
)
"""The first shares a table that two windows leave at different times."""


@pytest.mark.parametrize("number", mostly_slow(range(len(TOLD)), 1))
def test_some(number: int, spark: SparkSession, tmp_path: Path) -> None:
    assert problem(TOLD[number], MODES[number % 2], tmp_path, spark) is None


@pytest.mark.slow
def test_many(
    spark: SparkSession,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    end = time.monotonic() + float(request.config.getoption("--told-for"))
    pairs, failed, judged = list(all_pairs()), list[str](), 0
    Random(0).shuffle(pairs)
    for number, parts in enumerate(pairs):
        if time.monotonic() > end or len(failed) == FAILING:
            break
        with TemporaryDirectory() as directory:
            found = problem(parts, MODES[number % 2], Path(directory), spark)
        failed += [found] if found else []
        judged += 1
    record_property("pairs", judged)
    assert not failed, "\n\n".join(failed)


def problem(
    parts: tuple[Part, ...], mode: Mode, directory: Path, spark: SparkSession
) -> str | None:
    """What is wrong with a program as a pipeline."""
    one = made(parts)
    program = storable(program_of(one))
    ticks = ticks_of(one, program)
    wanted = _bags(run_items(program, ticks, Options(optimized=False)))
    found = _bags(stored_outputs(directory / "p", program, ticks, mode, spark, reopen=False))
    for tick, (has, should) in enumerate(zip(found, wanted, strict=True)):
        for name, items in should.items():
            if has[name] != items:
                return f"{parts}\n{one.text}`{name}` at {tick} has {has[name]}, not {items}"
    return None


def _bags(ticks: Iterator[Outputs] | Sequence[Outputs]) -> list[dict[str, list[str]]]:
    return [{name: sorted(map(repr, items)) for name, items in tick.items()} for tick in ticks]
