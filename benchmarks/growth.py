"""Does a tick get slower with the number of ticks before it? Tick 1,000 beside tick 10.

Every program gets equal batches at every tick. Two pipelines of it run in turns in one session: one
around its tenth tick, and one around its thousandth. The latter comes there by ranges of 45
ticks and, for the programs of `--single-cases`, by some hundred single ticks after these, each with
a commit and files of its own. A program of which a part runs tick by tick in ranges too has a late
tick of its own, since each of its ticks takes a second.

Batches are equal; the state is what a program must remember, and grows as that grows. Paying users
come from a bounded set, customers, messages and visits are new in every tick.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.measure import Meter, Ratio, note, parser_of, plan_of, report, session
from benchmarks.tick import new_customers
from hydro_core.settings import Settings
from hydro_core.spark.inputs.batches import batch_of
from hydro_core.spark.pipeline.pipeline import Pipeline

GOAL = 1.2
RANGE = 45
RANGE_BY_TICKS = 10
"""Where a part of a plan runs tick by tick, a range costs nearly what its ticks cost."""
CHAT = Path("assets/chat/chat.hydro")

Tables = Mapping[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Case:
    """A program, and its batches by the number of the tick and the rows of a tick."""

    program: str
    batch: Callable[[int, int], Tables]


def chat(tick: int, rows: int) -> Tables:
    """All members join at tick 0, then messages come: `notify` gets members times messages."""
    members = [f"member {i}" for i in range(10)] if tick == 0 else []
    messages = {
        "user": [f"member {i % 10}" for i in range(rows // 10)],
        "text": [f"message {i} of {tick}" for i in range(rows // 10)],
    }
    return {
        "add_member": pa.table({"user": pa.array(members, pa.string())}),
        "messages": pa.table(messages),
    }


def joined(tick: int, rows: int) -> Tables:
    """Orders of customers that are known, a tenth as many customers that are new."""
    rng, new = np.random.default_rng(tick), rows // 10
    known = (tick + 1) * new
    return {
        "customers": new_customers(tick, new),
        "orders": pa.table(
            {"customer": rng.integers(0, known, rows), "amount": rng.integers(1, 1000, rows)}
        ),
    }


def paid(tick: int, rows: int) -> Tables:
    """Payments of some of the users."""
    rng = np.random.default_rng(tick)
    return {
        "payments": pa.table(
            {"user": rng.integers(0, 5 * rows, rows), "amount": rng.integers(1, 1000, rows)}
        )
    }


def visited(tick: int, rows: int) -> Tables:
    """Pairs of which most were there before: nine of ten of an old set, the others are new."""
    rng, new = np.random.default_rng(tick), rows // 10
    users = np.concatenate([rng.integers(0, rows, rows - new), np.arange(new) + (tick + 1) * rows])
    pages = ["page 0"] * rows
    return {"visits": pa.table({"user": users, "page": pages})}


CASES = {
    "chat": Case(
        'add_member = source("user string")\nmessages = source("user string, text string")\n'
        + CHAT.read_text(encoding="utf-8"),
        chat,
    ),
    "keyed join": Case(
        'orders = source("customer long, amount long")\n'
        'customers = source("customer long, city string")\n'
        "known = customers -> persist()\n"
        'orders -> join(right=known, on="customer") -> enriched',
        joined,
    ),
    "running aggregates": Case(
        'payments = source("user long, amount long")\n'
        "payments -> persist()\n"
        '  -> aggregate(by="user", n=count(), total=sum("amount"), largest=max("amount"))\n'
        "  -> delta() -> totals",
        paid,
    ),
    "distinct": Case(
        'visits = source("user long, page string")\n'
        "visits -> persist() -> unique() -> delta() -> new",
        visited,
    ),
}


class Grown:
    """A pipeline of a case and the ticks that it has run."""

    def __init__(
        self, case: Case, directory: Path, rows: int, spark: SparkSession, settings: Settings
    ) -> None:
        self.case, self.rows = case, rows
        self.plan = plan_of(case.program)
        self.pipeline = Pipeline(directory, self.plan, settings, spark)
        self.next = 0

    def tick(self) -> None:
        """Runs one tick."""
        self.pipeline.run_tick(self.next, self.case.batch(self.next, self.rows))
        self.next += 1

    def to(self, tick: int) -> None:
        """Runs ranges until `tick` is next."""
        longest = RANGE_BY_TICKS if self.plan.notes else RANGE
        while self.next < tick:
            first, last = self.next, min(self.next + longest, tick) - 1
            batches = [self.case.batch(t, self.rows) for t in range(first, last + 1)]
            rows = {name: pa.concat_tables([b[name] for b in batches]) for name in batches[0]}
            ticks = {
                name: np.repeat(np.arange(first, last + 1), [b[name].num_rows for b in batches])
                for name in rows
            }
            graph = self.plan.graph
            items = {n: self.plan.typed.inputs[n].item for n in graph.sources}
            self.pipeline.run_range(
                first,
                last,
                {n: batch_of(n, rows[n], items[n], pa.array(ticks[n])) for n in rows},
            )
            self.next = last + 1

    @property
    def files(self) -> int:
        """The data files of all tables."""
        return sum(len(table.files()) for table in self.pipeline.store.tables.values())


def compared(
    name: str, early: Grown, late: Grown, asked: argparse.Namespace, meter: Meter
) -> dict[str, Any]:
    """A tick of each, in turns, when the late one is where it is to be."""
    started = time.perf_counter()
    at = asked.late_by_ticks if late.plan.notes else asked.late
    begin = at - asked.warm
    late.to(begin - (asked.singly if name in asked.single_cases else 0))
    while late.next < begin:
        late.tick()
    seconds = time.perf_counter() - started
    note(f"{name}: at tick {late.next} after {seconds:.0f} s, {late.files} files")
    found = meter.alternate(
        {"early": lambda _: early.tick(), "late": lambda _: late.tick()},
        range(asked.warm + asked.ticks),
        asked.warm,
    )
    last = late.pipeline.ledger.last
    return {
        "late tick": at,
        "commits": 0 if last is None else last.sequence + 1,
        "files": late.files,
        "early, s": found["early"].seconds,
        "late, s": found["late"].seconds,
        "ratio": found["late"].seconds / found["early"].seconds,
        "ratio of cpu": found["late"].cpu / found["early"].cpu,
        "goal": GOAL,
        **found["late"].memory(),
    }


def main() -> int:
    """Runs the cases that are asked for."""
    parser = parser_of("growth", __doc__)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--rows", type=int, default=1000, help="rows of a tick (messages: a tenth)")
    parser.add_argument("--late", type=int, default=1000, help="the late tick")
    parser.add_argument(
        "--late-by-ticks", type=int, default=100, help="the late tick where ranges run tick by tick"
    )
    parser.add_argument("--singly", type=int, default=300, help="single ticks before the late one")
    parser.add_argument("--single-cases", nargs="*", default=["keyed join"])
    parser.add_argument("--ticks", type=int, default=15, help="measured ticks of each")
    parser.add_argument("--warm", type=int, default=8, help="ticks before these, of the early one")
    asked = parser.parse_args()
    spark, settings = session(asked.memory)
    rows = []
    for name in asked.cases:
        with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
            early, late = (
                Grown(CASES[name], Path(scratch) / side, asked.rows, spark, settings)
                for side in ("early", "late")
            )
            rows.append(
                {"program": name, **compared(name, early, late, asked, Meter(spark, asked.seconds))}
            )
    ratios = [
        Ratio(f"{r['program']}: a late tick over tick 10", r["ratio of cpu"], GOAL) for r in rows
    ]
    report("a tick with few and with many ticks before it", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
