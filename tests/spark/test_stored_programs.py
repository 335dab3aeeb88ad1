"""Random programs as stored pipelines over ranges of different sizes give what the reference gives.

Plans are optimized or as written. A few programs, and where there is time as many as it allows:
`--told-for` says how many seconds, `--first-seed` which ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from pyspark.sql import SparkSession

from hydro_core.compile import compile_graph
from hydro_core.errors import HydroError
from hydro_core.lang.resolve import parse
from hydro_core.reference.interpreter import run_ticks
from hydro_core.running import given_types, read_ticks
from hydro_core.ticks.tick import Outputs
from tests.laws.stored_programs import StoredProgram, stored_program
from tests.support.stored import FEW, MANY, Part, storable, stored_outputs

pytestmark = pytest.mark.spark

SETTINGS = (FEW, FEW.with_(held_rows=0, compact_every=2), MANY)
FAILING = 5
"""After so many that are wrong the long run ends."""


@pytest.mark.parametrize("seed", [4, 7, 26])
def test_some(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    assert problem(seed, tmp_path, spark) is None


@pytest.mark.slow
def test_many(
    spark: SparkSession,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
) -> None:
    end = time.monotonic() + float(request.config.getoption("--told-for"))
    seed, failed = int(request.config.getoption("--first-seed")), list[str]()
    while time.monotonic() < end and len(failed) < FAILING:
        with TemporaryDirectory() as directory:
            found = problem(seed, Path(directory), spark)
        failed += [found] if found else []
        seed += 1
    record_property("seed", seed)
    assert not failed, "\n\n".join(failed)


def problem(seed: int, directory: Path, spark: SparkSession) -> str | None:
    """What is wrong with the program of a number as a pipeline."""
    of, rng = stored_program(seed), Random(seed)
    graph = parse(of.text)
    program = storable(compile_graph(graph, given_types(graph, of.schemas, of.ticks)))
    ticks = list(read_ticks(program.typed, of.ticks))
    optimize = rng.random() < 0.6

    def mode(count: int) -> Iterator[Part]:
        settings = rng.choice(SETTINGS)
        while count:
            length = min(count, rng.choice((1, 1, 2, 3)))
            settings = rng.choice(SETTINGS) if rng.random() < 0.3 else settings
            yield Part(length, settings)
            count -= length

    def stored() -> Sequence[Outputs]:
        return stored_outputs(
            directory / "p", program, ticks, mode, spark, optimize=optimize, reopen=False
        )

    wanted = _outcome(lambda: list(run_ticks(program.typed, program.strata, ticks, FEW)))
    found = _outcome(stored)
    if found == wanted:
        return None
    return f"# seed {seed}, optimized: {optimize}\n{_shown(of)}\ngave {found}\nnot  {wanted}"


def _outcome(run: Callable[[], Sequence[Outputs]]) -> str:
    """The outputs as bags, or the code of the error; as text, in which NaN equals NaN."""
    try:
        ticks = run()
    except HydroError as error:
        return error.code
    return repr([{name: sorted(map(repr, of)) for name, of in tick.items()} for tick in ticks])


def _shown(of: StoredProgram) -> str:
    return "\n".join((f"# schemas {of.schemas}", of.text, *map(str, of.ticks)))
