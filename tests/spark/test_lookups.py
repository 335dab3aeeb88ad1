"""What is stored is looked up by what arrives: few rows reach Spark, and none that matter stay out.

Vectors, random programs and laws on Spark look up their state, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from hydro_core.compile import compile_text, optimized
from hydro_core.plan.lookups import lookups
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import StateSlot
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.pipeline.rework import correction
from hydro_core.spark.store import store
from hydro_core.spark.store.schema import TableSpec
from tests.spark.engines import Json, on_reference, on_spark, program
from tests.spark.pipelines import SETTINGS, Batch
from tests.spark.test_small_ticks import Work

pytestmark = pytest.mark.spark

NAN = float("nan")
KEYS: dict[str, list[list[Any]]] = {
    "double": [[None, 0.0, NAN, 1.5], [-0.0, 1.5], [NAN, None, 0.0], [2.5, -0.0]],
    "string": [["a", "A", None, "\U0001f600"], ["\uffff", "a"], ["\U0001f600", None], ["A", "é"]],
    "decimal(6,2)": [["0.00", "1.10", None], ["1.10", "-0.01"], [None, "0.00"], ["1.11"]],
    "(long, string)": [[[1, "x"], [1, None], None], [[1, "y"], [1, "x"]], [None, [2, "x"]], []],
    "array<long>": [[[1, None], [], None], [[1, None]], [None, []], [[2]]],
}
NASTY = """
h = b -> persist(); j = join(); a -> [0]j; h -> [1]j; j -> joined
a -> join(right=h, how="left") -> padded
a -> join(right=h, how="semi") -> met
a -> map(lambda k, v: k) -> difference(neg=known) -> missing
known = h -> map(lambda k, v: k)
a -> persist() -> unique() -> delta() -> new
p = a -> persist(); p -> [0]both; h -> [1]both; both = join() -> delta() -> pairs
totals = a -> persist() -> fold_keyed(0, lambda s, v: s + v, commutative=True)
totals -> delta() -> moved
b -> join(right=totals) -> looked_up
"""


@pytest.mark.parametrize("of", KEYS)
def test_nasty_keys_find_their_rows_however_ticks_are_cut(of: str, spark: SparkSession) -> None:
    a = [[[key, n] for n, key in enumerate(keys)] for keys in KEYS[of]]
    b = [[[key, 10 + n] for n, key in enumerate(keys)] for keys in reversed(KEYS[of])]
    ticks = [{"a": x, "b": y} for x, y in zip(a, b, strict=True)] + [{"a": [], "b": a[0]}]
    written = program(NASTY, dict.fromkeys("ab", f"({of}, long)"), ticks)
    made = optimized(written)
    found = lookups(plan(made.typed), ())
    assert len(found) == len(plan(made.typed).slots)
    wanted = text(on_reference(written, ticks))
    for ranges in [(1,) * 5, (2, 2, 1)]:
        assert text(on_spark(made, ticks, ranges, spark)) == wanted, ranges


def text(found: Json) -> str:
    """Which of two equal zeros an output has is not said."""
    return repr(found).replace("-0.0", "0.0")


FEW = 50
SOURCES = {
    "visits": "user long, page string",
    "orders": "user long, amount long",
    "users": "user long, city string",
    "members": "name string",
    "messages": "text string",
}
PROGRAM = """
visits -> persist() -> unique() -> delta() -> first_visits
known = users -> persist()
orders -> join(right=known, on="user") -> enriched
orders -> persist() -> aggregate(by="user", n=count(), spent=sum("amount")) -> totals
members -> persist() -> [0]notified; messages -> persist() -> [1]notified
notified = cross() -> delta() -> notify
"""


def opened(directory: Path, few: int = FEW, text: str = PROGRAM) -> Pipeline:
    schemas = [f'{name} = source("{columns}")' for name, columns in SOURCES.items() if name in text]
    made = compile_text("\n".join(schemas) + text)
    made = optimized(made) if text == PROGRAM else made
    return Pipeline(directory, plan(made.typed), SETTINGS.with_(few_rows=few))


def batch(tick: int, late: bool = False) -> Batch:
    """Five new users in every tick; one that is new, and one of before, order and visit."""
    new, seen = 5 * tick, [5 * tick, max(5 * tick - 5, 0)]
    found = {
        "visits": pa.table(
            {"user": [*seen, new + 1], "page": ["p", "q" if tick % 2 else "p", "r"]}
        ),
        "orders": pa.table({"user": seen, "amount": [tick, 2]}),
        "users": pa.table({"user": list(range(new, new + 5)), "city": ["x"] * 5}),
        "messages": pa.table({"text": [f"{tick}.{i}" for i in range(3)]}),
    }
    if tick == 0:
        found["members"] = pa.table({"name": ["ann", "bob"]})
    if late:
        found["orders"] = pa.table({"user": [1, *seen], "amount": [9, tick, 2]})
    return found


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many stored rows Spark was handed of each slot."""
    found: dict[str, int] = {}
    framed, of_kept = store.framed, store.CommittedPast.arrow

    def counted(spark: SparkSession, spec: TableSpec, rows: pa.Table) -> DataFrame | None:
        found[spec.of.partition("_")[0]] = rows.num_rows
        return framed(spark, spec, rows)

    def counted_of_kept(past: store.CommittedPast, slot: StateSlot) -> pa.Table:
        rows = of_kept(past, slot)
        found[slot.id.partition("_")[0]] = rows.num_rows
        return rows

    monkeypatch.setattr(store, "framed", counted)
    monkeypatch.setattr(store.CommittedPast, "arrow", counted_of_kept)
    return found


