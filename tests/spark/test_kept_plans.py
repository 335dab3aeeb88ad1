"""Kept plans: a tick by a plan that is there gives what one by its own plan gives, for little."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from assets.flights.asset import FLIGHTS
from benchmarks.fixed_part import EIGHT_WAY_JOIN, orders
from benchmarks.measure import plan_of
from benchmarks.messages import Messages, counted_messages
from hydro_core.errors import DataError
from hydro_core.spark.frames.materialize import is_of_each_job
from hydro_core.spark.pipeline import jobs
from hydro_core.spark.pipeline import prepared as expected
from hydro_core.spark.pipeline.kept_plan import KEPT_PLANS, KeptPlans, can_be_kept
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.session.session import few_rows_session
from tests.spark.pipelines import SETTINGS, Batch, batch, opened, planned
from tests.spark.test_small_ticks import Work, flights_of
from tests.spark.test_small_ticks import planned as planned_flow
from tests.support.refused import Refused

pytestmark = pytest.mark.spark

OVER_TIME = """
members  = source("user string")
messages = source("user string, text string")
messages -> window(2) -> aggregate(by="user", n=count()) -> lately
messages -> persist() -> unique() -> delta() -> unseen
messages -> prev() -> before
messages -> persist() -> aggregate(n=count(), last=max("text")) -> all
messages -> sort() -> enumerate() -> in_order
everybody = members -> persist()
speakers  = messages -> select("user") -> unique()
speakers -> join(right=everybody, on="user", how="anti") -> strangers
speakers -> join(right=everybody, on="user", how="left") -> known
tick() -> map(lambda r: {"number": r.tick, "start": r.start, "end": r.end}) -> clock
"""

IN_PYTHON = """
members  = source("user string")
messages = source("user string, text string")
members -> map(lambda r: {"user": r.user.casefold()}) -> unique() -> spelt_members
spelt = messages -> map(lambda r: {"user": r.user, "word": r.text.casefold(), "n": len(r.text)})
spelt -> persist() -> unique() -> delta() -> words
messages -> filter(lambda r: r.text.casefold() < "m") -> unique() -> first_half
messages -> flat_map(lambda r: r.text.casefold().split("1")) -> unique() -> pieces
messages -> persist() -> aggregate(by="user", most=max(lambda r: r.text.casefold()),
    first=min(lambda r: r.text.casefold()), n=count(lambda r: r.text.casefold())) -> by_user
messages -> window(2) -> aggregate(most=max(lambda r: r.text.casefold())) -> lately
messages -> persist() -> latest(by="user", order=lambda r: r.text.casefold()) -> last_words
messages -> map(lambda r: (r.user, r.text)) -> sort()
  -> fold_keyed("", lambda acc, text: max(acc, text.casefold())) -> in_tick
messages -> map(lambda r: (r.user, r.text)) -> persist()
  -> fold_keyed("", lambda acc, text: max(acc, text.casefold()), commutative=True) -> folded
