"""The load of TPC-H: all rows of a scale factor as one tick, beside PySpark by hand.

Both read the rows from the same Parquet files, as a flow reads what landed. By hand the query is
computed, and the state that a tick needs and the output are written as Delta tables, as plainly as
can be: a table by a query. They take turns in one warm process.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.judged import Ticks
from benchmarks.measure import Meter, Ratio, parser_of, plan_of, report, session
from benchmarks.tpch.data import KEYS, as_ticks, made, newest
from benchmarks.tpch.programs import program, sql
from hydro_core.settings import Settings
from hydro_core.spark.pipeline.pipeline import Pipeline

STATE = {
    "q03": (
        "SELECT c_custkey, c_version FROM customer WHERE c_mktsegment = 'BUILDING'",
        """SELECT o_orderkey, o_custkey, o_orderdate, o_shippriority FROM orders
           WHERE o_orderdate < DATE '1995-03-15'""",
        """SELECT l_orderkey, l_extendedprice, l_discount FROM lineitem
           WHERE l_shipdate > DATE '1995-03-15'""",
    ),
    "q05": (
        "SELECT c_custkey, c_nationkey, c_version FROM customer",
        "SELECT s_suppkey, s_nationkey, s_version FROM supplier",
        "SELECT n_nationkey, n_name, n_regionkey, n_version FROM nation",
        "SELECT r_regionkey, r_name, r_version FROM region",
        """SELECT o_orderkey, o_custkey FROM orders
           WHERE o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'""",
        "SELECT l_orderkey, l_suppkey, l_extendedprice, l_discount FROM lineitem",
    ),
    "q06": (),
    "q09": (
        "SELECT p_partkey, p_name, p_version FROM part",
        "SELECT s_suppkey, s_nationkey, s_version FROM supplier",
        "SELECT ps_partkey, ps_suppkey, ps_supplycost, ps_version FROM partsupp",
        "SELECT o_orderkey, o_orderdate FROM orders",
        "SELECT n_nationkey, n_name, n_version FROM nation",
        """SELECT l_orderkey, l_partkey, l_suppkey, l_quantity, l_extendedprice, l_discount
           FROM lineitem""",
    ),
    "q13": (
        "SELECT c_custkey, c_version FROM customer",
        """SELECT o_orderkey, o_custkey FROM orders
           WHERE o_comment NOT LIKE '%special%requests%'""",
        """SELECT c_custkey, count(o_orderkey) AS c_count FROM customer
           LEFT JOIN orders ON o_custkey = c_custkey AND o_comment NOT LIKE '%special%requests%'
           GROUP BY c_custkey""",
    ),
    "q17": (
        "SELECT l_partkey, l_quantity, l_extendedprice FROM lineitem",
        "SELECT p_partkey, p_brand, p_container, p_version FROM part",
        """SELECT l_partkey, sum(l_quantity) AS total, count(l_quantity) AS lines
           FROM lineitem GROUP BY l_partkey""",
    ),
    "q18": (
        "SELECT o_orderkey, o_custkey, o_orderdate, o_totalprice FROM orders",
        "SELECT c_custkey, c_name, c_version FROM customer",
        "SELECT l_orderkey, l_quantity FROM lineitem",
        "SELECT l_orderkey, sum(l_quantity) AS quantity FROM lineitem GROUP BY l_orderkey",
    ),
}
"""What a tick needs of history beside the result, which is stored as state and as output."""
GOAL = 2.0
WARM = 2


class ByHand:
    """A query in PySpark, with what it stores."""

    def __init__(self, spark: SparkSession, directory: Path, ticks: Ticks) -> None:
        self._spark, self._directory = spark.newSession(), directory
        for name, table in ticks.tables.items():
            path = str(directory / f"{name}.parquet")
            pq.write_table(table, path, row_group_size=1 << 17)
            self._spark.read.parquet(path).createOrReplaceTempView(f"all_{name}")
            text = newest(name, f"all_{name}") if name in KEYS else f"SELECT * FROM all_{name}"
            self._spark.sql(text).createOrReplaceTempView(name)

    def load(self, name: str, _round: int) -> None:
        """Reads, computes and writes all, once."""
        place = self._directory / "tables"
        texts: Sequence[str] = (*STATE[name], sql(name), sql(name))
        for number, text in enumerate(texts):
            self._spark.sql(text).write.format("delta").save(str(place / str(number)))
        shutil.rmtree(place)


def load(
    directory: Path, name: str, files: Path, settings: Settings, spark: SparkSession, _round: int
) -> None:
    """Runs all rows of the files as the first tick of a pipeline, once."""
    pipeline = Pipeline(directory, plan_of(program(name)), settings, spark)
    read = pipeline.spark.read
    sources = pipeline.plan.graph.sources
    given = {n: read.parquet(str(files / f"{n}.parquet")).drop("tick") for n in sources}
    pipeline.run_tick(0, given)
    shutil.rmtree(directory)


def main() -> int:
    """Measures the queries that are asked for."""
    parser = parser_of("tpch.load", __doc__ or "")
    parser.add_argument("--scale", type=float, default=0.1, help="TPC-H's scale factor")
    parser.add_argument("--queries", nargs="*", default=list(STATE), choices=list(STATE))
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count")
    asked = parser.parse_args()
    spark, settings = session(asked.memory)
    meter = Meter(spark, asked.seconds)
    rows, ratios = [], []
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
        place = Path(scratch)
        ticks = as_ticks(made(asked.scale, place / "tables"), np.ones(1), {})
        (place / "files").mkdir()
        by_hand = ByHand(spark, place / "files", ticks)
        for name in asked.queries:
            variants: dict[str, Callable[[int], object]] = {
                "ours": partial(load, place / "ours", name, place / "files", settings, spark),
                "by hand": partial(by_hand.load, name),
            }
            found = meter.alternate(variants, range(WARM + asked.rounds), WARM)
            ours, hand = found["ours"], found["by hand"]
            rows.append({"query": name, "ours, cpu s": ours.cpu, "by hand, cpu s": hand.cpu})
            what = f"{name}: the load over PySpark's by hand"
            ratios.append(Ratio(what, ours.cpu / hand.cpu, GOAL))
    report(f"TPC-H at scale factor {asked.scale} as one tick", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
