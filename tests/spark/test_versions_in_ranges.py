"""Events look up versions: what a range gives is what single ticks give."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from hydro_core.plan.planner import plan
from hydro_core.spark.executor.executor import Job, run_range
from hydro_core.spark.frames.leaf import frame_of
from tests.spark.engines import assert_same, cuts, program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMAS = {"a": "k string, v long", "b": "k string, w long", "c": "(string, long)"}
PROGRAMS = {
    "rows": """
        x = a -> persist() -> latest(by="k", order="v") -> filter(lambda r: r.v > 0)
        b -> join(right=x, on="k") -> inner
        b -> join(right=x, on="k", how="left") -> padded
        x -> join(right=b, on="k") -> turned
        x -> join(right=b, on="k", how="right") -> turned_padded
        x -> join(right=b, on="k", how="left") -> others_padded
        n = a -> window(2) -> aggregate(by="k", n=count())
        b -> join(right=n, on="k", how="left") -> counted
    """,
    "tuples": """
        m = a -> sort() -> map(lambda r: ("persist" if r.v else "delete", r.k, r.v))
          -> persist_mut_keyed()
        c -> join(right=m) -> out
        m -> join(right=c) -> turned
        c -> join(right=m, how="outer") -> all
    """,
    "who is there": """
        w = a -> window(2) -> map(lambda r: r.k)
        h = a -> persist() -> map(lambda r: r.k)
        c -> anti_join(neg=w) -> missing
        c -> sort() -> anti_join(neg=w) -> missing_in_order
        c -> anti_join(neg=h) -> never
        s = a -> window(3) -> select("k")
        b -> join(right=s, on="k", how="semi") -> met
        g = a -> persist() -> select("k")
        b -> join(right=g, on="k", how="semi") -> known
        b -> join(right=g, on="k", how="anti") -> unknown
    """,
    "the single one": """
        n = a -> persist() -> aggregate(n=count(), total=sum("v"))
        b -> cross_singleton(single=n) -> out
        l = a -> persist() -> map(lambda r: r.v) -> reduce(lambda x, y: max(x, y), commutative=True)
        b -> cross_singleton(single=l) -> least
        b -> persist() -> cross_singleton(single=l) -> history
    """,
}


@pytest.fixture(autouse=True)
def _two_ticks_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hydro_core.spark.lower.relations.MANY_TICKS", 2)


def ticks(seed: int, of: str) -> list[dict[str, list[Any]]]:
    rng = random.Random(seed)
    used = [n for n in SCHEMAS if f" {n} ->" in of or f"={n}," in of or f"={n})" in of]

    def item(name: str) -> Any:
        k, v = rng.choice(["x", "y", None]), rng.randint(0, 3)
        return [k, v] if name == "c" else {"k": k, "v" if name == "a" else "w": v}

    return [{n: [item(n) for _ in range(rng.randint(0, 3))] for n in used} for _ in range(6)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_ranges_give_the_same(name: str, spark: SparkSession) -> None:
    check(name, 2, [(2, 4)], spark)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 7))
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_cut_gives_the_same(name: str, seed: int, spark: SparkSession) -> None:
    check(name, seed, cuts(6), spark)


def check(name: str, seed: int, ways: Iterable[tuple[int, ...]], spark: SparkSession) -> None:
    given = ticks(seed, PROGRAMS[name])
    compiled = program(PROGRAMS[name], {n: SCHEMAS[n] for n in given[0]}, given)
    assert_same(compiled, given, ways, spark)


def test_events_are_not_paired_with_every_version(spark: SparkSession) -> None:
    text = 'x = a -> persist() -> latest(by="k", order="v"); b -> join(right=x, on="k") -> out'
    compiled = program(text, {n: SCHEMAS[n] for n in "ab"}, [])
    rows = {"a": {"k": "x", "v": 1}, "b": {"k": "x", "w": 1}}
    types = {name: stream.item for name, stream in compiled.typed.inputs.items()}
    sources = {name: frame_of(spark, [(0, row)], types[name]) for name, row in rows.items()}
    found = run_range(Job(plan(compiled.typed), 0, 9, spark, sources))
    explained = found.outputs["out"].frame._jdf.queryExecution().optimizedPlan().toString()
    assert "Window" in explained
    assert "Join" not in explained


def test_in_a_short_range_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    from hydro_core.spark.lower import relations as as_of

    monkeypatch.setattr(as_of, "MANY_TICKS", 365)
    assert not as_of.pays(0, 363)
    assert as_of.pays(10, 374)


def test_who_is_there_is_the_same_without_looking_up(
    monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    monkeypatch.setattr("hydro_core.spark.lower.relations.MANY_TICKS", 365)
    check("who is there", 2, [(2, 4)], spark)