messages -> sort() -> scan("", lambda acc, r: max(acc, r.text.casefold())) -> in_turn
messages -> join(right=spelt, on="user") -> pairs
"""

OF_ALL = """
members  = source("user string")
messages = source("user string, text string")
by_user = messages -> persist() -> aggregate(by="user", n=count(), last=max("text"))
most  = by_user -> aggregate(n=max("n"))
least = by_user -> aggregate(least=min("n"))
by_user -> join(right=most, on="n") -> top
by_user -> cross_singleton(single=least) -> filter(lambda r, s: r.n == s.least) -> bottom
members -> persist() -> join(right=by_user, on="user") -> known
"""


@pytest.fixture(scope="module", autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines without a session of their own use the shared one."""


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ticks that ran by a kept plan, as they run."""
    found: list[int] = []
    run = jobs.KeptPlan.run

    def noted(plan: Any, given: Any) -> Any:
        found.append(given.tick)
        return run(plan, given)

    monkeypatch.setattr(jobs.KeptPlan, "run", noted)
    return found


def given(tick: int) -> Batch:
    """Batches that come and stay away, of several sizes."""
    whole = batch(tick, messages=tick % 4)
    return {name: rows for i, (name, rows) in enumerate(whole.items()) if (tick + i) % 3}


def window(tick: int) -> tuple[datetime, datetime]:
    start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=tick)
    return start, start + timedelta(days=1)


def contents(pipeline: Pipeline) -> dict[str, list[str]]:
    return {
        name: sorted(map(repr, pipeline.store.arrow(name, 0, 1 << 60).to_pylist()))
        for name in pipeline.store.tables
    }


@pytest.mark.parametrize(
    "program", [OVER_TIME, IN_PYTHON, OF_ALL], ids=["over time", "in Python", "of all"]
)
def test_ticks_by_a_kept_plan_store_what_ticks_by_their_own_store(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: list[int]
) -> None:
    by_kept = opened(tmp_path / "kept", program)
    for tick in range(7):
        by_kept.run_tick(tick, given(tick), window=window(tick))
    assert runs == [1, 2, 3, 4, 5, 6]
    monkeypatch.setattr(jobs, "can_be_kept", lambda plan: False)
    by_own = opened(tmp_path / "own", program)
    for tick in range(7):
        by_own.run_tick(tick, given(tick), window=window(tick))
    assert runs == [1, 2, 3, 4, 5, 6]
    assert contents(by_kept) == contents(by_own)


def test_a_tick_of_more_rows_is_compiled_and_stores_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: list[int]
) -> None:
    by_few = opened(tmp_path / "few", OF_ALL)
    compiled = opened(tmp_path / "compiled", OF_ALL)
    for tick in range(5):
        by_few.run_tick(tick, given(tick))
        with monkeypatch.context() as few:
            few.setattr(jobs, "_FEW_ARRIVALS", 0)
            compiled.run_tick(tick, given(tick))
    assert runs == [n for tick in range(1, 5) for n in (tick, tick)]
    of_few, of_compiled = (one for one in list(KEPT_PLANS._plans.values())[-2:] if one is not None)
    assert "*(" not in planned_by_spark(of_few)
    assert "*(" in planned_by_spark(of_compiled)
    assert contents(compiled) == contents(by_few)


def planned_by_spark(plan: jobs.KeptPlan) -> str:
    frame: Any = plan._tables.frame
    return str(frame._jdf.queryExecution().executedPlan().toString())


def test_more_rows_than_a_compiled_tick_may_have_are_stages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: list[int]
) -> None:
    monkeypatch.setattr(jobs, "_FEW_ARRIVALS", 2)
    monkeypatch.setattr(expected, "_COMPILED_ROWS", 10)
    pipeline = opened(tmp_path)
    for tick, rows in enumerate((1, 1, 9, 10, 1)):
        pipeline.run_tick(tick, batch(tick, rows))
    assert runs == [1, 2, 4]
    monkeypatch.setattr(expected, "_COMPILED_BYTES", 10)
    pipeline.run_tick(5, batch(5, 9))
    pipeline.run_tick(6, batch(6, 1))
    assert runs == [1, 2, 4, 6]
    assert pipeline.output("everything", every=True).num_rows == 32


def test_a_tick_without_times_has_none(tmp_path: Path, runs: list[int]) -> None:
    text = 'tick() -> map(lambda r: {"n": r.tick, "start": r.start, "end": r.end}) -> clock'
    pipeline = opened(tmp_path, text)
    for tick in range(3):
        pipeline.run_tick(tick, {})
    assert runs == [1, 2]
    assert pipeline.output("clock").to_pylist() == [{"tick": 2, "n": 2, "start": None, "end": None}]


def messages_of(pipeline: Pipeline, tick: int, rows: Batch) -> Messages:
    with counted_messages(places=True) as found:
        pipeline.run_tick(tick, rows)
    return found


def test_a_warm_tick_sends_few_messages(tmp_path: Path, spark: SparkSession) -> None:
    made = planned_flow(FLIGHTS.program, FLIGHTS.schemas, optimize=True)
    pipeline = Pipeline(tmp_path, made, SETTINGS, spark)
    for tick in range(3):
        pipeline.run_tick(tick, flights_of(tick))
    found = messages_of(pipeline, 3, flights_of(3))
    assert found.sent <= 120, (found.by_place, found.by_call)


def test_a_join_of_eight_tables_is_kept(
    tmp_path: Path, spark: SparkSession, runs: list[int]
) -> None:
    pipeline = Pipeline(tmp_path, plan_of(EIGHT_WAY_JOIN), SETTINGS, spark)
    for tick in range(3):
        pipeline.run_tick(tick, dict(orders(tick, 40)))
    before = Work.of(spark)
    found = messages_of(pipeline, 3, dict(orders(3, 40)))
    assert runs == [1, 2, 3]
    assert Work.of(spark).since(before) == Work(jobs=1, shuffles=0)
    assert found.sent <= 200, (found.by_place, found.by_call)


def test_more_rows_are_no_more_messages(tmp_path: Path, spark: SparkSession) -> None:
    pipeline = opened(tmp_path)
    for tick in range(2):
        pipeline.run_tick(tick, batch(tick))
    few, many = (messages_of(pipeline, 2 + i, batch(2 + i, n)) for i, n in enumerate((2, 500)))
    assert many.sent == few.sent > 0


def test_rows_of_many_bytes_come_as_they_are(tmp_path: Path, runs: list[int]) -> None:
    pipeline = opened(tmp_path)
    for tick, size in enumerate((1, 8_000, 1, 8_000)):
        texts = [f"{tick}.{i}" * size for i in range(50)]
        pipeline.run_tick(tick, {"messages": pa.table({"user": ["u"] * 50, "text": texts})})
        assert sorted(pipeline.output("in_order")["text"].to_pylist()) == sorted(texts)
    assert runs == [1, 2, 3]


FAILING = """
numbers = source("n long, d long")
numbers -> map(lambda r: {"q": r.n // r.d}) -> quotients
numbers -> persist() -> aggregate(total=sum("n")) -> totals
"""


def numbers(*rows: tuple[int, int]) -> Batch:
    return {"numbers": pa.table({"n": [n for n, _ in rows], "d": [d for _, d in rows]})}


def test_a_tick_that_fails_tells_its_own_number_and_the_next_one_runs(
    tmp_path: Path, runs: list[int], refused: Refused
) -> None:
    pipeline = opened(tmp_path, FAILING)
    for tick in range(2):
        pipeline.run_tick(tick, numbers((tick, 1)))
    with refused(DataError, "runtime", at="3:16"):
        pipeline.run_tick(2, numbers((4, 0)))
    for tick in range(2, 4):
        pipeline.run_tick(tick, numbers((4, 2)))
    assert runs == [1, 2, 2, 3]
    assert pipeline.output("quotients").to_pylist() == [{"tick": 3, "q": 2}]
    assert pipeline.output("totals").to_pylist() == [{"tick": 3, "total": 9}]


def test_what_spark_cannot_tell_is_computed_by_the_tick_itself(tmp_path: Path) -> None:
    pipeline = opened(
        tmp_path,
        'numbers = source("n long, d long")\n'
        'numbers -> map(lambda r: {"q": r.n * r.d % 97}) -> products\n',
    )
    large = 1 << 62
    for tick in range(4):
        n = large if tick == 2 else tick
        pipeline.run_tick(tick, numbers((n, n)))
    found = pipeline.output("products", every=True).sort_by("tick")["q"].to_pylist()
    assert found == [0, 1, large * large % 97, 9]


def test_rows_that_are_held_are_those_of_the_tick_whatever_failed_before(
    tmp_path: Path, refused: Refused
) -> None:
    program = """
    numbers = source("n long, d long")
    sums = numbers -> persist() -> aggregate(by="d", total=sum("n"))
    sums -> changes() -> changed
    sums -> map(lambda r: {"d": r.d, "half": 100 // (r.total - 7)}) -> delta() -> halves
    """
    pipeline = opened(tmp_path, program)
    for tick in range(3):
        pipeline.run_tick(tick, numbers((1, tick % 2), (1, 5)))
    with refused(DataError, "runtime", at="5:17"):
        pipeline.run_tick(3, numbers((4, 5)))
    pipeline.run_tick(3, numbers((5, 5)))
    assert pipeline.output("halves").to_pylist() == [{"tick": 3, "d": 5, "half": 100}]


def test_rounds_of_a_cycle_are_planned_once(tmp_path: Path, runs: list[int]) -> None:
    program = """
    edges = source("(long, long)")
    reached = union()
    edges -> reached
    reached -> map(lambda a, b: (b, a)) -> [0] steps
    edges -> [1] steps
    steps = join() -> map(lambda k, v: v) -> unique() -> reached
    reached -> unique() -> pairs
    """
    assert can_be_kept(planned(program))
    pipeline = opened(tmp_path, program)
    for tick in range(3):
        edges = {"_1": [tick, tick + 1, tick + 2], "_2": [tick + 1, tick + 2, tick]}
        pipeline.run_tick(tick, {"edges": pa.table(edges)})
        found = pipeline.output("pairs").select(["_1", "_2"]).to_pylist()
        three = range(tick, tick + 3)
        assert sorted((r["_1"], r["_2"]) for r in found) == [(a, b) for a in three for b in three]
    assert runs == [1, 2]


def test_a_cycle_in_which_no_stream_is_a_set_is_planned_for_each_tick(
    tmp_path: Path, runs: list[int]
) -> None:
    program = """
    n = source("long")
    up = union()
    n -> up
    up -> filter(lambda x: x < 5) -> map(lambda x: x + 1) -> up
    up -> all
    """
    assert not can_be_kept(planned(program))
    pipeline = opened(tmp_path, program)
    for tick in range(2):
        pipeline.run_tick(tick, {"n": pa.table({"item": [3, tick + 1]})})
    assert not runs


def test_what_spark_computes_once_for_all_jobs_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: list[int]
) -> None:
    monkeypatch.setattr(jobs.KeptPlan, "is_of_each_job", False)
    pipeline = opened(tmp_path)
    for tick in range(3):
        pipeline.run_tick(tick, batch(tick))
    assert not runs
    assert pipeline.output("everything", every=True).num_rows == 6


def test_what_spark_computes_once_for_all_jobs_is_seen_in_its_plan(spark: SparkSession) -> None:
    few = few_rows_session(spark)
    numbers = few.range(3).coalesce(1)
    doubled = numbers.select((F.col("id") * 2).alias("id"))
    assert is_of_each_job(numbers.join(doubled, "id").groupBy("id").count())
    for once in (
        numbers.repartition(2),
        numbers.join(F.broadcast(doubled), "id"),
        numbers.join(doubled, numbers["id"] < doubled["id"], "left"),
        numbers.limit(2),
        numbers.orderBy("id").limit(2),
        numbers.where(F.col("id") == numbers.agg(F.max("id")).scalar()),
        numbers.cache(),
    ):
        assert not is_of_each_job(once)
    numbers.unpersist()


def test_a_plan_whose_job_was_interrupted_is_given_up() -> None:
    class Interrupted:
        is_of_each_job = True

        def run(self, given: object) -> Any:
            raise KeyboardInterrupt

    class Runs(Interrupted):
        def run(self, given: object) -> Any:
            return {"table": given}

    plans = KeptPlans(2)
    with pytest.raises(KeyboardInterrupt):
        plans.run(("a",), cast("Any", Interrupted), cast("Any", dict))
    assert plans.run(("a",), cast("Any", Runs), cast("Any", dict)) == {"table": {}}


def test_plans_that_were_not_used_for_long_are_given_up() -> None:
    class Plan:
        is_of_each_job = True

    made: list[str] = []

    def make(name: str) -> Callable[[], Any]:
        return lambda: made.append(name) or Plan()

    plans = KeptPlans(2)
    for name in "abacab":
        assert plans.of((name,), make(name)) is not None
    assert made == ["a", "b", "c", "b"]
    plans.drop(("a",))
    plans.of(("b",), make("b"))
    plans.of(("a",), make("a"))
    assert made == ["a", "b", "c", "b", "a"]
    assert KEPT_PLANS is not plans
