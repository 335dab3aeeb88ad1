"""Hostile programs: what is moved over joins, names and computed columns gives the same, and fails
nowhere where the program does not.
"""

from __future__ import annotations

from random import Random

import pytest

from hydro_core.compile import compile_graph, compile_text
from hydro_core.errors import ProgramError
from hydro_core.optimize.optimizer import optimize
from hydro_core.validation.random_ticks import random_ticks, validate
from tests.laws.hostile import hostile

RUNS = 4
BLOCK = 20


def _compared(seed: int) -> int:
    """How many runs were compared: none where the program is wrong."""
    text = hostile(seed)
    try:
        program = compile_text(text)
    except ProgramError:
        return 0
    plan = compile_graph(optimize(program.typed).graph)
    for number in range(RUNS):
        ticks = random_ticks(program, Random(f"{seed}/{number}"))
        found = validate(plan, program, ticks)
        assert found is None, f"seed {seed}\n{text}\n{found}"
    return RUNS


@pytest.mark.parametrize("block", range(6))
def test_a_plan_gives_what_the_program_gives(block: int) -> None:
    compared = sum(_compared(seed) for seed in range(BLOCK * block, BLOCK * (block + 1)))
    assert compared >= RUNS * BLOCK // 2, "most programs are right"


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100, 250))
def test_three_thousand_plans_give_what_the_programs_give(block: int) -> None:
    compared = sum(_compared(seed) for seed in range(BLOCK * block, BLOCK * (block + 1)))
    assert compared >= RUNS * BLOCK // 2
