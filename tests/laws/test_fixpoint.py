"""Semi-naive evaluation gives what the definition gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from hydro_core.compile import compile_graph
from hydro_core.lang.resolve import parse
from hydro_core.reference.fixpoint import Fixpoint, naive, semi_naive
from hydro_core.reference.interpreter import run_ticks
from hydro_core.running import read_ticks
from hydro_core.settings import Settings
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.values import canonical
from tests.laws.programs import RandomProgram, random_program
from tests.laws.templates import CYCLES


def outputs(program: RandomProgram, fixpoint: Fixpoint) -> list[dict[str, Iterable[Any]]]:
    graph = parse(program.text)
    compiled = compile_graph(graph, {n: parse_ddl(text) for n, text in program.schemas.items()})
    ticks = read_ticks(compiled.typed, program.ticks)
    found = run_ticks(compiled.typed, compiled.strata, ticks, Settings(), fixpoint=fixpoint)
    return [{name: [*map(canonical, items)] for name, items in tick.items()} for tick in found]


def cyclic_programs(count: int) -> list[RandomProgram]:
    programs = map(random_program, range(100_000))
    found = (p for p in programs if any(f"-> s{n}" in p.text for n in range(9)))
    return [next(found) for _ in range(count)]


@pytest.mark.parametrize("program", cyclic_programs(120), ids=lambda p: p.seed)
def test_semi_naive_is_naive(program: RandomProgram) -> None:
    assert outputs(program, semi_naive) == outputs(program, naive), str(program)


def test_random_programs_have_every_cycle() -> None:
    texts = "".join(p.text for p in cyclic_programs(120))
    for cycle in CYCLES:
        assert cycle.text.split("\n")[1].split("}")[-1] in texts
