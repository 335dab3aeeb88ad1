"""All programs with expected outputs, in shards: what can be cut gives what the whole gives."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest

from hydro_core.compile import CompiledProgram, compile_graph
from hydro_core.engines import Options
from hydro_core.errors import HydroError
from hydro_core.lang.resolve import parse
from hydro_core.running import check_ticks, given_types, read_ticks, run_items
from hydro_core.shards.program import ShardedProgram, sharded
from hydro_core.shards.together import run_shards
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.tick import TickInput
from tests.golden.cases import all_cases
from tests.golden.vectors import calendar_of, vectors
from tests.spark.coverage import of_every_operator
from tests.support.selection import mostly_slow

AS_WRITTEN = Options(optimized=False)
Program = tuple[str, dict[str, str], list[Any], Calendar | None]
PROGRAMS: dict[str, Program] = {
    **{case.name: (case.program, case.schemas, case.ticks, None) for case in all_cases()},
    **{
        v["name"]: (v["program"], v.get("schemas", {}), v.get("ticks", [{}]), calendar_of(v))
        for v in vectors("dfir", "fuzz", "ordered")
    },
}


@lru_cache(maxsize=4)
def whole(name: str) -> tuple[CompiledProgram, list[TickInput], str]:
    """A program, its ticks, and what it gives: its outputs, or the code of its error."""
    text, schemas, ticks, calendar = PROGRAMS[name]
    graph = parse(text)
    check_ticks(graph, ticks)
    program = compile_graph(graph, given_types(graph, schemas, ticks))
    items = list(read_ticks(program.typed, ticks, calendar))
    return program, items, shown(lambda: run_items(program, items, AS_WRITTEN))


def shown(run: Any) -> str:
    try:
        return repr(list(run()))
    except HydroError as error:
        return error.code


def cut(name: str, shards: int) -> ShardedProgram | None:
    """The program in shards; None where it is refused, or there is none."""
    try:
        return sharded(whole(name)[0], shards)
    except HydroError:
        return None


QUICK = [
    *(case.name for case in all_cases()),
    *(v["name"] for v in of_every_operator(vectors("dfir", "fuzz", "ordered"))),
]


@pytest.mark.parametrize("name", mostly_slow(PROGRAMS, QUICK))
def test_shards_give_what_the_whole_gives(name: str) -> None:
    for shards in (2, 3):
        program = cut(name, shards)
        if program is None:
            continue
        _, ticks, wanted = whole(name)
        for options in (AS_WRITTEN, Options()):
            assert shown(lambda: run_shards(program, ticks, options)) == wanted  # noqa: B023


def test_most_programs_can_be_cut() -> None:
    """So many of the cases alone, of which there are no fewer anywhere."""
    names = [case.name for case in all_cases() if case.error is None]
    found = [program for name in names if (program := cut(name, 2)) is not None]
    assert len(found) > 0.65 * len(names)
    assert sum(bool(program.merges) for program in found) > len(names) // 40
