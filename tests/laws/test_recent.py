"""Rows that leave by their time: the optimized plan gives what the program gives."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hydro_core.compile import compile_graph, optimized
from hydro_core.lang.resolve import parse
from hydro_core.running import read_ticks
from hydro_core.ticks.calendar import Calendar
from hydro_core.types.ddl import parse_ddl
from hydro_core.validation.random_ticks import validate
from tests.laws.recent_programs import recent_program
from tests.support.selection import mostly_slow

DAYS = Calendar(datetime(2023, 12, 28, tzinfo=UTC), "1d")


@pytest.mark.parametrize("seed", mostly_slow(range(400), 6))
def test_a_plan_gives_what_the_program_gives(seed: int) -> None:
    made = recent_program(seed)
    types = {name: parse_ddl(text) for name, text in made.schemas.items()}
    program = compile_graph(parse(made.text), types)
    found = validate(optimized(program), program, list(read_ticks(program.typed, made.ticks, DAYS)))
    assert found is None, f"{made.text}\n{found}"
