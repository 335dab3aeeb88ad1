"""Small ticks: what they leave out gives the same as what larger ones do, and is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from assets.chat.asset import CHAT
from assets.flights.asset import FLIGHTS
from hydro_core.compile import compile_graph, optimized
from hydro_core.lang.load import load
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.spark.pipeline import jobs
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.spark.store.delta import write
from hydro_core.spark.store.delta.write import PendingRows, WrittenRows
from hydro_core.types.ddl import parse_ddl
from tests.spark.pipelines import SETTINGS, Batch, batch, contents, opened
from tests.support.selection import alternately_slow

pytestmark = pytest.mark.spark

PROGRAM = """
members  = source("user string")
messages = source("user string, text string")
renamed  = members -> rename(member="user")
renamed  -> persist() -> everybody
renamed  -> greeted
messages -> select("user") -> unique() -> speakers
"""


@pytest.fixture(scope="module", autouse=True)
def _session(spark: SparkSession) -> None:
    """Pipelines without a session of their own use the shared one."""


def test_what_nothing_can_reach_takes_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = opened(tmp_path, PROGRAM)
    asked: list[str] = []

    def collect_all(
        pending: Mapping[str, PendingRows], bound: int
    ) -> Mapping[str, WrittenRows] | None:
        asked.extend(pending)
        return write.collect_all(pending, bound)

    monkeypatch.setattr(jobs, "collect_all", collect_all)
    pipeline.run_tick(0, {"messages": batch(1)["messages"]})
    assert asked == ["outputs/everybody", "outputs/speakers"]
    assert pipeline.output("greeted").num_rows == 0
    pipeline.run_tick(1, batch(0))
    assert pipeline.output("greeted").to_pylist() == [{"tick": 1, "member": "m0"}]
    assert pipeline.output("speakers", as_of=0).num_rows == 2
    pipeline.run_tick(2, {})
    assert pipeline.output("greeted").num_rows == 0
    pipeline.run_tick(3, batch(2))
    assert sorted(pipeline.output("everybody", every=True)["member"].to_pylist()) == ["m0", "m2"]


def test_few_rows_and_many_leave_the_same_tables(tmp_path: Path) -> None:
    of_few = opened(tmp_path / "few")
    of_many = opened(tmp_path / "many", settings=SETTINGS.with_(few_rows=0))
    for tick in range(3):
        for pipeline in (of_few, of_many):
            pipeline.run_tick(tick, batch(tick))
    assert contents(of_few) == contents(of_many)


def test_few_rows_that_become_many_are_computed_as_many(tmp_path: Path) -> None:
    program = """
members = source("user string")
members -> [0] pairs
members -> [1] pairs
pairs = cross() -> both
"""
    given = {"members": pa.table({"user": [f"m{i}" for i in range(12)]})}
    settings = SETTINGS.with_(small_write_rows=100)
    pipeline = opened(tmp_path, program, settings)
    pipeline.run_tick(0, given)
    assert pipeline.output("both").num_rows == 144


def test_what_spark_knows_is_never_null_is_null_in_rows_of_other_tables(tmp_path: Path) -> None:
    program = """
members  = source("user string")
messages = source("user string, text string")
members  -> seen
messages -> persist() -> aggregate(by="user", texts=collect_set("text")) -> changes() -> told
"""
    pipeline = opened(tmp_path, program)
    pipeline.run_tick(0, batch(0))
    users = sorted(row["_2"]["user"] for row in pipeline.output("told").to_pylist())
    assert users == sorted(set(batch(0)["messages"]["user"].to_pylist()))
    assert pipeline.output("seen").to_pylist() == [{"tick": 0, "user": "m0"}]


@dataclass
class Work:
    """The jobs and shuffles of a Spark context so far."""

    jobs: int
    shuffles: int

    @classmethod
    def of(cls, spark: SparkSession) -> Work:
        context: Any = spark.sparkContext._jsc.sc()
        # Asking for a number of a shuffle takes it.
        return cls(context.dagScheduler().numTotalJobs(), context.newShuffleId() + 1)

    def since(self, before: Work) -> Work:
        return Work(self.jobs - before.jobs, self.shuffles - 1 - before.shuffles)


def flights_of(day: int) -> Batch:
    """A day of flights: one from each of three origins, and reference data at first."""
    at = datetime(2013, 1, 1, 6) + timedelta(days=day)
    origins = ["EWR", "JFK", "LGA"]
    utc = pa.timestamp("us", tz="UTC")
    found = {
        "flights": pa.table(
            {
                "day": [at.date()] * 3,
                "carrier": ["UA", "DL", "UA"],
                "flight": [day, day + 1, day + 2],
                "tail_number": [f"N{day + i}" for i in range(3)],
                "origin": origins,
                "destination": ["ORD", f"D{day}", "ATL"],
                "hour": pa.array([at] * 3, utc),
                "scheduled_departure": pa.array([at] * 3, utc),
                "departure_delay": [day, None, 20],
                "arrival_delay": [day, None, 25],
                "distance": [700, 800, 900],
            }
        ),
        "weather": pa.table(
            {
                "origin": origins,
                "hour": pa.array([at] * 3, utc),
                "temperature": [1.0, 2.0, None],
                "wind_speed": [3.0] * 3,
                "precipitation": [0.0] * 3,
                "visibility": [10.0] * 3,
            }
        ),
        "planes": pa.table(
            {
                "tail_number": [f"N{day}"],
                "year_built": [1990 + day],
                "manufacturer": ["BOEING"],
                "model": ["737"],
                "seats": [140],
            }
        ),
    }
    if day == 0:
        found["airlines"] = pa.table({"carrier": ["UA", "DL"], "name": ["United", "Delta"]})
        found["airports"] = pa.table({"airport": ["ORD", "ATL"], "name": ["Chicago", "Atlanta"]})
    return found


def chat_of(tick: int) -> Batch:
    return {
        "add_member": pa.table({"user": [f"m{tick}"]}),
        "messages": pa.table({"user": [f"m{tick}"], "text": [f"I am number {tick}"]}),
    }


def planned(program: Path, schemas: Mapping[str, str], *, optimize: bool) -> TickPlan:
    compiled = compile_graph(load(str(program)), {n: parse_ddl(t) for n, t in schemas.items()})
    made = optimized(compiled) if optimize else compiled
    return plan(made.typed)


@pytest.mark.parametrize(
    ("flow", "optimize"),
    alternately_slow(["flights", "chat"], [True, False]),
)
def test_a_warm_tick_is_one_job_without_a_shuffle(
    flow: str, optimize: bool, tmp_path: Path, spark: SparkSession
) -> None:
    asset, given = {"flights": (FLIGHTS, flights_of), "chat": (CHAT, chat_of)}[flow]
    made = planned(asset.program, asset.schemas, optimize=optimize)
    pipeline = Pipeline(tmp_path, made, SETTINGS, spark)
    for tick in range(2):
        pipeline.run_tick(tick, given(tick))
    before = Work.of(spark)
    commit = pipeline.run_tick(2, given(2))
    assert Work.of(spark).since(before) == Work(jobs=1, shuffles=0)
    assert all(commit.rows[f"outputs/{name}"] for name in made.graph.sinks)
