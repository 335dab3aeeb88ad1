"""The fixed part of a tick: what one of few rows costs, whatever is in it.

A filter and a sum, a join of eight tables, and the flights: a warm tick of each with a few hundred
rows, by the messages that Python sends to the JVM and by processor time: of Python, which commits,
and of the JVM by the threads that take it (of those that plan and answer Python, of tasks, of the
scheduler, of the compilers).
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.measure import Meter, Ratio, note, parser_of, plan_of, report, session
from benchmarks.messages import counted_messages
from hydro_core.spark.pipeline.pipeline import Pipeline

FLIGHTS = Path("assets/flights/flights.hydro")

FILTER_AND_SUM = """
lines = source(
    "orderkey long, quantity decimal(15,2), price decimal(15,2), "
    "discount decimal(15,2), shipped date"
)
lines
  -> filter(lambda r: r.shipped.year == 1994 and r.quantity < 24)
  -> with_columns(revenue=lambda r: r.price * r.discount)
  -> persist() -> aggregate(revenue=sum("revenue")) -> changes() -> revenue
"""

SIDES = range(1, 8)
EIGHT_WAY_JOIN = "\n".join(
    [
        f'orders = source("{", ".join(f"key{i} long" for i in SIDES)}, amount long")',
        *(f'side{i} = source("key{i} long, name{i} string")' for i in SIDES),
        "joined0 = orders -> persist()",
        *(
            f"known{i} = side{i} -> persist()\n"
            f'joined{i} = joined{i - 1} -> join(right=known{i}, on="key{i}")'
            for i in SIDES
        ),
        'totals_by_name = joined7 -> aggregate(by=["name2", "name5"], total=sum("amount"))',
        "totals_by_name -> delta() -> totals",
    ]
)

Batch = Mapping[str, pa.Table]

_THREADS = {
    "planning": ("Thread-",),
    "tasks": ("Executor task",),
    "scheduler": ("dag-scheduler", "dispatcher", "spark-listener", "task-result", "element-"),
    "compilers": ("C1 ", "C2 "),
}
"""The JVM's threads by what they do, by how their names begin; all others are the rest."""


def lines(tick: int, rows: int) -> Batch:
    """Lines of orders, most of which the filter leaves out."""
    rng = np.random.default_rng((1, tick))

    def money(most: int) -> pa.Array[Any]:
        found = [Decimal(int(n)).scaleb(-2) for n in rng.integers(100, most, rows)]
        return pa.array(found, pa.decimal128(15, 2))

    days = [date(1992, 1, 1) + timedelta(days=int(n)) for n in rng.integers(0, 2500, rows)]
    return {
        "lines": pa.table(
            {
                "orderkey": rng.integers(0, 1_000_000, rows),
                "quantity": money(5_000),
                "price": money(10_000_000),
                "discount": money(110),
                "shipped": days,
            }
        )
    }


