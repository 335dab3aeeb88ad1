"""Every benchmark, one after the other, each in a process of its own: what `make bench` runs.

| | what it compares |
|---|---|
| `tick` | a small tick with scripts by hand in PySpark and Delta |
| `fixed_part` | messages to the JVM and processor time of small ticks with their goals |
| `growth` | tick 1,000 with tick 10 of four programs |
| `flights_day` | a warm day of the flights with a script by hand |
| `year` | 365 ticks as one range with a batch query by hand, single ticks, and the last 30 alone |
| `definitions` | loading 1, 20 and 50 deployed flows with a second |
| `deployments` | changes of a program after a year: `plan`, three ways to deploy, a correction |
| `functions` | functions as columns with Arrow UDFs and plain Python UDFs |
| `keyed_state` | a log of changes with MERGE, for running state by key |
| `key_buckets` | 1,000 keys read of a state of ten million, by hash bucket, sorted, or neither |
| `keyed_tick` | a tick of a running aggregate of a million keys with one of ten thousand |
| `exchanges` | a join and an aggregate, routed once, with the same routed by each operator |
| `incremental` | rows that a tick reads after 10, 100 and 1,000 ticks, written and optimized |
| `scale` | twenty million rows of history within the default memory |
| `launched` | from the launch of a run to its tick: the default launcher, multiprocess, `dev` |
| `idle` | processor time and memory of the services of 2 and 50 flows with nothing due |
| `sample` | the check of a sample of keys with the tick of the flights that it judges |
| `costs` | what a row takes that is read, made, stored, searched, with the cost model |
| `optimizer` | time and memory of optimizing, from small programs to large ones |
| `tpch` | a late tick of TPC-H's queries with an early one, with PySpark and DuckDB over all rows |
| `tpch.load` | all rows of TPC-H as one tick with PySpark that writes the same by hand |
| `cluster` | large ticks on two workers with embedded Spark, and the memory of their driver |
| `object_store` | requests of a tick for a landing in a bucket after 10 and 1,000 files |
| `store_ticks` | requests and bytes of a tick's tables in a bucket after 10 and 1,000 ticks |
| `flights_on_a_store` | a day of the flights with all in a bucket, over one in a directory |
| `ordered` | a late tick of running sums, ranks, sessions, top n with an early one, and by hand |
| `nexmark` | events a second of processor time of Nexmark's queries |
| `closure` | the closure of a growing graph by rules with DuckDB from scratch; schedules a second |

`python -m benchmarks.NAME --help` tells the sizes of each. All but `scale` write their rows,
sizes and ratios as JSON to `--out`; at the end this prints the ratios of all in one table.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.measure import RESULTS, as_table

BENCHMARKS = (
    "tick",
    "fixed_part",
    "growth",
    "flights_day",
    "year",
    "definitions",
    "deployments",
    "functions",
    "keyed_state",
    "key_buckets",
    "keyed_tick",
    "exchanges",
    "incremental",
    "scale",
    "launched",
    "idle",
    "sample",
    "costs",
    "optimizer",
    "tpch",
    "tpch.load",
    "cluster",
    "object_store",
    "store_ticks",
    "flights_on_a_store",
    "ordered",
    "nexmark",
    "closure",
)


def main() -> int:
    """Runs them; gives 1 if one of them could not be run."""
    there = [name for name in BENCHMARKS if importlib.util.find_spec(f"benchmarks.{name}")]
    parser = argparse.ArgumentParser(description="Runs the benchmarks.")
    parser.add_argument("names", nargs="*", default=there, metavar="NAME", help=", ".join(there))
    asked = parser.parse_args()
    failed, rows = 0, []
    for name in asked.names:
        print(f"== {name}", flush=True)
        file = Path(RESULTS) / f"{name}.json"
        file.unlink(missing_ok=True)
        command = [sys.executable, "-m", f"benchmarks.{name}"]
        failed |= subprocess.run(command, check=False).returncode != 0
        if file.exists():
            found = json.loads(file.read_text(encoding="utf-8"))
            rows += [{"benchmark": name, **ratio} for ratio in found.get("ratios", [])]
    print("== all ratios")
    print(as_table(rows) if rows else "none")
    return failed


if __name__ == "__main__":
    sys.exit(main())
