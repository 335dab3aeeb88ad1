"""A tick that touches 1,000 keys of a running aggregate: of few keys beside many.

Both pipelines run in turns in one session. Tick 0 brings every key once; ticks that are measured
bring a row for each of some random keys, store what changes in the state and in the output, and
commit. So the many keys should cost nothing but a longer look at the log.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measure import Meter, Ratio, note, parser_of, plan_of, report, session
from hydro_core.spark.pipeline.pipeline import Pipeline

GOAL = 1.2

PROGRAM = """
orders = source("customer long, amount long")
orders -> persist() -> aggregate(by="customer", n=count(), spent=sum("amount")) -> totals
"""


def orders(customers: np.ndarray) -> dict[str, pa.Table]:
    """An order of each customer."""
    amounts = np.ones(len(customers), dtype=np.int64)
    return {"orders": pa.table({"customer": customers, "amount": amounts})}


def main() -> int:
    """Measures both, and says how the time of many keys is to that of few."""
    parser = parser_of("keyed_tick", __doc__)
    parser.add_argument("--keys", type=int, nargs="*", default=[10_000, 1_000_000])
    parser.add_argument("--touched", type=int, default=1000, help="keys that a tick touches")
    parser.add_argument("--ticks", type=int, default=10, help="measured ticks")
    parser.add_argument("--warm", type=int, default=2, help="ticks before these")
    asked = parser.parse_args()
    spark, settings = session(asked.memory)
    rng, plan = np.random.default_rng(1), plan_of(PROGRAM)
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
        pipelines = {}
        for keys in asked.keys:
            pipelines[keys] = Pipeline(Path(scratch) / str(keys), plan, settings, spark)
            pipelines[keys].run_tick(0, orders(np.arange(keys)))
            note(f"{keys} keys are there")

        def tick(keys: int, number: int) -> object:
            touched = rng.choice(keys, asked.touched, replace=False)
            return pipelines[keys].run_tick(number, orders(touched))

        found = Meter(spark, asked.seconds).alternate(
            {str(k): lambda number, k=k: tick(k, number) for k in asked.keys},
            range(1, asked.warm + asked.ticks + 1),
            asked.warm,
        )
        total = sum(pipelines[asked.keys[0]].output("totals")["n"].to_pylist())
    ticks = asked.keys[0] + asked.touched * len(found[str(asked.keys[0])].usages)
    if total < ticks:
        sys.exit(f"{total} orders were counted, there were at least {ticks}")
    first = found[str(asked.keys[0])]
    rows = [
        {
            "keys": int(keys),
            "tick, s": runs.seconds,
            "cpu, s": runs.cpu,
            "time / few": runs.seconds / first.seconds,
            "cpu / few": runs.cpu / first.cpu,
        }
        for keys, runs in found.items()
    ]
    few, *more = rows
    ratios = [
        Ratio(f"a tick of {r['keys']} keys over one of {few['keys']}", float(r["cpu / few"]), GOAL)
        for r in more
    ]
    report(f"a tick that touches {asked.touched} keys, medians", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
