"""Folds of rows that come and go, and folds in Python of histories: ranges are single ticks."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.engines import assert_same, cuts, program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = {"a": "k string, v long, w long"}
PROGRAMS = {
    "counts and sums of what goes": """
        x = a -> window(2)
        x -> aggregate(by="k", n=count(), some=count("v"), total=sum("v"), mean=avg("v"),
            big=count_if(lambda r: (r.v or 0) > 1)) -> keyed
        x -> aggregate(n=count(), total=sum("v")) -> of_all
        x -> fold_keyed({"n": 0, "t": 0}, lambda acc, r: {"n": acc.n + 1, "t": acc.t + (r.v or 0)},
            by="k", commutative=True) -> folded
        x -> fold(5, lambda acc, r: acc + (r.v or 0), commutative=True) -> one
    """,
    "what is folded again": """
        x = a -> window(2)
        x -> aggregate(by="k", low=min("v"), top=max("v"), kinds=count_distinct("v"),
            all=collect_list("w"), n=count()) -> keyed
        x -> latest(by="k", order=["w", "v"]) -> last
        x -> map(lambda r: (r.k, r.v or 0)) -> reduce_keyed(lambda p, q: p * q, commutative=True)
          -> products
        x -> map(lambda r: (r.k, r.v or 0)) -> reduce_keyed(lambda p, q: p + q, commutative=True)
          -> sums
        x -> map(lambda r: r.v or 0) -> reduce(lambda p, q: p + q, commutative=True) -> sum
        x -> aggregate(low=min("v")) -> least
        a -> persist() -> aggregate(by="k", kinds=count_distinct("v"), all=collect_list("w"))
          -> of_history
    """,
    "folds of histories in one pass": """
        x = a -> persist()
        x -> fold_keyed(1, lambda acc, r: acc * (1 + abs(r.v or 0)) % 1000, by="k",
            commutative=True) -> keyed
        p = x -> map(lambda r: (r.k, (r.v or 0, r.w)))
        p -> reduce_keyed(lambda p, q: (p[0] + q[0], max(p[1] or 0, q[1] or 0)),
            commutative=True) -> reduced
        v = x -> map(lambda r: r.v or 0)
        v -> fold(1, lambda acc, y: acc * (1 + abs(y)) % 1000, commutative=True) -> one
        v -> reduce(lambda y, z: (y + 1) * (z + 1) - 1, commutative=True) -> all
    """,
    "folds of versions": """
        x = a -> persist() -> latest(by="w", order="v")
        x -> aggregate(by="k", n=count(), total=sum("v")) -> counted
        x -> delta() -> changed
        y = x -> aggregate(by="k", n=count(), low=min("v"))
        y -> delta() -> new
        y -> prev() -> before
    """,
}


def ticks(seed: int) -> list[dict[str, list[Any]]]:
    rng = random.Random(seed)
    numbers = [None, -1, 0, 1, 2]

    def row() -> dict[str, Any]:
        return {
            "k": rng.choice(["x", "y", None]),
            "v": rng.choice(numbers),
            "w": rng.choice([1, 2]),
        }

    sizes = [2, 3, 0, 0, 2, 1]
    return [{"a": [row() for _ in range(n)]} for n in sizes]


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_ranges_give_the_same(name: str, spark: SparkSession) -> None:
    check(name, 2, [(2, 4)], spark)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 7))
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_cut_gives_the_same(name: str, seed: int, spark: SparkSession) -> None:
    check(name, seed, cuts(6), spark)


def check(name: str, seed: int, ways: Iterable[tuple[int, ...]], spark: SparkSession) -> None:
    given = ticks(seed)
    compiled = program(PROGRAMS[name], SCHEMA, given)
    assert_same(compiled, given, ways, spark)


def test_rows_of_a_key_that_end_behind_the_range_at_other_ticks_are_of_one_result(
    spark: SparkSession,
) -> None:
    text = """
        a -> window(2) -> aggregate(by="k", all=collect_list("v")) -> moving
        a -> persist() -> union(a) -> aggregate(by="k", all=collect_list("v")) -> mixed
    """
    given = [{"a": [{"k": "x", "v": v}]} for v in (1, 2, 3)]
    assert_same(program(text, SCHEMA, given), given, [(2, 1), (3,)], spark)
