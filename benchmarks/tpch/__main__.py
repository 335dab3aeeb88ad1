"""TPC-H with corrected dimensions: a late tick beside an early one, and beside recomputing it all.

All orders and lines of a scale factor come in 20 ticks, which run as a range. After the second of
them and after the last come ticks of 0.1 % more, each with ten corrections (three customers, parts
and suppliers, one offer): the early and the late ones. They take turns, a pipeline each, with the
same query over Parquet files of all rows that have come, in plain PySpark and in DuckDB. At the end
the stored outputs are compared with DuckDB's answers.

`read` are the rows of stored state that Spark is handed or scans in a late tick, or an early one,
`made` those that its operators give, each over the rows that the tick brings: where a key has ten
times the rows, ten times as many are handed. `--plans` runs nothing: it says how the
cost of each plan grows with history, and what `--strict` names.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from benchmarks.judged import Ticks, answer, as_range, differences
from benchmarks.measure import Meter, Ratio, Runs, note, parser_of, plan_of, report, session
from benchmarks.tpch.data import KEYS, as_ticks, made, newest
from benchmarks.tpch.judge import Judge
from benchmarks.tpch.programs import NAMES, program, sql
from benchmarks.work import RowCounter, RowsTouched
from hydro_core.compile import best_plan, compile_text
from hydro_core.optimize.cost import Statistics
from hydro_core.settings import Settings
from hydro_core.spark.pipeline.pipeline import Pipeline

LOAD = 20
EARLY = 2
"""The ticks of the load that come before the early ones."""
SHARE = 0.001
CORRECTIONS = {"customer": 3, "part": 3, "supplier": 3, "partsupp": 1}
OVER_EARLY, OVER_PYSPARK = 1.3, 1.0
WARM = 2
"""Rounds that are not counted."""


@dataclass(frozen=True, slots=True)
class Story:
    """The ticks of all tables, and which of them are small."""

    ticks: Ticks
    early: range
    late: range

    @staticmethod
    def of(tables: Mapping[str, Any], small: int) -> Story:
        # one more each, of which the rows are counted
        early = range(EARLY, EARLY + small + 1)
        late = range(LOAD + small + 1, LOAD + 2 * small + 2)
        shares = np.full(late.stop, (1 - 2 * (small + 1) * SHARE) / LOAD)
        shares[early], shares[late] = SHARE, SHARE
        later = np.arange(1, late.stop)
        corrections = {name: np.repeat(later, each) for name, each in CORRECTIONS.items()}
        return Story(as_ticks(tables, shares, corrections), early, late)


class Recomputed:
    """A query over Parquet files of all rows that have come, in PySpark and in DuckDB."""

    def __init__(self, spark: SparkSession, directory: Path, ticks: Ticks) -> None:
        self._spark, self._db = spark.newSession(), duckdb.connect()
        self._db.execute("SET threads = 2")
        directory.mkdir()
        for name, table in ticks.tables.items():
            path = str(directory / f"{name}.parquet")
            pq.write_table(table, path, row_group_size=1 << 17)
            self._spark.read.parquet(path).createOrReplaceTempView(f"all_{name}")
            self._db.execute(f"CREATE VIEW all_{name} AS SELECT * FROM '{path}'")
            text = newest(name, f"all_{name}") if name in KEYS else f"SELECT * FROM all_{name}"
            self._spark.sql(text).createOrReplaceTempView(name)
            self._db.execute(f"CREATE VIEW {name} AS {text}")

    def in_spark(self, text: str) -> None:
        self._spark.sql(text).toArrow()

    def in_duckdb(self, text: str) -> None:
        self._db.execute(text).fetchall()


@dataclass(frozen=True, slots=True)
class Measured:
    """What the ticks of a query took."""

    load: float
    found: Mapping[str, Runs]
    early: RowsTouched
    touched: RowsTouched
    new: int

    def row(self, name: str) -> dict[str, Any]:
        cpu = {what: runs.cpu for what, runs in self.found.items()}
        return {
            "query": name,
            "new rows": self.new,
            "read, early": self.early.read / self.new,
            "read": self.touched.read / self.new,
            "made": self.touched.made / self.new,
            "load, cpu s": self.load,
            **{f"{what}, cpu s": seconds for what, seconds in cpu.items()},
            **{f"late / {what}": cpu["late"] / cpu[what] for what in cpu if what != "late"},
        }


class Bench:
    """All that the queries share."""

    def __init__(self, spark: SparkSession, settings: Settings, story: Story, seconds: float):
        self.story, self.spark, self.settings = story, spark, settings
        self.meter, self.counter = Meter(spark, seconds), RowCounter(spark)

    def measure(self, name: str, place: Path, again: Recomputed) -> Measured:
        plan, text, story = plan_of(program(name)), sql(name), self.story
        early, late = (
            Pipeline(place / side, plan, self.settings, self.spark) for side in ("early", "late")
        )
        as_range(early, story.ticks, 0, story.early.start - 1)
        loaded = self.meter.measure(lambda: as_range(late, story.ticks, 0, story.late.start - 1))
        # what a tick touches is counted apart, so that the others are not disturbed
        with self.counter.counting() as first:
            self._tick(early, story.early.start)
        with self.counter.counting() as touched:
            new = self._tick(late, story.late.start)
        found = self.meter.alternate(
            {
                "early": lambda i: self._tick(early, story.early.start + 1 + i),
                "late": lambda i: self._tick(late, story.late.start + 1 + i),
                "PySpark": lambda _: again.in_spark(text),
                "DuckDB": lambda _: again.in_duckdb(text),
            },
            range(len(story.early) - 1),
            WARM,
        )
        with Judge(story.ticks) as judge:
            for pipeline in (early, late):
                at = pipeline.next_tick - 1
                wrong = differences(answer(pipeline, at), judge.rows(text, at))
                if wrong:
                    sys.exit(f"{name} at tick {at}: {wrong}")
        return Measured(loaded.cpu, found, first, touched, new)

    def _tick(self, pipeline: Pipeline, tick: int) -> int:
        """Runs a tick, and gives how many rows it has brought."""
        given = self.story.ticks.batch(tick, pipeline.plan.graph.sources)
        pipeline.run_tick(tick, given)
        return sum(rows.num_rows for rows in given.values())


def plans(asked: argparse.Namespace) -> None:
    """How the cost of each plan grows with history, and what `--strict` says."""
    rows, ratios = [], []
    for name in asked.queries:
        compiled = compile_text(program(name))
        now, later = (best_plan(compiled, Statistics(ticks=n)) for n in (100, 1000))
        ratio = later.cost_after / now.cost_after
        told = now.notes[0].name if now.notes else ""
        rows.append({"query": name, "cost": now.cost_after, "at ten times": ratio, "told": told})
        ratios.append(Ratio(f"{name}: cost at ten times the history", ratio, OVER_EARLY))
    report(
        "what a tick costs by its plan, and the same at ten times the history", rows, ratios, asked
    )


def main() -> int:
    """Measures the queries that are asked for."""
    parser = parser_of("tpch", __doc__ or "")
    parser.add_argument("--scale", type=float, default=0.1, help="TPC-H's scale factor")
    parser.add_argument("--queries", nargs="*", default=list(NAMES), choices=list(NAMES))
    parser.add_argument("--ticks", type=int, default=3, help="measured ticks, early and late")
    parser.add_argument("--plans", action="store_true", help="costs of plans alone")
    asked = parser.parse_args()
    if asked.plans:
        plans(asked)
        return 0
    spark, settings = session(asked.memory)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
        place = Path(scratch)
        story = Story.of(made(asked.scale, place / "tables"), asked.ticks + WARM)
        again = Recomputed(spark, place / "files", story.ticks)
        bench = Bench(spark, settings, story, asked.seconds)
        for name in asked.queries:
            with tempfile.TemporaryDirectory(dir=place) as directory:
                rows.append(bench.measure(name, Path(directory), again).row(name))
            note(f"{name}: {rows[-1]}")
    ratios = [
        ratio
        for row in rows
        for ratio in (
            Ratio(
                f"{row['query']}: a late tick over an early one", row["late / early"], OVER_EARLY
            ),
            Ratio(f"{row['query']}: over PySpark", row["late / PySpark"], OVER_PYSPARK),
            Ratio(f"{row['query']}: over DuckDB", row["late / DuckDB"]),
        )
    ]
    report(f"a tick of 0.1 % of TPC-H at scale factor {asked.scale}", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
