"""Feedback through `prev` gives over a range what it gives in single ticks."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from hydro_core.compile import CompiledProgram
from tests.spark.coverage import covering_programs
from tests.spark.engines import assert_same, cuts, program
from tests.support.selection import mostly_slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMAS = {"a": "(string, long)", "b": "(string, long)", "r": "k string, v long"}
PROGRAMS = {
    "a history by hand": """
        x = union()
        x -> prev() -> x; a -> x; b -> x
        x -> out
        x -> delta() -> new
    """,
    "a set by hand": """
        u = union(); x = u -> unique()
        x -> prev() -> u; a -> u
        x -> out
        x -> delta() -> new
        x -> prev() -> before
        b -> difference(neg=x) -> rest
    """,
    "results by hand": """
        u = union(); x = u -> reduce_keyed(lambda p, q: max(p, q), commutative=True,
                                           associative=True)
        x -> prev() -> u; a -> u
        x -> out
        s = union(); t = s -> aggregate(by="k", v=sum("v"))
        t -> prev() -> s; r -> s
        t -> sums
        l = union(); m = l -> latest(by="k", order="v")
        m -> prev() -> l; r -> l
        m -> last
    """,
    "first seen": """
        x = difference()
        a -> [pos]x
        x -> old() -> [neg]x
        x -> out
        x -> old() -> before
        y = difference()
        h = a -> persist()
        h -> [pos]y
        y -> persist() -> prev() -> unique() -> [neg]y
        y -> of_history
    """,
    "first seen by key": """
        x = r -> join(right=o, on="k", how="anti")
        o = x -> select("k") -> old()
        x -> out
        y = p -> join(right=q, how="anti")
        p = r -> persist() -> map(lambda r: (r.k, r.v))
        q = y -> old() -> unique()
        y -> pairs
    """,
    "first seen of what goes": """
        w = a -> window(2)
        x = difference()
        w -> [pos]x
        x -> old() -> [neg]x
        x -> out
    """,
    "first seen of what is distinct": """
        x = difference()
        a -> unique() -> [pos]x
        x -> old() -> [neg]x
        x -> out
        x -> map(lambda k, v: k) -> keys
        y = difference()
        a -> window(2) -> unique() -> [pos]y
        y -> old() -> [neg]y
        y -> of_window
        z = difference()
        a -> persist() -> unique() -> [pos]z
        z -> old() -> [neg]z
        z -> of_history
    """,
    "across ticks": """
        x = union()
        x -> prev() -> filter(lambda k, v: v > 0) -> map(lambda k, v: (k, v - 1)) -> x
        a -> x
        x -> out
        x -> delta() -> new
    """,
    "a set across ticks": """
        u = union(); x = u -> unique()
        a -> u; x -> prev() -> map(lambda k, v: (k, v // 2)) -> u
        x -> out
    """,
    "a walk within and across ticks": """
        e = b -> persist()
        u = union(); x = u -> unique()
        x -> filter(lambda k, v: v > 1) -> map(lambda k, v: (k, v - 2)) -> u
        x -> prev() -> join(right=e) -> map(lambda k, p: (k, p[1])) -> u
        a -> u
        x -> out
    """,
    "all that was": """
        x = union()
        x -> old() -> filter(lambda k, v: v > 1) -> map(lambda k, v: (k, v - 1)) -> x
        a -> x
        x -> out
    """,
    "tick by tick": """
        f = difference()
        a -> [pos]f
        u = union(); b -> u
        f -> prev() -> map(lambda k, v: (k, v + 1)) -> u
        u -> [neg]f
        f -> out
        f -> persist() -> unique() -> all
    """,
}


def ticks(seed: int, of: str) -> list[dict[str, list[Any]]]:
    rng = random.Random(seed)
    used = [n for n in SCHEMAS if f" {n} ->" in of]

    def item(name: str) -> Any:
        k, v = rng.choice(["x", "y", None]), rng.randint(0, 5)
        return {"k": k, "v": v} if name == "r" else [k, v]

    return [{n: [item(n) for _ in range(rng.randint(0, 3))] for n in used} for _ in range(5)]


def compiled(name: str, seed: int) -> CompiledProgram:
    given = ticks(seed, PROGRAMS[name])
    return program(PROGRAMS[name], {n: SCHEMAS[n] for n in given[0]}, given)


COVERING = covering_programs({name: compiled(name, 3) for name in PROGRAMS})


@pytest.mark.parametrize("name", mostly_slow(PROGRAMS, COVERING))
def test_ranges_give_the_same(name: str, spark: SparkSession) -> None:
    check(name, 3, [(2, 3)], spark)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 5])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_cut_gives_the_same(name: str, seed: int, spark: SparkSession) -> None:
    check(name, seed, cuts(5), spark)


def check(name: str, seed: int, ways: Iterable[tuple[int, ...]], spark: SparkSession) -> None:
    assert_same(compiled(name, seed), ticks(seed, PROGRAMS[name]), ways, spark)