def orders(tick: int, rows: int) -> Batch:
    """Orders with a key of each side, of which some are new in every tick."""
    rng, new = np.random.default_rng((2, tick)), max(rows // 20, 1)
    keys = np.arange(tick * new, (tick + 1) * new)
    names = [f"name {n % 7}" for n in keys]
    sides = {f"side{i}": pa.table({f"key{i}": keys, f"name{i}": names}) for i in SIDES}
    of = {f"key{i}": rng.integers(0, (tick + 1) * new, rows) for i in SIDES}
    return {"orders": pa.table({**of, "amount": rng.integers(1, 1_000, rows)}), **sides}


def flights(tick: int, rows: int) -> Batch:
    """A day of flights, the weather of its hours, and aircraft that are new."""
    rng, at = np.random.default_rng((3, tick)), datetime(2013, 1, 1) + timedelta(days=tick)
    hours = [at + timedelta(hours=int(h)) for h in rng.integers(5, 23, rows)]
    utc = pa.timestamp("us", tz="UTC")
    origins = ["EWR", "JFK", "LGA"]
    carriers, airports = ["UA", "DL", "AA", "B6"], [f"A{i:02}" for i in range(60)]
    tails = [f"N{n}" for n in rng.integers(0, 20 * (tick + 1), rows)]
    found = {
        "flights": pa.table(
            {
                "day": [at.date()] * rows,
                "carrier": rng.choice(carriers, rows),
                "flight": rng.integers(1, 6_000, rows),
                "tail_number": tails,
                "origin": rng.choice(origins, rows),
                "destination": rng.choice(airports, rows),
                "hour": pa.array(hours, utc),
                "scheduled_departure": pa.array(hours, utc),
                "departure_delay": rng.integers(-10, 120, rows),
                "arrival_delay": rng.integers(-10, 120, rows),
                "distance": rng.integers(90, 5_000, rows),
            }
        ),
        "weather": pa.table(
            {
                "origin": [origin for origin in origins for _ in range(24)],
                "hour": pa.array([at + timedelta(hours=h) for h in range(24)] * 3, utc),
                **{name: rng.random(72) for name in ("temperature", "wind_speed")},
                **{name: rng.random(72) for name in ("precipitation", "visibility")},
            }
        ),
        "planes": pa.table(
            {
                "tail_number": [f"N{n}" for n in range(20 * tick, 20 * tick + 20)],
                "year_built": [1990] * 20,
                "manufacturer": ["BOEING"] * 20,
                "model": ["737"] * 20,
                "seats": [140] * 20,
            }
        ),
    }
    if tick == 0:
        found["airlines"] = pa.table({"carrier": carriers, "name": carriers})
        found["airports"] = pa.table({"airport": airports, "name": airports})
    return found


def thread_seconds(process: int) -> Counter[str]:
    """The processor time of the JVM's threads so far, by what they do."""
    found: Counter[str] = Counter()
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            name = (task / "comm").read_text(encoding="utf-8")
            used = int((task / "schedstat").read_text(encoding="utf-8").split()[0])
        except OSError:  # the thread has ended
            continue
        doing = (what for what, names in _THREADS.items() if re.match("|".join(names), name))
        found[next(doing, "rest")] += used / 1e9  # type: ignore[assignment]
    return found


def run(
    meter: Meter, jvm: int, pipeline: Pipeline, given: Callable[[int], Batch], asked: Any
) -> dict[str, Any]:
    """The ticks of a program: a row of the table."""
    for tick in range(asked.warm):
        pipeline.run_tick(tick, given(tick))
    batches = {t: given(t) for t in range(asked.warm, asked.warm + asked.ticks)}
    usages, sent, python, before = [], [], os.times(), thread_seconds(jvm)
    for tick, rows in batches.items():
        with counted_messages() as messages:
            usages.append(meter.measure(lambda t=tick, rows=rows: pipeline.run_tick(t, rows)))
        sent.append(messages.sent)
        note(f"{tick}: {messages.sent} messages, cpu {usages[-1].cpu:.2f} s")
    own, after = os.times(), thread_seconds(jvm)
    used = own.user + own.system - python.user - python.system
    of_jvm = {f"jvm: {what}": (after[what] - before[what]) / asked.ticks for what in after}
    return {
        "messages": max(sent),
        "seconds": statistics.median(u.seconds for u in usages),
        "cpu_seconds": statistics.median(u.cpu for u in usages),
        "python": used / asked.ticks,
        **of_jvm,
    }


def main() -> int:
    """Runs the ticks."""
    parser = parser_of("fixed_part", __doc__)
    parser.add_argument("--warm", type=int, default=40, help="ticks that are not counted")
    parser.add_argument("--ticks", type=int, default=15, help="measured ticks")
    parser.add_argument("--rows", type=int, default=300, help="rows of a tick")
    asked = parser.parse_args()
    spark, settings = session(asked.memory)
    meter = Meter(spark, asked.seconds)
    programs = {
        "a filter and a sum": (FILTER_AND_SUM, lines, 0.3),
        "a join of eight tables": (EIGHT_WAY_JOIN, orders, 1.0),
        "the flights": (FLIGHTS.read_text(encoding="utf-8"), flights, None),
    }
    rows, ratios = [], []
    for name, (text, batch, goal) in programs.items():
        with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
            pipeline = Pipeline(Path(scratch), plan_of(text), settings, spark)
            found = run(meter, meter.jvm, pipeline, lambda t, b=batch: b(t, asked.rows), asked)
        rows.append({"a warm tick": name, **found})
        ratios.append(Ratio(f"{name}: messages to the JVM", found["messages"], 500))
        ratios.append(Ratio(f"{name}: seconds of processor time", found["cpu_seconds"], goal))
    report(f"a warm tick of {asked.rows} rows, medians; parts are means", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
