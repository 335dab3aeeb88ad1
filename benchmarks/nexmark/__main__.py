"""Nexmark: events a second of processor time, tick by tick.

Each query gets the same events in the same ticks, one after the other with a commit each, as a
pipeline runs. A second is one of processor time, of this process and its JVM together. The last
ticks are beside the first ones (a fifth of all, the very first tick left out): what a query
maintains by key costs the same. At the end the stored output is compared with DuckDB's answer over
all events. The standard's size is `--events 5000000 --ticks 100`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.judged import Ticks, answer, differences
from benchmarks.measure import Meter, Ratio, note, parser_of, plan_of, report, session
from benchmarks.nexmark.data import events
from benchmarks.nexmark.programs import NAMES, Judge, program, sql
from hydro_core.spark.pipeline.pipeline import Pipeline

GOAL = 1.3


def measure(name: str, ticks: Ticks, pipeline: Pipeline, meter: Meter) -> dict[str, Any]:
    """Runs all ticks of a query, and gives what they took."""
    sources = pipeline.plan.graph.sources
    used, count = [], 0
    for tick in range(ticks.count):
        given = ticks.batch(tick, sources)
        count += sum(rows.num_rows for rows in given.values())
        used.append(meter.measure(lambda t=tick, g=given: pipeline.run_tick(t, g)))
    fifth = max(len(used) // 5, 1)
    first, last = used[1 : 1 + fifth], used[-fifth:]
    cpu = sum(usage.cpu for usage in used)
    return {
        "query": name,
        "events": count,
        "cpu, s": cpu,
        "seconds": sum(usage.seconds for usage in used),
        "events / cpu s": count / cpu,
        "last ticks / first": sum(u.cpu for u in last) / sum(u.cpu for u in first),
    }


def main() -> int:
    """Measures the queries that are asked for."""
    parser = parser_of("nexmark", __doc__ or "")
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--ticks", type=int, default=10)
    parser.add_argument("--queries", nargs="*", default=list(NAMES), choices=list(NAMES))
    asked = parser.parse_args()
    spark, settings = session(asked.memory)
    ticks = events(asked.events, asked.ticks)
    rows = []
    with Judge(ticks) as judge:
        for name in asked.queries:
            with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
                pipeline = Pipeline(Path(scratch), plan_of(program(name)), settings, spark)
                rows.append(measure(name, ticks, pipeline, Meter(spark, asked.seconds)))
                wrong = differences(
                    answer(pipeline, ticks.count - 1), judge.rows(sql(name), ticks.count - 1)
                )
            if wrong:
                sys.exit(f"{name}: {wrong}")
            note(f"{name}: {rows[-1]}")
    ratios = [
        Ratio(f"{row['query']}: the last ticks over the first", row["last ticks / first"], GOAL)
        for row in rows
    ] + [Ratio(f"{r['query']}: events a second of cpu", r["events / cpu s"]) for r in rows]
    report(f"{asked.events} events of Nexmark in {asked.ticks} ticks", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
