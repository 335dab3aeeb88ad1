"""Two operators over one input: the optimized plan gives what the program gives."""

from __future__ import annotations

import pytest

from hydro_core.compile import optimized
from hydro_core.validation.random_ticks import validate
from tests.laws.operator_pairs import Part, all_pairs, made, numbered, program_of, ticks_of

QUICK, OTHERS = numbered(all_pairs(), every=200)


def judge(parts: tuple[Part, ...]) -> None:
    one = made(parts)
    program = program_of(one)
    found = validate(optimized(program), program, ticks_of(one, program))
    assert found is None, f"{one.text}\n{found}"


@pytest.mark.parametrize("parts", QUICK, ids=str)
def test_a_plan_gives_what_the_program_gives(parts: tuple[Part, ...]) -> None:
    judge(parts)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(16))
def test_all_of_them(part: int) -> None:
    for parts in OTHERS[part::16]:
        judge(parts)
