"""Every choice that the partitioning analysis accepts is right: judged by running shards.

Random programs run whole and in shards on the reference interpreter, for random routing functions
and numbers of shards; literals and replicated inputs are on all shards. Of the choices that are
refused those are counted that no data was found to refute: what the analysis may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations, product
from random import Random
from typing import Any

import pytest

from hydro_core.analysis.partition.locations import RoutingTerms, locate
from hydro_core.analysis.partition.search import ChoiceSearch, follows
from hydro_core.analysis.partition.steps import Steps, steps_of
from hydro_core.analysis.partition.terms import FieldAt, KeyTerm
from hydro_core.catalog.registry import CATALOG
from hydro_core.catalog.spec import Never
from hydro_core.compile import CompiledProgram, compile_text
from hydro_core.errors import HydroError
from hydro_core.running import read_ticks
from hydro_core.ticks.tick import TickInput
from hydro_core.types.ddl import parse_ddl
from tests.laws import keyed_programs
from tests.laws.programs import random_program
from tests.support import flows
from tests.support.shards import Routing, bags, is_right

MOST_JUDGED = 6
"""So many choices of a program are judged."""
CUT = {name for name, op in CATALOG.items() if not isinstance(op.partition, Never)} | {"cross"}

Case = tuple[str, CompiledProgram, list[TickInput]]


def _of_keys(rng: Random, seed: int) -> Case:
    text, program = keyed_programs.keyed_program(rng, rng.randint(1, 4))
    return text, program, _items(program, keyed_programs.ticks(rng, text, rng.randint(1, 3)))


def _of_states(rng: Random, seed: int) -> Case:
    text, program = flows.typed_program(rng, rng.randint(1, 4))
    ticks = flows.ticks(rng, rng.randint(1, 3), 5)
    return (
        text,
        program,
        _items(program, [{n: [*map(list, b)] for n, b in t.items()} for t in ticks]),
    )


def _of_all_operators(rng: Random, seed: int) -> Case:
    made = random_program(seed, only=CUT if seed % 4 else None, steps=rng.randint(2, 8))
    program = compile_text(made.text, {n: parse_ddl(ddl) for n, ddl in made.schemas.items()})
    return str(made), program, _items(program, made.ticks)


def _items(program: CompiledProgram, ticks: list[dict[str, list[Any]]]) -> list[TickInput]:
    known = [{n: b for n, b in tick.items() if n in program.typed.inputs} for tick in ticks]
    return list(read_ticks(program.typed, known))


KINDS: Mapping[str, Callable[[Random, int], Case]] = {
    "keys": _of_keys,
    "states": _of_states,
    "operators": _of_all_operators,
}


def _accepted(steps: Steps) -> Iterator[tuple[tuple[str, ...], RoutingTerms]]:
    search = ChoiceSearch(steps)
    choices = search.choices()
    if choices:
        yield from (((), choice) for choice in choices)
    else:
        assert search.blockers()
        yield from ((some, choice) for some, found in search.partial() for choice in found)


def _judge(kind: str, seed: int) -> int:
    rng = Random(f"{kind} {seed}")
    text, program, ticks = KINDS[kind](rng, seed)
    steps = steps_of(program.typed)
    try:
        whole = bags(program, ticks)
    except HydroError:
        return 0
    judged = 0
    for replicated, choice in list(_accepted(steps))[:MOST_JUDGED]:
        routing = Routing(rng.choice((2, 3)), rng.randrange(10_000))
        assert is_right(steps, ticks, whole, choice, routing, replicated), (
            f"seed {seed}: {choice}, replicated {replicated}, {routing}\n{text}"
        )
        judged += 1
    return judged


@pytest.mark.parametrize("kind", KINDS)
def test_accepted_choices_are_right(kind: str, record_property: Any) -> None:
    judged = sum(_judge(kind, seed) for seed in range(40))
    record_property("choices judged", judged)
    assert judged >= 30


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
@pytest.mark.parametrize("kind", KINDS)
def test_accepted_choices_of_many_programs_are_right(kind: str, part: int) -> None:
    assert sum(_judge(kind, 1000 + part * 100 + i) for i in range(100)) >= 80


def _fields(steps: Steps) -> Iterator[RoutingTerms]:
    """Every choice of single fields, of some inputs or none."""
    sources = list(steps.sources.values())
    ways: list[list[KeyTerm | None]] = [[None, *map(FieldAt, source.leaves)] for source in sources]
    for terms in product(*ways):
        named = zip(sources, terms, strict=True)
        yield {source.name: term for source, term in named if term is not None}


def _refuted(
    rng: Random, text: str, steps: Steps, program: CompiledProgram, choice: RoutingTerms
) -> bool:
    for _ in range(15):
        ticks = _items(program, keyed_programs.ticks(rng, text, 3, 8))
        routing = Routing(rng.choice((2, 3, 5)), rng.randrange(10_000))
        try:
            whole = bags(program, ticks)
        except HydroError:
            continue
        if not is_right(steps, ticks, whole, choice, routing):
            return True
    return False


def _counted(seeds: range) -> tuple[int, int, list[str]]:
    accepted = refused = 0
    missed = []
    for seed in seeds:
        rng = Random(seed)
        text, program = keyed_programs.keyed_program(rng, rng.randint(1, 3))
        steps = steps_of(program.typed)
        found = ChoiceSearch(steps).choices()
        for choice in _fields(steps):
            if not locate(steps, choice).failed:
                accepted += 1
                assert any(follows(choice, least) for least in found), f"{choice}\n{text}"
            elif _refuted(rng, text, steps, program, choice):
                refused += 1
            else:
                missed.append(f"seed {seed}: {choice}\n{text}")
    return accepted, refused, missed


def _record(counts: tuple[int, int, list[str]], record_property: Any) -> float:
    accepted, refused, missed = counts
    record_property("single-field choices accepted", accepted)
    record_property("refused, and refuted by data", refused)
    record_property("refused, and not refuted", len(missed))
    return len(missed) / (accepted + len(missed))


def test_few_right_choices_are_missed(record_property: Any) -> None:
    assert _record(_counted(range(20)), record_property) < 0.15


@pytest.mark.slow
def test_few_right_choices_of_many_programs_are_missed(record_property: Any) -> None:
    assert _record(_counted(range(1000, 1300)), record_property) < 0.15


def test_the_smallest_sets_of_whole_inputs_are_all_told(record_property: Any) -> None:
    blocked = 0
    for kind, seed in product(KINDS, range(60)):
        _, program, _ = KINDS[kind](Random(f"{kind} {seed}"), seed)
        steps = steps_of(program.typed)
        search = ChoiceSearch(steps)
        if not search.choices():
            blocked += 1
            assert {frozenset(some) for some, _ in search.partial()} == set(_by_trying(steps))
    record_property("programs that cannot be cut", blocked)
    assert blocked > 20


def _by_trying(steps: Steps) -> list[frozenset[str]]:
    search, found = ChoiceSearch(steps), list[frozenset[str]]()
    names = [source.name for source in steps.sources.values()]
    for count in range(1, len(names)):
        for some in map(frozenset, combinations(names, count)):
            if not any(less <= some for less in found) and search.exists(some):
                found.append(some)
    return found
