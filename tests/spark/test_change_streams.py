"""Streams that are told by their changes, and what goes on by them: ticks and ranges in any cut."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from hydro_core.compile import CompiledProgram, optimized
from hydro_core.plan.planner import plan
from tests.spark.coverage import covering_programs
from tests.spark.engines import cuts, on_reference, on_spark, program
from tests.support.selection import mostly_slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMAS = {"a": "k string, v long", "b": "k string, w long"}
BOTH = "pa = a -> persist()\npb = b -> persist()\n"


def _reads(x: str) -> str:
    """A stream as it is, what is new, what changes, and an aggregate of what is made of it."""
    return (
        f"{x} -> now\n{x} -> delta() -> new\n{x} -> changes() -> changed\n"
        f'{x} -> map(lambda r: {{"k": r.k}}) -> aggregate(by="k", n=count()) -> by_key\n'
        f"{x} -> aggregate(n=count()) -> all\n"
    )


PROGRAMS = {
    "window": "x = a -> window(2)\n" + _reads("x"),
    "longer window": "x = a -> filter(lambda r: r.v != 1) -> window(3)\n" + _reads("x"),
    "history of a result": 'x = a -> persist() -> aggregate(by="k", v=sum("v"))\n'
    'x -> persist() -> aggregate(by="k", n=count()) -> delta() -> of_all\n'
    "x -> aggregate(n=count()) -> delta() -> of_changes\n",
    "left join": BOTH + 'x = pa -> join(right=pb, on="k", how="left")\n' + _reads("x"),
    "right join": BOTH + 'x = pa -> join(right=pb, on="k", how="right")\n' + _reads("x"),
    "outer join": BOTH + 'x = pa -> join(right=pb, on="k", how="outer")\n' + _reads("x"),
    "no match": BOTH + 'x = pa -> join(right=pb, on="k", how="anti")\n' + _reads("x"),
    "no match of keys": BOTH
    + "keys = pb -> map(lambda r: r.k)\n"
    + "x = anti_join()\npa -> map(lambda r: (r.k, r.v)) -> [pos]x\nkeys -> [neg]x\n"
    + "x -> now\nx -> delta() -> new\nx -> changes() -> changed\n",
    "difference": BOTH
    + "x = difference()\npa -> map(lambda r: r.k) -> [pos]x\npb -> map(lambda r: r.k) -> [neg]x\n"
    + "x -> now\nx -> delta() -> new\nx -> changes() -> changed\n",
    "aggregate of aggregates": """
        x = a -> persist() -> aggregate(by="k", total=sum("v"), n=count())
        y = x -> aggregate(by="n", keys=count(), sum=sum("total"))
        y -> now
        y -> changes() -> changed
        y -> aggregate(groups=count(), most=sum("keys")) -> all
    """,
    "aggregate of commands": """
        x = a -> sort() -> map(lambda r: ("delete" if r.v == 0 else "persist", r.k, r.v))
          -> persist_mut_keyed()
        x -> map(lambda k, v: {"v": v}) -> aggregate(by="v", n=count()) -> now
    """,
    "sum": """
        x = union()
        a -> window(2) -> select("k") -> x
        a -> persist() -> select("k") -> x
        counted = a -> persist() -> aggregate(by="k", n=count())
        counted -> filter(lambda r: r.n > 1) -> select("k") -> x
        x -> now
        x -> aggregate(by="k", n=count()) -> by_key
        x -> changes() -> changed
    """,
}

RESULTS = {
    "values": 'aggregate(by="k", m=median("v"), all=collect_list("v"), set=collect_set("v"))',
    "spread": 'aggregate(by="k", d=stddev("v"), n=count_distinct("v"), last=max("v"))',
    "merged": 'aggregate(by="k", n=count(), s=sum("v"), m=avg("v"))',
    "latest": 'latest(by="k", order=["v"])',
    "fold": "map(lambda r: (r.k, r.v)) -> fold_keyed(0, lambda a, x: (a + (x or 0)) % 2,"
    " commutative=True)",
    "fold of another type": "map(lambda r: (r.k, r.v)) -> fold_keyed((0, True),"
    " lambda a, x: (a[0] + 1, not a[1]), commutative=True)",
    "reduction": "map(lambda r: (r.k, r.v or 0)) -> reduce_keyed(lambda x, y: (x + y) % 2,"
    " commutative=True)",
    "sorted": "map(lambda r: (r.k, r.v or 0)) -> sort()"
    " -> reduce_keyed(lambda x, y: (x + y) % 2, commutative=True)",
}
"""What is made of the rows of each key of a history."""
PROGRAMS |= {
    f"by key: {name}": f"x = a -> persist() -> {made}\nx -> now\nx -> delta() -> new\n"
    f"x -> changes() -> changed\nx -> prev() -> before\n"
    for name, made in RESULTS.items()
}
CHANGING = {
    "latest": 'pb -> latest(by="k", order="w")',
    "count": 'b -> persist() -> aggregate(by="k", w=count())',
    "window": "b -> window(2)",
    "median": 'pb -> aggregate(by="k", w=median("w"))',
    "difference": 'pb -> join(right=ps, on="k", how="anti")',
}
"""Streams of rows (k, w) that take rows back."""
PS = "ps = b -> window(3) -> filter(lambda r: r.w == 1)\n"
HOWS = ("inner", "left", "right", "outer", "semi", "anti")
PROGRAMS |= {
    f"{how} join with a changing side: {name}": BOTH
    + PS
    + f'y = {made}\nx = pa -> join(right=y, on="k", how="{how}")\n'
    + _reads("x")
    for name, made in CHANGING.items()
    for how in HOWS
}
PROGRAMS |= {
    "both sides change": BOTH
    + 'l = a -> window(2)\nr = pb -> latest(by="k", order="w")\n'
    + 'x = l -> join(right=r, on="k", how="outer")\n'
    + _reads("x"),
    "a changing side on the left": BOTH
    + 'r = pb -> latest(by="k", order="w")\nx = r -> join(right=pa, on="k", how="left")\n'
    + _reads("x"),
    "three streams": BOTH
    + 'l = pb -> latest(by="k", order="w")\nc = pa -> aggregate(by="k", n=count())\n'
    + 'x = pa -> join(right=l, on="k") -> join(right=c, on="k", how="left")\n'
    + _reads("x"),
    "all pairs": BOTH
    + 'r = pb -> latest(by="k", order="w")\n'
    + 'x = pa -> cross(right=r) -> map(lambda l, r: {"k": l.k, "v": l.v, "w": r.w})\n'
    + _reads("x"),
    "distinct": BOTH
    + 'x = b -> persist() -> latest(by="k", order="w") -> select("w") -> unique()'
    + ' -> select("w", k=lambda r: "x")\n'
    + _reads("x"),
    "distinct of a window": BOTH + "x = a -> window(2) -> unique()\n" + _reads("x"),
    "difference of changing sides": BOTH
    + 'r = pb -> latest(by="k", order="w") -> select("k")\n'
    + 'x = pa -> select("k") -> difference(neg=r)\n'
    + _reads("x"),
}
OF_CHANGING = {
    "values": 'aggregate(by="w", m=median("k2"), all=collect_list("k2"), n=count_distinct("k2"))',
    "least": 'aggregate(by="w", least=min("k2"), most=max("k2"))',
    "latest": 'latest(by="w", order=["k2"])',
    "fold": "map(lambda r: (r.w, r.k2)) -> fold_keyed(0, lambda a, x: (a + x) % 5,"
    " commutative=True)",
}
"""What is made of the rows of each key of a stream that takes rows back."""
PROGRAMS |= {
    f"of changing rows by key: {of}, {name}": BOTH
    + PS
    + f'y = {CHANGING[of]} -> select("w", k2=lambda r: len(r.k or ""))\nx = y -> {made}\n'
    + "x -> now\nx -> delta() -> new\nx -> changes() -> changed\n"
    for of in ("latest", "window", "difference")
    for name, made in OF_CHANGING.items()
}
SIZES = (2, 3, 0, 1, 0, 3)


def batches(seed: int, sizes: Sequence[int] = SIZES) -> list[dict[str, list[Any]]]:
    """Few keys, null among them, that come back on either side; copies, and ticks without rows."""
    rng = random.Random(seed)

    def rows(n: int, value: str) -> list[dict[str, Any]]:
        keys, values = ["x", "y", "z", None], [None, 0, 1, 2]
        return [{"k": rng.choice(keys), value: rng.choice(values)} for _ in range(n)]

    return [{"a": rows(n, "v"), "b": rows(m, "w")} for n, m in zip(sizes, sizes[::-1], strict=True)]


def _given(name: str, seed: int) -> list[dict[str, list[Any]]]:
    names = {"a", "b"} if PROGRAMS[name].startswith(BOTH) else {"a"}
    return [{n: items for n, items in tick.items() if n in names} for tick in batches(seed)]


def _compiled(name: str, seed: int) -> CompiledProgram:
    given = _given(name, seed)
    return program(PROGRAMS[name], {n: SCHEMAS[n] for n in given[0]}, given)


def check(
    name: str,
    seed: int,
    ranges: list[tuple[int, ...]],
    spark: SparkSession,
    engines: Sequence[str] = ("plan", "written"),
) -> None:
    given, compiled = _given(name, seed), _compiled(name, seed)
    wanted, found = on_reference(compiled, given), optimized(compiled)
    made = plan(found.typed)
    told = {e.node for n in made.graph if n.cls.reads_changes for e in n.inputs}
    assert told & made.in_changes, "changes are read where they are told"
    for lengths in ranges:
        for which in engines:
            ran = {"plan": found, "written": compiled}[which]
            assert repr(on_spark(ran, given, lengths, spark)) == repr(wanted), (seed, lengths)


def _programs() -> dict[str, CompiledProgram]:
    return {name: optimized(_compiled(name, 1)) for name in PROGRAMS}


@pytest.mark.parametrize("name", mostly_slow(PROGRAMS, covering_programs(_programs())))
def test_ranges_that_follow_each_other_give_the_same(name: str, spark: SparkSession) -> None:
    check(name, 1, [(2, 3, 1)], spark, ("plan",))


def test_in_a_loop_values_are_read(spark: SparkSession) -> None:
    text = """
        x = union()
        a -> x
        g = x -> window(3) -> aggregate(by="k", v=count())
        g -> prev() -> x
        g -> out
    """
    given = [{"a": tick["a"]} for tick in batches(1)]
    compiled = program(text, {"a": SCHEMAS["a"]}, given)
    found = on_spark(optimized(compiled), given, (1, 4, 1), spark)
    assert repr(found) == repr(on_reference(compiled, given))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_cut_gives_the_same(name: str, seed: int, spark: SparkSession) -> None:
    check(name, seed, list(cuts(len(SIZES))), spark)
