"""A tick in 1, 2 and 4 shards beside the same tick unsharded, of two flows.

`totals` is a running aggregate over five million orders, which are there before anything is
measured. `flights` is the flow of the example, a day a tick, with the exchanges that it needs. All
pipelines run in turns in one session, the shards of one side by side: a ratio is what it costs to
cut the work on one machine. Every shard reads the batch and keeps its own rows of it; each has
tables of its own, and one row of the ledger makes the tick count. Beside them stand how much of
all state the largest shard holds, and how long the analysis takes that says what to route on.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

from assets.flights.landing import FIRST_DAY, land
from benchmarks.definitions import PROGRAM as FLIGHTS
from benchmarks.measure import Meter, Ratio, Runs, note, parser_of, plan_of, report, session
from hydro_core.compile import compile_text, planned
from hydro_core.shards.program import sharded
from hydro_core.shards.run import side_by_side
from hydro_core.spark.inputs.landing import InputBatches, LandingTable
from hydro_core.spark.pipeline.pipeline import Pipeline

TOTALS = """
orders = source("customer long, amount long")
orders -> persist() -> aggregate(by="customer", n=count(), spent=sum("amount")) -> totals
"""
WHOLE = "unsharded"
_BEFORE = 5
"""In so many ticks the orders come that are there before."""


@dataclass(frozen=True)
class Flow:
    """A program, and where the rows of its ticks have landed."""

    name: str
    program: str
    landings: Mapping[str, LandingTable]
    first: int
    """The ticks before this one run as one range."""
    counted: str
    """The output whose rows must be as many in all."""

    def run(self, pipeline: Pipeline, first: int, last: int) -> None:
        """Runs some ticks of a pipeline, as one range."""
        items = {name: of.item for name, of in compile_text(self.program).typed.inputs.items()}
        batches = InputBatches(self.landings, items, lambda: pipeline.spark)
        start, day = datetime(FIRST_DAY.year, 1, 1, tzinfo=UTC), timedelta(days=1)
        times = {t: (start + t * day, start + (t + 1) * day) for t in range(first, last + 1)}
        pipeline.run_range(first, last, batches.read(first, last, times), times=times)


def totals(asked: argparse.Namespace, landed: Path) -> Flow:
    """Many orders, and then some in each tick."""
    rng = np.random.default_rng(1)
    sizes = [asked.rows // _BEFORE] * _BEFORE + [asked.touched] * (asked.warm + asked.ticks)
    for tick, size in enumerate(sizes):
        customers = rng.integers(0, asked.keys, size)
        columns = {"customer": customers, "amount": np.ones(size, dtype=np.int64)}
        table = pa.table({"tick": np.full(size, tick, dtype=np.int64), **columns})
        write_deltalake(landed, table, mode="append")
    name = f"{asked.touched:,} orders after {asked.rows:,} of {asked.keys:,} customers"
    return Flow(name, TOTALS, {"orders": LandingTable(landed, "tick")}, _BEFORE, "totals")


def flights(asked: argparse.Namespace, landed: Path) -> Flow:
    """The days of 2013."""
    tables = land(landed, days=asked.days + asked.warm + asked.ticks).paths()
    text = FLIGHTS.read_text(encoding="utf-8")
    places = {name: LandingTable(path, "day") for name, path in tables.items()}
    return Flow(f"a day of flights after {asked.days}", text, places, asked.days, "departures")


FLOWS = {"totals": totals, "flights": flights}


def largest(pipeline: Pipeline) -> float:
    """What part of all state the shard with the most of it holds."""
    rows: dict[str, int] = {}
    for slot, spec in pipeline.state_tables.items():
        _, cut, shard = slot.rpartition(" of shard ")
        rows[shard if cut else ""] = rows.get(shard if cut else "", 0) + pipeline.store.row_count(
            spec.name
        )
    return max(rows.values()) / max(1, sum(rows.values()))


def rows_of(
    flow: Flow, found: Mapping[str, Runs], parts: Mapping[str, float], took: Mapping[str, float]
) -> Iterator[dict[str, str | float]]:
    """A row for each way to run a tick."""
    whole = found[WHOLE]
    for name, runs in found.items():
        yield {
            "flow": flow.name,
            "shards": name,
            "tick, s": runs.seconds,
            "cpu, s": runs.cpu,
            "time / unsharded": runs.seconds / whole.seconds,
            "cpu / unsharded": runs.cpu / whole.cpu,
            "largest shard": parts[name],
            "analysis, s": took[name],
        }


def measured(flow: Flow, asked: argparse.Namespace) -> list[dict[str, str | float]]:
    """The ticks of a flow in all ways."""
    spark, settings = session(asked.memory)
    program = compile_text(flow.program)
    plans, took = {WHOLE: plan_of(flow.program)}, {WHOLE: 0.0}
    for count in asked.shards:
        start = time.process_time()
        cut = sharded(program, count)
        took[str(count)] = time.process_time() - start
        note(cut.described)
        plans[str(count)] = planned(side_by_side(cut, "tick"))
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
        pipelines = {
            name: Pipeline(Path(scratch) / name, made, settings, spark)
            for name, made in plans.items()
        }
        for name, pipeline in pipelines.items():
            began = time.perf_counter()
            flow.run(pipeline, 0, flow.first - 1)
            note(f"{name}: what was before, in {time.perf_counter() - began:.0f} s")
        found = Meter(spark, asked.seconds).alternate(
            {n: lambda t, p=p: flow.run(p, t, t) for n, p in pipelines.items()},
            range(flow.first, flow.first + asked.warm + asked.ticks),
            asked.warm,
        )
        done = min(p.next_tick for p in pipelines.values())
        counted = {n: p.output(flow.counted).num_rows for n, p in pipelines.items()}
        parts = {name: largest(pipeline) for name, pipeline in pipelines.items()}
        if len(set(counted.values())) > 1 and done == max(p.next_tick for p in pipelines.values()):
            sys.exit(f"they gave different rows of `{flow.counted}`: {counted}")
    return list(rows_of(flow, found, parts, took))


def main() -> int:
    """Measures all, and says how the time of each is to that of the unsharded tick."""
    parser = parser_of("shards", __doc__)
    parser.add_argument("--flows", nargs="*", choices=FLOWS, default=list(FLOWS))
    parser.add_argument("--rows", type=int, default=5_000_000, help="orders that are there before")
    parser.add_argument("--keys", type=int, default=500_000, help="customers who order")
    parser.add_argument("--touched", type=int, default=10_000, help="orders of a tick")
    parser.add_argument("--days", type=int, default=30, help="days of `flights` before")
    parser.add_argument("--shards", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--ticks", type=int, default=5, help="measured ticks")
    parser.add_argument("--warm", type=int, default=2, help="ticks before these")
    asked = parser.parse_args()
    rows: list[dict[str, str | float]] = []
    for name in asked.flows:
        with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as landed:
            rows += measured(FLOWS[name](asked, Path(landed) / "landed"), asked)
    ratios = [
        Ratio(f"{row['flow']}, in {row['shards']} shards over unsharded, {what}", row[of])
        for row in rows
        if row["shards"] != WHOLE
        for what, of in (("time", "time / unsharded"), ("processor time", "cpu / unsharded"))
    ]
    report("a tick in shards", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
