"""Programs over rows are edited: what a deployment would keep is the same on random ticks, always.

What changes words alone and is not noticed to is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

import pytest

from hydro_core.artifact.deployment import Deployment
from hydro_core.artifact.make import deployment_of
from hydro_core.compile import compile_text
from hydro_core.errors import ProgramError
from hydro_core.optimize.compare import ComparedStream
from hydro_core.optimize.optimizer import optimize
from hydro_core.program_change.difference import (
    NEW,
    NEW_PLAN,
    OLD,
    OLD_PLAN,
    Difference,
    difference,
)
from hydro_core.validation.claims import Claim, ClaimMismatch, try_claims, try_out
from tests.support.changes import CHANGES
from tests.support.deployments import output_states, records
from tests.support.edits import TURNED, WORDS, Edit
from tests.support.row_programs import MADE, Program, Step, random_program
from tests.support.selection import mostly_slow

RUNS = 5
EDITS = {**WORDS, **CHANGES}


@dataclass
class Counted:
    """What was edited, and what was said of it."""

    edits: int = 0
    same: int = 0
    kept: int = 0
    words: int = 0
    missed: list[str] = field(default_factory=list)


def deployed(program: Program) -> Deployment:
    compiled = compile_text(str(program))
    return deployment_of("flow", compiled.typed, optimize(compiled.typed))


def edited(program: Program, edits: Mapping[str, Edit], rng: Random) -> tuple[Program, list[str]]:
    """The program after one to three edits, and what they are called."""
    used = []
    for _ in range(rng.randint(1, 3)):
        name = rng.choice(list(edits))
        found = edits[name](program, rng)
        if found is None or not found.steps:
            continue
        try:
            compile_text(str(found))
        except ProgramError:
            continue  # an edit need not give a program
        program = found
        used.append(name)
    return program, used


def wrong(found: Difference, seed: int) -> Mapping[str, ClaimMismatch]:
    """What is called the same and is not: outputs, kept states, and all other streams."""
    trial = try_out(found, RUNS, seed, seconds=60)
    mismatches = {**trial.outputs, **{f"state {n}": m for n, m in trial.states.items()}}
    for one, other in ((OLD, NEW), (OLD_PLAN, NEW_PLAN)):
        claims = claimed(found, one, other)
        more, _ = try_claims(found.programs[one], found.programs[other], claims, RUNS, seed, 60)
        mismatches |= more
    return mismatches


def claimed(found: Difference, one: int, other: int) -> Mapping[str, Claim]:
    """The streams of two of the programs that are in one class."""
    classes = found.streams.classes
    first: dict[int, ComparedStream] = {}
    for stream, cls in classes.items():
        if stream.program == one:
            first.setdefault(cls, stream)
    return {
        f"{first[cls].endpoint} and {stream.endpoint}": Claim(
            (first[cls].endpoint,), (stream.endpoint,)
        )
        for stream, cls in classes.items()
        if stream.program == other and cls in first
    }


def check(seed: int, counted: Counted) -> None:
    rng = Random(seed)
    program = random_program(rng, rng.randint(3, 9))
    before = deployed(program)
    for edits in (WORDS, EDITS):
        other, used = edited(program, edits, rng)
        if not used:
            continue
        found = difference(before, deployed(other), records(before))
        differ = wrong(found, seed)
        if differ:
            told = "\n".join(map(str, differ.values()))
            raise AssertionError(f"seed {seed}, {used}: {told}\n{program}\n{other}")
        counted.edits += 1
        changes = [*output_states(found).values()]
        counted.same += changes.count("same")
        counted.kept += sum(s.change == "kept" for s in found.states.values())
        if edits is WORDS:
            counted.words += 1
            if {*changes} != {"same"}:
                counted.missed.append(f"{seed}: {', '.join(used)}")


def block(seeds: range, note: Callable[[str, object], None]) -> Counted:
    counted = Counted()
    for seed in seeds:
        check(seed, counted)
    note("edits", counted.edits)
    note("edits of words alone", counted.words)
    note("edits of words alone that are not noticed to be", counted.missed)
    return counted


@pytest.mark.parametrize("op", MADE)
def test_rows_of_text_alone_are_read_by_every_operator(op: str) -> None:
    for seed in range(20):
        args = MADE[op](Random(seed), ("w",))
        if args is not None:
            texts = Step("texts", "select", ("a",), {"columns": ("w",)})
            step = Step("s", op, ("texts",), args)
            compile_text(str(Program((texts, step), {"out": "s"})))


@pytest.mark.parametrize("number", mostly_slow(range(5), 1))
def test_what_is_kept_is_the_same(
    number: int, record_property: Callable[[str, object], None]
) -> None:
    counted = block(range(13 * number, 13 * number + 13), record_property)
    assert counted.edits >= 15
    assert counted.same > 15
    assert counted.kept > 10
    assert len(counted.missed) <= 1


def check_turned(seed: int) -> int:
    """Whatever is named in another order is the same, unless the rules have more to say than they
    are let: streams that feed themselves. How many outputs that is told of.
    """
    rng = Random(seed)
    program = random_program(rng, rng.randint(3, 7))
    other, used = edited(program, TURNED, rng)
    before = deployed(program)
    found = difference(before, deployed(other), records(before))
    differ = wrong(found, seed)
    assert not differ, f"seed {seed}, {used}: {differ}\n{program}\n{other}"
    changes = output_states(found)
    told = {*changes.values()} == {"same"}
    assert told or not found.streams.complete, f"seed {seed}, {used}: {changes}\n{program}\n{other}"
    return len(changes) if used and told else 0


@pytest.mark.parametrize("number", mostly_slow(range(3), 1))
def test_what_is_named_in_another_order_is_the_same(number: int) -> None:
    assert sum(check_turned(seed) for seed in range(12 * number, 12 * number + 12)) > 12


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_what_is_named_in_another_order_is_the_same_a_thousand_times(number: int) -> None:
    for seed in range(1000 + 50 * number, 1050 + 50 * number):
        check_turned(seed)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(40))
def test_what_is_kept_is_the_same_thousands_of_times(
    number: int, record_property: Callable[[str, object], None]
) -> None:
    counted = block(range(1000 + 50 * number, 1050 + 50 * number), record_property)
    assert counted.edits > 55
    assert len(counted.missed) <= counted.words // 5
