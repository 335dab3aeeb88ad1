"""Random programs in shards, as `run --shards` runs them: their outputs are those of the whole."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from hydro_core.compile import compile_text
from hydro_core.engines import Options
from hydro_core.errors import HydroError, ProgramError
from hydro_core.optimize.statistics import InputStatistics, Statistics
from hydro_core.reference.interpreter import run_ticks
from hydro_core.running import read_ticks
from hydro_core.shards.program import Sharded, sharded
from hydro_core.shards.run import run_shards
from tests.laws.test_partition import KINDS as JUDGED
from tests.laws.test_partition import Case

HELD = (
    '{0} -> latest(by="{1}", order="{2}")',
    '{0} -> unique() -> latest(by="{1}", order="{2}")',
    '{0} -> filter(lambda r: r.{1} is not None) -> latest(by="{1}", order="{2}")',
)
"""What goes through an exchange, by one of its columns."""


def _of_nothing(rng: Random, seed: int) -> Case:
    """A loop that mostly no item ever reaches, which other shards hand on and read."""
    column, *others = rng.sample(("z", "u", "w"), 3)
    on, how = rng.choice(('["u", "w"]', '"u"', '"w"')), rng.choice(("left", "right", "outer"))
    begins = "difference(neg=b)" if rng.random() < 0.8 else "prev()"
    text = f"""
a = source("w double, u long")
b = a -> with_columns(z=lambda r: (r.w or 0.0) * 2)
n = b -> {begins}
held = union(back, n)
seen = {rng.choice(HELD).format("held", column, *others)}
back = seen -> {rng.choice(("prev()", "old()"))}
a -> join(right=seen, on={on}, how="{how}", suffix="_r") -> o
"""
    program = compile_text(text)
    values = {"w": (None, 0.5, 1.0, 2.0), "u": (None, 1, 2, 3)}
    ticks = [
        {"a": [{n: rng.choice(of) for n, of in values.items()} for _ in range(rng.randint(0, 4))]}
        for _ in range(rng.randint(1, 3))
    ]
    return text, program, list(read_ticks(program.typed, ticks))


KINDS = {**JUDGED, "nothing": _of_nothing}


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


@pytest.mark.parametrize("kind", JUDGED)
def test_shards_are_the_whole(kind: str, record_property: Any) -> None:
    found = [_cut(kind, seed, optimize=seed % 4 == 0) for seed in range(80)]
    cut = [program for program in found if program is not None]
    record_property("programs cut", len(cut))
    assert len(cut) >= 12
    record_property("with a last step", sum(program.last is not None for program in cut))
    record_property("with an exchange", sum(bool(program.exchanged) for program in cut))
    record_property("with a broadcast", sum(bool(program.replicated) for program in cut))
    assert any(program.replicated for program in cut)


FED_BACK = """
a = source("w double, u long")
s1 = a -> with_columns(z=lambda r: (r.w or 0.0) * 2)
s2 = s1 -> difference(neg=s1)
s3 = union(s3p, s2) -> latest(by="z", order="w")
s3p = s3 -> prev()
a -> join(right=s3, on=["u", "w"], how="left", suffix="_r") -> o
"""


@pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "written"])
def test_a_feedback_without_items_keeps_its_columns_behind_an_exchange(optimize: bool) -> None:
    program = compile_text(FED_BACK)
    ticks = [{"a": [{"w": 1.5, "u": 1}, {"w": None, "u": 2}]}, {"a": [{"w": 1.5, "u": 1}]}]
    given = list(read_ticks(program.typed, ticks))
    whole = list(run_ticks(program.typed, program.strata, given))
    cut = sharded(program, 2)
    assert cut.exchanged
    assert repr(list(run_shards(cut, given, Options(optimized=optimize)))) == repr(whole)


def test_shards_of_streams_without_items_are_the_whole() -> None:
    found = [_cut("nothing", seed, optimize=seed % 2 == 0) for seed in range(16)]
    assert sum(cut is not None and bool(cut.exchanged) for cut in found) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
@pytest.mark.parametrize("kind", KINDS)
def test_shards_of_many_programs_are_the_whole(kind: str, part: int) -> None:
    seeds = range(1000 + part * 100, 1100 + part * 100)
    assert sum(_cut(kind, seed, optimize=seed % 4 == 0) is not None for seed in seeds) >= 15
