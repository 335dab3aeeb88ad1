"""Exchanges in the physical plans of ticks: what has to meet is brought together once.

Where the analysis finds a way to cut a program, a tick needs no more exchanges than it reads
tables: each is routed by its key, and what comes of it stays where it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hydro_core.analysis.partition.partitioning import partition
from hydro_core.catalog.forms import Form
from hydro_core.compile import CompiledProgram, compile_text, optimized
from hydro_core.plan.planner import plan
from hydro_core.plan.tick_plan import StateSlot, TickPlan
from hydro_core.spark.executor.executor import Job, run_range
from hydro_core.spark.frames.relation import COUNT, ITEM, TICK
from hydro_core.spark.frames.types import spark_type
from hydro_core.spark.pipeline.tables import output_tables
from hydro_core.spark.store.delta.write import output_frame
from hydro_core.spark.store.schema import TableSpec

pytestmark = pytest.mark.spark

INPUTS = """
orders = source("user long, amount long")
users = source("user long, city string")
ages = source("user long, age long")
"""
JOINED = "orders -> join(right=users, on='user')"
HISTORY = "orders -> persist() -> join(right=known, on='user')"
KNOWN = "known = users -> persist()\n"
TOTAL = "aggregate(by='user', n=count(), spent=sum('amount'))"
PROGRAMS = {
    "a running aggregate": f"orders -> persist() -> {TOTAL} -> out",
    "an aggregate of the tick": f"orders -> {TOTAL} -> out",
    "a join of the tick": f"{JOINED} -> out",
    "what a join of histories adds": f"{KNOWN}{HISTORY} -> delta() -> out",
    "an aggregate behind a join of histories": f"{KNOWN}{HISTORY} -> {TOTAL} -> out",
    "an aggregate behind an anti join": (
        f"{KNOWN}orders -> join(right=known, on='user', how='anti') -> {TOTAL} -> out"
    ),
    "no key at all": "orders -> filter(lambda o: o.amount > 3) -> out",
    "an aggregate behind a join": f"{JOINED} -> {TOTAL} -> out",
    "a join behind a join": f"{JOINED} -> join(right=ages, on='user') -> out",
    "a running aggregate behind a join": f"{JOINED} -> persist() -> {TOTAL} -> delta() -> out",
    "an aggregate behind a left join": (
        f"orders -> join(right=users, on='user', how='left') -> {TOTAL} -> out"
    ),
    "an aggregate of some of a join": (
        f"{JOINED} -> filter(lambda o: o.amount > 0) -> {TOTAL} -> out"
    ),
    "an aggregate by more than the key": (
        f"{JOINED} -> aggregate(by=('city', 'user'), n=count()) -> out"
    ),
    "an aggregate by the key under another name": (
        f"{JOINED} -> rename(id='user') -> aggregate(by='id', n=count()) -> out"
    ),
    "what is new in a history": "orders -> persist() -> unique() -> delta() -> out",
}
_LEAF = re.compile(r"LocalTableScan|Scan ExistingRDD|FileScan|Range \(")
_EXCHANGE = re.compile(r"(?<!Reused)Exchange ")


class Stored:
    """Something is stored for every slot."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def rows(self, slot: StateSlot) -> DataFrame:
        """Rows of a slot, as a table of several files that is read."""
        fields = [
            t.StructField(ITEM, spark_type(slot.item)),
            t.StructField(TICK, t.LongType()),
            *([t.StructField(COUNT, t.LongType())] if slot.form is Form.CHANGES else []),
        ]
        return some_rows(self._spark, fields)


def some_rows(spark: SparkSession, fields: list[t.StructField]) -> DataFrame:
    # Rows of which nothing is known: what is constant needs no exchange.
    row = F.from_json(F.col("id").cast("string"), t.StructType(fields))
    return spark.range(0, 4, 1, numPartitions=4).select(row.alias("row")).select("row.*")


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    """Without broadcasts, which small data would have in place of exchanges."""
    own = spark.newSession()
    for key in ("spark.sql.autoBroadcastJoinThreshold", "spark.sql.adaptive.enabled"):
        own.conf.set(key, "-1" if key.endswith("Threshold") else "false")
    return own


def jobs(program: CompiledProgram, spark: SparkSession) -> Mapping[str, DataFrame]:
    """What a tick computes for each table, by the outputs' names and the slots' ids."""
    made: TickPlan = plan(program.typed)
    sources = {
        name: some_rows(
            spark,
            [
                t.StructField(ITEM, spark_type(program.typed.inputs[name].item)),
                t.StructField(TICK, t.LongType()),
            ],
        )
        for name in made.graph.sources
    }
    specs: Mapping[str, TableSpec] = output_tables(made)
    found = run_range(Job(made, 3, 3, spark, sources, past=Stored(spark)))  # type: ignore[arg-type]
    outputs = {n: output_frame(found.outputs[n], spec, 3, 3) for n, spec in specs.items()}
    return {**outputs, **found.state}


def exchanges(frame: DataFrame) -> tuple[int, int]:
    """The tables that a job reads, and the exchanges of its plan."""
    text = frame._jdf.queryExecution().executedPlan().toString()
    return len(_LEAF.findall(text)), len(_EXCHANGE.findall(text))


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_routed_once_stays_where_it_is(name: str, session: SparkSession) -> None:
    written = compile_text(INPUTS + PROGRAMS[name])
    assert partition(written.typed).partitionable
    for table, frame in jobs(optimized(written), session).items():
        read, placed = exchanges(frame)
        assert placed <= read, (table, frame.explain())


def test_what_has_no_key_is_not_exchanged(session: SparkSession) -> None:
    frames = jobs(optimized(compile_text(INPUTS + PROGRAMS["no key at all"])), session)
    assert exchanges(frames["out"]) == (1, 0)
