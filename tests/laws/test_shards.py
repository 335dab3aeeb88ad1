"""Random programs in shards, as `run --shards` runs them: their outputs are those of the whole."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from hydro_core.engines import Options
from hydro_core.errors import HydroError, ProgramError
from hydro_core.optimize.statistics import InputStatistics, Statistics
from hydro_core.reference.interpreter import run_ticks
from hydro_core.shards.program import Sharded, sharded
from hydro_core.shards.run import run_shards
from tests.laws.test_partition import KINDS


def _cut(kind: str, seed: int, *, optimize: bool) -> Sharded | None:
    """Judges one program; gives it, or None where it cannot be cut or fails."""
    rng = Random(f"shards {kind} {seed}")
    text, program, ticks = KINDS[kind](rng, seed)
    try:
        whole = list(run_ticks(program.typed, program.strata, ticks))
        rows = {n: InputStatistics(rng.choice((1, 1e3, 1e6))) for n in program.graph.sources}
        cut = sharded(program, rng.choice((2, 3, 5)), stats=Statistics(inputs=rows))
    except ProgramError:
        return None
    except HydroError:
        return None
    found = list(run_shards(cut, ticks, Options(optimized=optimize)))
    assert repr(found) == repr(whole), f"seed {seed}: {cut.described}\n{text}"
    return cut


@pytest.mark.parametrize("kind", KINDS)
def test_shards_are_the_whole(kind: str, record_property: Any) -> None:
    found = [_cut(kind, seed, optimize=seed % 4 == 0) for seed in range(80)]
    cut = [program for program in found if program is not None]
    record_property("programs cut", len(cut))
    assert len(cut) >= 12
    record_property("with a last step", sum(program.last is not None for program in cut))
    record_property("with an exchange", sum(bool(program.exchanged) for program in cut))
    record_property("with a broadcast", sum(bool(program.replicated) for program in cut))
    assert any(program.replicated for program in cut)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("kind", KINDS)
def test_shards_of_many_programs_are_the_whole(kind: str, part: int) -> None:
    seeds = range(1000 + part * 100, 1100 + part * 100)
    assert sum(_cut(kind, seed, optimize=seed % 4 == 0) is not None for seed in seeds) >= 15
