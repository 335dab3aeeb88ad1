"""A tick in 1, 2 and 4 shards beside the same tick unsharded, of two flows.

`totals` is a running aggregate with five million keys of state, of which a tick touches some; all
of them are there before anything is measured. `flights` is the flow of the example, a day a tick,
with the exchanges that it needs. All pipelines run in turns in one session, the shards of one side
by side: a ratio is what it costs to cut the work on one machine. Every shard reads the batch and
keeps its own rows of it; each has tables of its own, and one row of the ledger makes the tick
count. Beside them stand how much of all state the largest shard holds, and how long the analysis
takes that says what to route on.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assets.flights.landing import FIRST_DAY, raw_tables
from benchmarks.definitions import PROGRAM as FLIGHTS
from benchmarks.measure import Meter, Ratio, Runs, note, parser_of, plan_of, report, session
from hydro_core.compile import compile_text, planned
from hydro_core.shards.program import sharded
from hydro_core.shards.run import side_by_side
from hydro_core.spark.pipeline import Pipeline

TOTALS = """
orders = source("customer long, amount long")
orders -> persist() -> aggregate(by="customer", n=count(), spent=sum("amount")) -> totals
"""
WHOLE = "unsharded"
_AT_ONCE = 1_000_000
"""So many keys come in each of the first ticks."""

Batch = Mapping[str, pa.Table]


@dataclass(frozen=True)
class Flow:
    """A program, and what comes in at each of its ticks: the first ones only make its state."""

    name: str
    program: str
    first: int
    batch: Callable[[int], Batch]
    counted: str
    """The output whose rows must be as many in all."""


def orders(customers: np.ndarray) -> Batch:
    """An order of each customer."""
    amounts = np.ones(len(customers), dtype=np.int64)
    return {"orders": pa.table({"customer": customers, "amount": amounts})}


def totals(asked: argparse.Namespace) -> Flow:
    """All customers, and then some of them."""
    first = -(-asked.keys // _AT_ONCE)

    def batch(tick: int) -> Batch:
        if tick < first:
            low = tick * _AT_ONCE
            return orders(np.arange(low, min(asked.keys, low + _AT_ONCE)))
        rng = np.random.default_rng((1, tick))
        return orders(rng.choice(asked.keys, asked.touched, replace=False))

    name = f"a tick that touches {asked.touched:,} of {asked.keys:,} keys"
    return Flow(name, TOTALS, first, batch, "totals")


def flights(asked: argparse.Namespace) -> Flow:
    """The days of 2013."""
    tables = raw_tables()

    def batch(tick: int) -> Batch:
        day = pa.scalar(FIRST_DAY + dt.timedelta(days=tick))
        return {name: rows.filter(pc.equal(rows["day"], day)) for name, rows in tables.items()}

    text = FLIGHTS.read_text(encoding="utf-8")
    inputs = compile_text(text).typed.inputs

    def narrowed(tick: int) -> Batch:
        given = batch(tick)
        return {name: given[name].select(list(of.item.names)) for name, of in inputs.items()}

    return Flow(f"a day of flights after {asked.days}", text, asked.days, narrowed, "departures")


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
            for tick in range(flow.first):
                pipeline.run_tick(tick, flow.batch(tick))
            note(f"{name}: {flow.first} ticks before, {time.perf_counter() - began:.0f} s")
        last = flow.first + asked.warm + asked.ticks
        found = Meter(spark, asked.seconds).alternate(
            {n: lambda t, p=p: p.run_tick(t, flow.batch(t)) for n, p in pipelines.items()},
            range(flow.first, last),
            asked.warm,
        )
        counted = {n: len(p.output(flow.counted)) for n, p in pipelines.items()}
        parts = {name: largest(pipeline) for name, pipeline in pipelines.items()}
    if len(set(counted.values())) > 1:
        sys.exit(f"they gave different rows of `{flow.counted}`: {counted}")
    return list(rows_of(flow, found, parts, took))


def main() -> int:
    """Measures all, and says how the time of each is to that of the unsharded tick."""
    parser = parser_of("shards", __doc__)
    parser.add_argument("--flows", nargs="*", choices=FLOWS, default=list(FLOWS))
    parser.add_argument("--keys", type=int, default=5_000_000, help="keys of `totals`")
    parser.add_argument("--touched", type=int, default=10_000, help="keys that a tick touches")
    parser.add_argument("--days", type=int, default=3, help="days of `flights` before")
    parser.add_argument("--shards", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--ticks", type=int, default=5, help="measured ticks")
    parser.add_argument("--warm", type=int, default=2, help="ticks before these")
    asked = parser.parse_args()
    rows = [row for name in asked.flows for row in measured(FLOWS[name](asked), asked)]
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
