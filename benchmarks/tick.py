"""One small tick: ours beside a script that an expert would write in PySpark and Delta.

Both get the same batches, keep the same state and write the same outputs, in turn and in one warm
session, so whatever else the machine does hits both. The script reads what it has stored, writes
its four tables at once, and then a row to its log of ticks, as one must to go on after a crash; it
checks nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hydro_core.analysis.infer import infer
from hydro_core.analysis.strata import stratify
from hydro_core.lang.resolve import parse
from hydro_core.plan.planner import plan
from hydro_core.settings import Settings
from hydro_core.spark.pipeline import Pipeline
from hydro_core.spark.session import shared_session

PROGRAM = """
orders    = source("customer long, amount long, product string")
customers = source("customer long, city string")

# A keyed join with history, and running aggregates.
known = customers -> persist()
orders -> join(right=known, on="customer") -> enriched
orders -> persist() -> aggregate(by="product", n=count(), spent=sum("amount")) -> totals
"""

GOAL = 2.0

Batch = dict[str, pa.Table]


def batch(rng: np.random.Generator, tick: int, rows: int) -> Batch:
    """A tick's orders, and some customers that are new in it."""
    new = rows // 10
    known = (tick + 1) * new
    return {
        "customers": pa.table(
            {
                "customer": np.arange(known - new, known),
                "city": [f"city {i % 50}" for i in range(new)],
            }
        ),
        "orders": pa.table(
            {
                "customer": rng.integers(0, known, rows),
                "amount": rng.integers(1, 1000, rows),
                "product": [f"product {i}" for i in rng.integers(0, 200, rows)],
            }
        ),
    }


class ByHand:
    """The script: one method, as it would stand in a notebook that became a job."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark = spark
        self.path = lambda name: str(directory / name)

    def append(self, rows: DataFrame, name: str) -> None:
        rows.write.format("delta").mode("append").save(self.path(name))

    def read(self, name: str) -> DataFrame:
        return self.spark.read.format("delta").load(self.path(name))

    def tick(self, t: int, given: Batch) -> None:
        stamp = F.lit(t).cast("long").alias("tick")
        orders = self.spark.createDataFrame(given["orders"]).select(stamp, "*")
        customers = self.spark.createDataFrame(given["customers"]).select(stamp, "*")
        known, history = customers, orders
        if t > 0:
            known = known.union(self.read("customers").where(F.col("tick") < t))
            history = history.union(self.read("orders").where(F.col("tick") < t))
        enriched = orders.join(known.drop("tick"), "customer")
        totals = history.groupBy("product").agg(
            F.count("*").alias("n"), F.sum("amount").alias("spent")
        )
        tables = {
            "customers": customers,
            "orders": orders,
            "enriched": enriched,
            "totals": totals.select(stamp, "*"),
        }
        with ThreadPoolExecutor(len(tables)) as pool:
            list(pool.map(lambda name: self.append(tables[name], name), tables))
        done = self.spark.createDataFrame([(t, datetime.now(UTC))], "tick long, at timestamp")
        self.append(done, "log")


def timed(run: Callable[[], object]) -> float:
    before = time.perf_counter()
    run()
    return time.perf_counter() - before


def check_equal(ours: Pipeline, hand: ByHand) -> None:
    """A benchmark of two things that do not do the same says nothing."""
    for name in ("enriched", "totals"):
        a = ours.output_frame(name).drop("tick")
        last = ours.last_committed
        b = hand.read(name).where(F.col("tick") == last).select(*a.columns)
        if a.exceptAll(b).count() or b.exceptAll(a).count():
            sys.exit(f"the two scripts differ in `{name}` at tick {last}")


def measure(ticks: int, warm: int, rows: int, directory: Path) -> dict[str, float]:
    settings = Settings().with_(master="local[2]")
    spark = shared_session(settings.spark)
    typed = infer(parse(PROGRAM))
    ours = Pipeline(directory / "ours", plan(typed, stratify(typed)), settings, spark)
    hand = ByHand(spark, directory / "hand")
    rng = np.random.default_rng(1)
    times: dict[str, list[float]] = {"ours": [], "hand": []}
    for t in range(warm + ticks):
        given = batch(rng, t, rows)
        runs: dict[str, Callable[[], object]] = {
            "ours": lambda t=t, given=given: ours.run_tick(t, given),
            "hand": lambda t=t, given=given: hand.tick(t, given),
        }
        # In turns, so that neither always finds the caches that the other has left.
        for name in list(runs) if t % 2 else reversed(runs):
            times[name].append(timed(runs[name]))
        last = ", ".join(f"{name} {seconds[-1]:.2f} s" for name, seconds in times.items())
        sys.stderr.write(f"tick {t}: {last}\n")
    check_equal(ours, hand)
    found = {name: statistics.median(seconds[warm:]) for name, seconds in times.items()}
    return {**found, "ratio": found["ours"] / found["hand"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ticks", type=int, default=20, help="measured ticks")
    parser.add_argument("--warm", type=int, default=15, help="ticks before these")
    parser.add_argument("--rows", type=int, default=3000, help="rows of a tick")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/tick.json"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
        found = measure(asked.ticks, asked.warm, asked.rows, Path(scratch))
    print(f"a tick of {asked.rows} rows, median of {asked.ticks}, in one warm session")
    print(f"  ours                        {found['ours'] * 1000:8.0f} ms")
    print(f"  by hand (PySpark and Delta) {found['hand'] * 1000:8.0f} ms")
    print(f"  ratio                       {found['ratio']:8.2f}    (goal: at most {GOAL})")
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps({**found, "rows": asked.rows, "goal": GOAL}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
