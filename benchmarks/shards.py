"""A tick of a running aggregate in 1, 2 and 4 shards beside the same tick unsharded.

All pipelines run in turns in one session, the shards of one side by side: a ratio is what it costs
to cut the work on one machine. Every shard reads the batch and keeps its own rows of it; each has
tables of its own, and one row of the ledger makes the tick count. Beside them stand the key's rows
that the largest shard holds, and how long the analysis takes that says what to route on.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measure import Meter, Ratio, note, parser_of, plan_of, report, session
from hydro_core.compile import compile_text, planned
from hydro_core.shards.program import sharded
from hydro_core.shards.run import side_by_side
from hydro_core.spark.pipeline import Pipeline

PROGRAM = """
orders = source("customer long, amount long")
orders -> persist() -> aggregate(by="customer", n=count(), spent=sum("amount")) -> totals
"""
WHOLE = "unsharded"


def orders(customers: np.ndarray) -> dict[str, pa.Table]:
    """An order of each customer."""
    amounts = np.ones(len(customers), dtype=np.int64)
    return {"orders": pa.table({"customer": customers, "amount": amounts})}


def main() -> int:
    """Measures all, and says how the time of each is to that of the unsharded tick."""
    parser = parser_of("shards", __doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--touched", type=int, default=50_000, help="keys that a tick touches")
    parser.add_argument("--shards", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--ticks", type=int, default=7, help="measured ticks")
    parser.add_argument("--warm", type=int, default=2, help="ticks before these")
    asked = parser.parse_args()
    spark, settings = session(asked.memory)
    program, rng = compile_text(PROGRAM), np.random.default_rng(1)
    plans, analysis = {WHOLE: plan_of(PROGRAM)}, {WHOLE: 0.0}
    for count in asked.shards:
        start = time.process_time()
        cut = sharded(program, count)
        analysis[str(count)] = time.process_time() - start
        plans[str(count)] = planned(side_by_side(cut, "tick"))
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
        pipelines = {
            name: Pipeline(Path(scratch) / name, found, settings, spark)
            for name, found in plans.items()
        }

        def tick(name: str, number: int, customers: np.ndarray) -> None:
            pipelines[name].run_tick(number, orders(customers))

        for name in pipelines:
            tick(name, 0, np.arange(asked.keys))
            note(f"{name}: {asked.keys} keys are there")
        touched = [
            rng.choice(asked.keys, asked.touched, replace=False)
            for _ in range(asked.warm + asked.ticks + 1)
        ]
        found = Meter(spark, asked.seconds).alternate(
            {name: lambda n, name=name: tick(name, n, touched[n]) for name in pipelines},
            range(1, asked.warm + asked.ticks + 1),
            asked.warm,
        )
        counted = {
            name: sum(pipeline.output("totals")["n"].to_pylist())
            for name, pipeline in pipelines.items()
        }
        largest = {
            name: max(
                map(pipeline.store.row_count, (s.name for s in pipeline.state_tables.values()))
            )
            for name, pipeline in pipelines.items()
        }
    if (
        len({count for name, count in counted.items() if len(found[name].usages) == asked.ticks})
        > 1
    ):
        sys.exit(f"they counted different orders: {counted}")
    whole = found[WHOLE]
    rows = [
        {
            "shards": name,
            "tick, s": runs.seconds,
            "cpu, s": runs.cpu,
            "time / unsharded": runs.seconds / whole.seconds,
            "cpu / unsharded": runs.cpu / whole.cpu,
            "largest shard": largest[name] / asked.keys,
            "analysis, s": analysis[name],
        }
        for name, runs in found.items()
    ]
    ratios = [
        Ratio(
            f"a tick in {row['shards']} shards over one unsharded", float(row["time / unsharded"])
        )
        for row in rows[1:]
    ]
    report(f"a tick that touches {asked.touched} of {asked.keys} keys", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
