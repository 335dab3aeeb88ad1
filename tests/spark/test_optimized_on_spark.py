"""Plans on Spark give what programs give on the reference, tick by tick and as a range."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from hydro_core.compile import CompiledProgram, compile_text, optimized, planned
from hydro_core.errors import HydroError
from hydro_core.optimize.cost import InputStatistics, Statistics
from hydro_core.reference.interpreter import run_ticks
from hydro_core.settings import Settings
from hydro_core.types.values import canonical
from hydro_core.validation.random_ticks import random_ticks
from tests.support.flows import typed_program
from tests.support.selection import alternately_slow, mostly_slow

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
        'rows = source("x string, id long, v long, w decimal(6, 2)"); last = rows -> window(3)\n'
        'last -> aggregate(by="id", s=sum("v"), m=avg("w"), t=sum("w"), n=count()) -> out\n'
        'rows -> window(4) -> aggregate(s=sum("v"), m=avg("v")) -> all'
    ),
    "changes of windows": (
        'rows = source("id long, v long"); last = rows -> window(2); more = rows -> window(3)\n'
        "last -> changes() -> changed; last -> delta() -> new\n"
        'more -> aggregate(by="id", s=sum("v"), n=count()) -> changes() -> out\n'
        "rows -> persist() -> changes() -> all"
    ),
    "padded joins": (
        'a = source("(long, long)"); b = source("(long, long)")\n'
        "pa = a -> persist(); pb = b -> persist()\n"
        "pa -> join(right=pb, how='left') -> delta() -> left\n"
        "pa -> join(right=pb, how='outer') -> changes() -> outer\n"
        "pa -> join(right=pb, how='semi') -> delta() -> semi"
    ),
    "sinks of one name": (
        'a = source("k long, v long"); known = a -> persist()\n'
        'a -> sink("o"); a -> sink("o"); known -> delta() -> sink("o")\n'
        'a -> sort_by_key(lambda r: r.v) -> sink("p"); a -> sink("p")\n'
        'known -> aggregate(by="k", n=count()) -> sink("q")\n'
        'known -> aggregate(by="k", n=count()) -> sink("q")\n'
        'known -> filter(lambda r: False) -> sink("h"); known -> sink("h"); known -> sink("h")'
    ),
    "reachability": (
        'edges = source("(long, long)"); known = edges -> persist(); known -> reach\n'
        "reach -> map(lambda a, b: (b, a)) -> join(right=known) -> map(lambda k, p: p) -> reach\n"
        "reach = union() -> unique(); reach -> delta() -> out"
    ),
}


def _check(text: str, seed: int, spark: SparkSession, *, as_range: bool) -> None:
    from hydro_core.spark.executor.memory import run_in_memory

    compiled = compile_text(text)
    # many rows fall into few groups, so that what goes on from tick to tick is worth it
    many = {name: InputStatistics(rows=1e6) for name in compiled.typed.inputs}
    plan = optimized(compiled, Statistics(inputs=many))
    ticks, wanted = _run(compiled, seed)
    found = list(run_in_memory(planned(plan), ticks, Settings(), as_range=as_range, spark=spark))
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted, strict=True):
        assert {n: sorted(map(repr, map(canonical, i))) for n, i in ours.items()} == {
            n: sorted(map(repr, map(canonical, i))) for n, i in theirs.items()
        }


def _run(compiled: CompiledProgram, seed: int) -> tuple[Any, list[Any]]:
    """The first random ticks that the program has outputs for, and these."""
    for number in range(20):
        ticks = random_ticks(compiled, Random(seed if not number else f"{seed}/{number}"))
        try:
            return ticks, list(run_ticks(compiled.typed, compiled.strata, ticks))
        except HydroError:
            continue
    raise AssertionError("the program fails on all random ticks: nothing would be compared")


@pytest.mark.parametrize(("name", "as_range"), alternately_slow(CASES, [False, True]))
def test_a_plan_on_spark_is_the_program(name: str, as_range: bool, spark: SparkSession) -> None:
    _check(CASES[name], 5, spark, as_range=as_range)


@pytest.mark.parametrize("seed", mostly_slow(range(10)))
def test_ten_random_plans_on_spark(seed: int, spark: SparkSession) -> None:
    rng = Random(seed)
    text, _ = typed_program(rng, 4)
    _check(text, seed, spark, as_range=False)
