"""One small tick: ours beside scripts that an expert would write in PySpark and Delta.

All get the same batches, keep the state that the job needs and write the same outputs, in turns and
in one process. The scripts are what a tick costs without us, and meant to be hard to beat: they are
incremental, know which side of a join is small, switch off in their session what small jobs do not
need, write their tables at once in threads with plain appends and count nothing. Each ends with a
row in a log of ticks, without which nobody knows after a crash where to go on; they check nothing.

`by hand` is PySpark and Delta alone. `by hand, delta-rs` collects its small results as Arrow and
writes them, and its log, with delta-rs, and leaves Spark what Spark is for.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.measure import Meter, Ratio, parser_of, plan_of, report, session
from hydro_core.spark.pipeline.pipeline import Pipeline

PROGRAM = """
orders    = source("customer long, amount long, product string")
customers = source("customer long, city string")

# A keyed join with history, and running aggregates.
known = customers -> persist()
orders -> join(right=known, on="customer") -> enriched
orders -> persist() -> aggregate(by="product", n=count(), spent=sum("amount")) -> totals
"""

GOAL = 1.0

Batch = dict[str, pa.Table]


def new_customers(tick: int, new: int) -> pa.Table:
    """The customers that are new in a tick, as many in each."""
    return pa.table(
        {
            "customer": np.arange(tick * new, (tick + 1) * new),
            "city": [f"city {i % 50}" for i in range(new)],
        }
    )


def batch(seed: int, tick: int, rows: int) -> Batch:
    """A tick's orders, and some customers that are new in it."""
    rng, new = np.random.default_rng((seed, tick)), rows // 10
    known = (tick + 1) * new
    return {
        "customers": new_customers(tick, new),
        "orders": pa.table(
            {
                "customer": rng.integers(0, known, rows),
                "amount": rng.integers(1, 1000, rows),
                "product": [f"product {i}" for i in rng.integers(0, 200, rows)],
            }
        ),
    }


class ByHand:
    """The script: what would stand in a notebook that became a job."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark = spark.newSession()
        self.spark.conf.set("spark.sql.shuffle.partitions", "2")
        # Small jobs gain nothing by being planned anew between their stages.
        self.spark.conf.set("spark.sql.adaptive.enabled", "false")
        self.path = lambda name: str(directory / name)
        self.pool = ThreadPoolExecutor(4)

    def tick(self, t: int, given: Batch) -> None:
        """The totals are those of the tick before and the new ones: `totals` is its own state."""
        stamp = F.lit(t).cast("long").alias("tick")
        orders = self.spark.createDataFrame(given["orders"])
        customers = self.spark.createDataFrame(given["customers"])
        known = customers
        sums = orders.groupBy("product").agg(
            F.count("*").alias("n"), F.sum("amount").alias("spent")
        )
        if t > 0:
            # A tick that failed may have left rows of its own.
            stored = self.read("customers").where(F.col("tick") < t).drop("tick")
            known = customers.union(stored)
            before = self.read("totals").where(F.col("tick") == t - 1).drop("tick")
            sums = (
                before.union(sums)
                .groupBy("product")
                .agg(F.sum("n").alias("n"), F.sum("spent").alias("spent"))
            )
        # The batch is the small side, and stays so however many customers there will be.
        enriched = known.join(F.broadcast(orders), "customer").select(
            "customer", "amount", "product", "city"
        )
        tables = {
            "customers": customers.select(stamp, "*"),
            "enriched": enriched.select(stamp, "*"),
            "totals": sums.select(stamp, "*"),
        }
        list(self.pool.map(lambda name: self.append(tables[name], name), tables))
        self.log(t)

    def read(self, name: str) -> DataFrame:
        return self.spark.read.format("delta").load(self.path(name))

    def append(self, rows: DataFrame, name: str) -> None:
        rows.coalesce(1).write.format("delta").mode("append").save(self.path(name))

    def log(self, t: int) -> None:
        done = self.spark.createDataFrame([(t, datetime.now(UTC))], "tick long, at timestamp")
        self.append(done, "log")


class ByHandWithDeltaRs(ByHand):
    """The same script, its small results written by delta-rs."""

    def append(self, rows: DataFrame, name: str) -> None:
        write_deltalake(self.path(name), rows.toArrow(), mode="append")

    def log(self, t: int) -> None:
        done = pa.table({"tick": [t], "at": [datetime.now(UTC)]})
        write_deltalake(self.path("log"), done, mode="append")


def check_equal(ours: Pipeline, hand: ByHand) -> None:
    """A benchmark of two things that do not do the same says nothing."""
    for name in ("enriched", "totals"):
        a = ours.output_frame(name).drop("tick")
        last = ours.last_committed
        b = ours.spark.read.format("delta").load(hand.path(name)).where(F.col("tick") == last)
        b = b.select(*a.columns)
        if a.exceptAll(b).count() or b.exceptAll(a).count():
            sys.exit(f"the two differ in `{name}` at tick {last}")


def main() -> int:
    """Runs the ticks."""
    parser = parser_of("tick", __doc__)
    parser.add_argument("--ticks", type=int, default=9, help="measured ticks")
    parser.add_argument("--warm", type=int, default=8, help="ticks before these")
    parser.add_argument("--rows", type=int, default=3000, help="rows of a tick")
    asked = parser.parse_args()
    spark, settings = session(asked.memory)
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
        directory = Path(scratch)
        ours = Pipeline(directory / "ours", plan_of(PROGRAM), settings, spark)
        hands = {
            "by hand": ByHand(spark, directory / "hand"),
            "by hand, delta-rs": ByHandWithDeltaRs(spark, directory / "hand-rs"),
        }
        given = [batch(1, t, asked.rows) for t in range(asked.warm + asked.ticks)]
        found = Meter(spark, asked.seconds).alternate(
            {
                "ours": lambda t: ours.run_tick(t, given[t]),
                **{n: lambda t, h=hand: h.tick(t, given[t]) for n, hand in hands.items()},
            },
            range(len(given)),
            asked.warm,
        )
        for hand in hands.values():
            check_equal(ours, hand)
    rows = [
        {
            "tick": name,
            **runs.record(),
            "ours over it": found["ours"].seconds / runs.seconds,
            "ours over its cpu": found["ours"].cpu / runs.cpu,
            "goal": None if name == "ours" else GOAL,
        }
        for name, runs in found.items()
    ]
    ratios = [
        Ratio(f"our tick over a tick {name}", found["ours"].cpu / runs.cpu, GOAL)
        for name, runs in found.items()
        if name != "ours"
    ]
    report(f"a tick of {asked.rows} rows, medians in one warm process", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
