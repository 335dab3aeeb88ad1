"""Random programs in shards, as `run --shards` runs them: their outputs are those of the whole."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from hydro_core.analysis.partition.partitioning import partition
from hydro_core.compile import CompiledProgram
from hydro_core.engines import Options
from hydro_core.errors import HydroError, ProgramError
from hydro_core.reference.interpreter import run_ticks
from hydro_core.shards.program import ShardedProgram, sharded
from hydro_core.shards.together import run_shards
from tests.laws.test_partition import KINDS as JUDGED


def _cut(kind: str, seed: int, *, optimize: bool) -> ShardedProgram | None:
    """Judges one program; gives it, or None where it cannot be cut or fails."""
    rng = Random(f"shards {kind} {seed}")
    text, program, ticks = JUDGED[kind](rng, seed)
    try:
        whole = list(run_ticks(program.typed, program.strata, ticks))
        cut = _in_shards(program, rng)
    except HydroError:
        return None
    found = list(run_shards(cut, ticks, Options(optimized=optimize)))
    assert repr(found) == repr(whole), f"seed {seed}: {cut.described}\n{text}"
    return cut


def _in_shards(program: CompiledProgram, rng: Random) -> ShardedProgram:
    """The program in shards; if it must be, with inputs that every shard gets whole."""
    count = rng.choice((2, 3, 5))
    try:
        return sharded(program, count)
    except ProgramError:
        partial = partition(program.typed).partial
        if not partial:
            raise
        return sharded(program, count, replicate=rng.choice(partial).replicate)


@pytest.mark.parametrize("kind", JUDGED)
def test_shards_are_the_whole(kind: str, record_property: Any) -> None:
    found = [_cut(kind, seed, optimize=seed % 4 == 0) for seed in range(80)]
    cut = [program for program in found if program is not None]
    record_property("programs cut", len(cut))
    assert len(cut) >= 12
    assert any(program.replicated for program in cut)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("kind", JUDGED)
def test_shards_of_many_programs_are_the_whole(kind: str, part: int) -> None:
    seeds = range(1000 + part * 100, 1100 + part * 100)
    assert sum(_cut(kind, seed, optimize=seed % 4 == 0) is not None for seed in seeds) >= 15