def test_a_late_tick_hands_over_the_rows_of_its_keys_alone(
    tmp_path: Path, spark: SparkSession, handed: dict[str, int]
) -> None:
    pipeline = opened(tmp_path)
    for tick in range(12):
        pipeline.run_tick(tick, batch(tick))
    assert sum(table.rows for table in pipeline.store.tables.values() if is_state(table.spec)) > 120
    # Of the two users that order one was there, who has visited the page of even ticks.
    wanted = {"users": 1, "difference": 1, "running": 1, "members": 2, "messages": 0}
    check_tick(pipeline, 12, wanted, handed, spark)
    pipeline.compact()
    check_tick(pipeline, 13, wanted | {"difference": 0}, handed, spark)
    with correction(pipeline, 13) as rework:
        rework.staging.run_tick(13, batch(13, late=True))
        rework.replace()
    assert handed["users"] == 2
    in_one = opened(tmp_path / "in one", few=0)
    for tick in range(14):
        in_one.run_tick(tick, batch(tick, late=tick == 13))
    assert outputs(pipeline) == outputs(in_one)


def test_who_has_a_history_a_tick_later_gets_the_last_tick(
    tmp_path: Path, spark: SparkSession, handed: dict[str, int]
) -> None:
    text = "\norders -> old() -> delta() -> later\n"
    text += "users -> old() -> join(right=v, on='user') -> out\n"
    text += "v = visits -> old()\n"
    whole, looked_up = (opened(tmp_path / str(few), few, text) for few in (0, FEW))
    for pipeline in (whole, looked_up):
        for tick in range(4):
            handed.clear()
            used = {name: rows for name, rows in batch(tick).items() if name in text}
            pipeline.run_tick(tick, used if tick < 3 else {})
    assert handed["orders"] == 2
    assert outputs(whole) == outputs(looked_up)


def is_state(spec: TableSpec) -> bool:
    return spec.role == "state"


def check_tick(
    pipeline: Pipeline,
    tick: int,
    wanted: dict[str, int],
    handed: dict[str, int],
    spark: SparkSession,
) -> None:
    handed.clear()
    before = Work.of(spark)
    pipeline.run_tick(tick, batch(tick))
    assert Work.of(spark).since(before) == Work(jobs=1, shuffles=0)
    assert handed == wanted


def outputs(pipeline: Pipeline) -> dict[str, list[str]]:
    return {
        name: sorted(map(repr, pipeline.output(name, every=True).to_pylist()))
        for name in pipeline.output_tables
    }
