"""Plans on Spark give what programs give on the reference, tick by tick and as a range."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from hydro_core.compile import compile_text, optimized
from hydro_core.errors import HydroError
from hydro_core.reference.interpreter import run_ticks
from hydro_core.settings import Settings
from hydro_core.types.values import canonical
from hydro_core.validation import random_ticks
from tests.support.flows import program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

CASES = {
    "cross": (
        'a = source("long"); b = source("long")\n'
        "a -> persist() -> [0]x; b -> persist() -> [1]x; x = cross() -> delta() -> out"
    ),
    "changes of a table": (
        'rows = source("id long, v long, at long")\n'
        'rows -> persist() -> latest(by="id", order="at")\n'
        "  -> filter(lambda r: r.v != 1) -> delta() -> out"
    ),
    "totals": (
        'rows = source("id long, v long")\n'
        'rows -> persist() -> aggregate(by="id", n=count(), total=sum("v")) -> out\n'
        "rows -> persist() -> fold(0, lambda s, r: s + (r.v or 0), commutative=True) -> all"
    ),
    "means and extremes": (
        'rows = source("id long, v long, w decimal(6, 2)"); known = rows -> persist()\n'
        'known -> aggregate(by="id", m=avg("v"), l=max_by("w", "v"), e=min_by("v", "w")) -> out\n'
        'known -> aggregate(m=avg("w"), n=count("v")) -> delta() -> all'
    ),
    "distinct values": (
        'rows = source("id long, v long")\n'
        'rows -> persist() -> aggregate(by="id", d=count_distinct("v"), s=sum("v")) -> out'
    ),
    "a window that moves": (
        'rows = source("id long, v long, w decimal(6, 2)"); last = rows -> window(3)\n'
        'last -> aggregate(by="id", s=sum("v"), m=avg("w"), t=sum("w"), n=count()) -> out\n'
        'last -> aggregate(s=sum("v"), m=avg("v")) -> all'
    ),
    "changes of windows": (
        'rows = source("id long, v long"); last = rows -> window(2)\n'
        "last -> changes() -> changed; last -> delta() -> new\n"
        'last -> aggregate(by="id", s=sum("v"), n=count()) -> changes() -> out\n'
        "rows -> persist() -> changes() -> all"
    ),
    "padded joins": (
        'a = source("(long, long)"); b = source("(long, long)")\n'
        "pa = a -> persist(); pb = b -> persist()\n"
        "pa -> join(right=pb, how='left') -> delta() -> left\n"
        "pa -> join(right=pb, how='outer') -> changes() -> outer\n"
        "pa -> join(right=pb, how='semi') -> delta() -> semi"
    ),
    "reachability": (
        'edges = source("(long, long)"); known = edges -> persist(); known -> reach\n'
        "reach -> map(lambda a, b: (b, a)) -> join(right=known) -> map(lambda k, p: p) -> reach\n"
        "reach = union() -> unique(); reach -> delta() -> out"
    ),
}


def _check(text: str, seed: int, spark: SparkSession, *, as_range: bool) -> None:
    from hydro_core.spark.memory import run_in_memory

    compiled = compile_text(text)
    plan = optimized(compiled, goal="range" if as_range else "tick")
    ticks = random_ticks(compiled, Random(seed))
    try:
        wanted = list(run_ticks(compiled.typed, compiled.strata, ticks))
    except HydroError:
        return
    found = list(
        run_in_memory(plan.typed, plan.strata, ticks, Settings(), as_range=as_range, spark=spark)
    )
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert {n: sorted(map(repr, map(canonical, i))) for n, i in ours.items()} == {
            n: sorted(map(repr, map(canonical, i))) for n, i in theirs.items()
        }


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("as_range", [False, True], ids=["ticks", "range"])
def test_a_plan_on_spark_is_the_program(name: str, as_range: bool, spark: SparkSession) -> None:
    _check(CASES[name], 5, spark, as_range=as_range)


@pytest.mark.parametrize("seed", range(10))
def test_ten_random_plans_on_spark(seed: int, spark: SparkSession) -> None:
    rng = Random(seed)
    try:
        text = program(rng, 4)
        compile_text(text)
    except HydroError:
        return
    _check(text, seed, spark, as_range=False)
