"""Results that go on from a log of their changes: they give what the program means."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from hydro_core.catalog.forms import Form
from hydro_core.catalog.spec import State
from hydro_core.compile import CompiledProgram, optimized
from hydro_core.plan.planner import plan
from tests.spark.coverage import covering_programs
from tests.spark.engines import assert_same, cuts, on_reference, on_spark, program
from tests.support.selection import mostly_slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMAS = {"a": "k string, v long, w long"}
PROGRAMS = {
    "aggregate": """
        x = a -> persist() -> aggregate(by="k", n=count(), some=count("v"), total=sum("v"),
            top=max("v"), low=min("w"), any=any_value("w"), big=count_if(lambda r: (r.v or 0) > 1))
        x -> now
        x -> map(lambda r: (r.total, r.k)) -> delta() -> new
        x -> filter(lambda r: r.n > 1) -> changes() -> changed
        a -> join(right=x, on="k", suffix="_x") -> joined
        a -> join(right=x, on="k", how="left", suffix="_x") -> padded
        x -> join(right=a, on="k", how="semi") -> touched
        a -> filter(lambda r: r.v != 1) -> join(right=x, on="k", how="anti") -> none
    """,
    "aggregate of all": """
        x = a -> persist() -> aggregate(n=count(), total=sum("v"), low=min("w"))
        x -> now
        x -> changes() -> changed
    """,
    "parts": """
        x = a -> persist() -> aggregate(by="k", mean=avg("v"), who=max_by("w", "v"),
            low=min_by("v", "w"))
        x -> now
        x -> changes() -> changed
    """,
    "window": """
        a -> window(5) -> aggregate(by="k", n=count(), total=sum("v")) -> now
        a -> window(5) -> aggregate(n=count(), total=sum("v")) -> all
    """,
    "changes of a window": """
        x = a -> window(5) -> aggregate(by="k", n=count(), total=sum("v"))
        x -> changes() -> changed
        x -> delta() -> new
    """,
    "latest": """
        x = a -> persist() -> latest(by="k", order=["v", "w"])
        x -> now
        x -> map(lambda r: (r.v, r.w)) -> changes() -> changed
        x -> select("k") -> prev() -> before
    """,
    "native folds": """
        p = a -> persist()
        p -> fold(0, lambda acc, r: acc + (r.v or 0), commutative=True) -> all
        x = p -> map(lambda r: (r.k, r.v or 0))
          -> fold_keyed(5, lambda acc, v: acc + v, commutative=True)
        x -> keyed
        x -> changes() -> changed
    """,
    "native reductions": """
        x = a -> persist() -> map(lambda r: (r.k, r.v or 0))
          -> reduce_keyed(lambda x, y: x + y, commutative=True)
        x -> sums
        x -> delta() -> new
        a -> persist() -> map(lambda r: r.v or 0)
          -> reduce(lambda x, y: min(x, y), commutative=True) -> least
    """,
    "opaque folds": """
        p = a -> persist()
        p -> fold(1, lambda acc, r: (acc * (3 + (r.v or 0))) % 1009, commutative=True) -> all
        x = p -> map(lambda r: (r.k, r.v or 0))
          -> fold_keyed(1, lambda acc, v: (acc * (3 + v)) % 1009, commutative=True)
        x -> keyed
        x -> changes() -> changed
    """,
    "opaque reductions": """
        p = a -> persist() -> map(lambda r: (r.k, (r.v or 0) + 2))
        x = p -> reduce_keyed(lambda x, y: (x * y) % 1009, commutative=True)
        x -> keyed
        x -> delta() -> new
        p -> map(lambda k, v: v) -> reduce(lambda x, y: (x * y) % 1009, commutative=True) -> all
    """,
}


COMMANDS = """
    known = a -> sort()
    marks = known -> map(lambda r: ("delete" if r.v == 0 else "persist", r.k)) -> persist_mut()
    marks -> now
    marks -> map(lambda k: 1) -> changes() -> how_many
    x = known -> map(lambda r: ("delete" if r.v == 0 else "persist", r.k, r.w))
      -> persist_mut_keyed()
    x -> keyed
    x -> delta() -> new
"""


SIZES = (2, 3, 0, 1, 4)
LONGER = (2, 1, 0, 0, 0, 1, 0, 2)
"""So many ticks that rows leave the window, and keys with them."""


def batches(seed: int, sizes: Sequence[int] = SIZES) -> list[dict[str, list[Any]]]:
    """Few keys, null among them, that come back; nulls as values, and ticks without rows."""
    rng = random.Random(seed)
    numbers = [None, -1, 0, 1, 2, 3]

    def row() -> dict[str, Any]:
        return {
            "k": rng.choice(["x", "y", "z", None]),
            "v": rng.choice(numbers),
            "w": rng.choice(numbers),
        }

    return [{"a": [row() for _ in range(n)]} for n in sizes]


def running(text: str, ticks: list[dict[str, list[Any]]]) -> CompiledProgram:
    """The plan of the program, which must have a running result."""
    compiled = program(text, SCHEMAS, ticks)
    found = optimized(compiled)
    assert any(node.spec.state is State.RESULT for node in found.graph)
    parts = plan(found.typed).components
    assert "tick by tick" not in [part.how for part in parts]
    return found


def check(name: str, seed: int, ranges: list[tuple[int, ...]], spark: SparkSession) -> None:
    given = batches(seed, LONGER if "window" in name else SIZES)
    wanted = on_reference(program(PROGRAMS[name], SCHEMAS, given), given)
    found = running(PROGRAMS[name], given)
    for lengths in ranges:
        assert repr(on_spark(found, given, lengths, spark)) == repr(wanted), (seed, lengths)


COVERING = covering_programs({n: running(text, batches(1)) for n, text in PROGRAMS.items()})


@pytest.mark.parametrize("name", mostly_slow(PROGRAMS, COVERING))
def test_ranges_that_follow_each_other_give_the_same(name: str, spark: SparkSession) -> None:
    check(name, 1, [(2, 4, 1, 1) if "window" in name else (2, 1, 2)], spark)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_cut_gives_the_same(name: str, seed: int, spark: SparkSession) -> None:
    ticks = len(LONGER if "window" in name else SIZES)
    check(name, seed, list(cuts(ticks)), spark)


@pytest.mark.parametrize("seed", [1, 3])
def test_commands_tell_what_they_change(seed: int, spark: SparkSession) -> None:
    given = batches(seed)
    compiled = program(COMMANDS, SCHEMAS, given)
    assert {slot.form for slot in plan(compiled.typed).slots} == {Form.CHANGES}
    assert_same(compiled, given, ((1,) * len(given), (2, 3)), spark)
