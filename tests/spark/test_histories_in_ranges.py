"""What is computed over a history runs over a range in one pass, and is what single ticks give."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.engines import assert_same, cuts, program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMAS = {"a": "k string, v long, w long", "b": "k string, v long, w long"}
PROGRAMS = {
    "aggregates": """
        x = a -> persist() -> aggregate(by="k", n=count(), some=count("v"), total=sum("v"),
            top=max("v"), mean=avg("v"), who=max_by("v", "w"), low=min_by("v", "w"),
            any=any_value("w"), big=count_if(lambda r: (r.v or 0) > 1))
        x -> now
        x -> delta() -> new
        x -> changes() -> changed
    """,
    "of_all": """
        x = a -> persist() -> aggregate(n=count(), total=sum("v"), low=min("w"))
        x -> now
        b -> cross_singleton(single=x) -> pairs
    """,
    "latest": """
        x = a -> persist() -> latest(by="k", order=["v", "w"])
        x -> now
        b -> join(right=x, on="k", suffix="_r") -> joined
        b -> persist() -> join(right=x, on="k", how="left", suffix="_r") -> padded
    """,
    "folds": """
        p = a -> persist()
        p -> fold(0, lambda acc, r: acc + (r.v or 0), commutative=True) -> total
        p -> fold_keyed({"n": 0, "top": -9},
                        lambda acc, r: {"n": acc.n + 1, "top": max(acc.top, r.w or 0)},
                        by="k", commutative=True) -> keyed
        p -> map(lambda r: (r.k, r.v or 0))
          -> reduce_keyed(lambda x, y: x + y, commutative=True) -> sums
        p -> map(lambda r: r.v or 0) -> reduce(lambda x, y: min(x, y), commutative=True) -> least
    """,
    "gaps": """
        h = a -> persist() -> map(lambda r: (r.k, r.v))
        w = b -> window(2) -> map(lambda r: (r.k, r.v))
        h -> unique() -> distinct
        h -> difference(neg=w) -> open
        w -> difference(neg=h) -> closed
        w -> unique() -> recent
        h -> join(right=w, how="outer") -> both
        w -> prev() -> before
        w -> delta() -> fresh
    """,
}


def ticks(seed: int) -> list[dict[str, list[Any]]]:
    rng = random.Random(seed)

    def row() -> dict[str, Any]:
        numbers = [None, -1, 0, 1, 2, 3]
        return {
            "k": rng.choice(["x", "y", None]),
            "v": rng.choice(numbers),
            "w": rng.choice(numbers),
        }

    return [{name: [row() for _ in range(rng.randint(0, 3))] for name in SCHEMAS} for _ in range(5)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_ranges_give_the_same(name: str, spark: SparkSession) -> None:
    check(name, 1, [(2, 3)], spark)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_cut_gives_the_same(name: str, seed: int, spark: SparkSession) -> None:
    check(name, seed, cuts(5), spark)


def check(name: str, seed: int, ways: Iterable[tuple[int, ...]], spark: SparkSession) -> None:
    used = {n: t for n, t in SCHEMAS.items() if f"{n} ->" in PROGRAMS[name]}
    given = [{n: t[n] for n in used} for t in ticks(seed)]
    assert_same(program(PROGRAMS[name], used, given), given, ways, spark)
