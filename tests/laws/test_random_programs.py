"""Random programs run, are deterministic, and cover the language."""

from __future__ import annotations

import random

import pytest

from hydro_core.catalog.registry import CATALOG
from hydro_core.engines import Options
from hydro_core.lang.resolve import parse
from hydro_core.running import run_json
from tests.laws.programs import random_program
from tests.support.selection import mostly_slow

SEEDS = range(300)


@pytest.mark.parametrize("seed", mostly_slow(SEEDS, 60))
def test_a_random_program_runs(seed: int) -> None:
    program = random_program(seed)
    found = run_json(parse(program.text), program.schemas, program.ticks, Options(optimized=False))
    assert len(found) == len(program.ticks)


def test_programs_are_determined_by_their_seed() -> None:
    random.seed(1)
    first = random_program(42)
    random.seed(2)
    assert random_program(42) == first


def test_random_programs_cover_the_catalogue() -> None:
    covered = {op for seed in SEEDS for op in random_program(seed).operators}
    public = {name for name, spec in CATALOG.items() if not getattr(spec, "internal", False)}
    assert public <= covered


def test_only_some_operators() -> None:
    only = {"map", "filter", "union", "persist", "delta"}
    for seed in range(40):
        assert random_program(seed, only=only).operators <= only | {"sink"}
