"""Ordered groups: does a tick of appended rows cost what is appended, and a late row its key?

Three comparisons, each of processor time in one session:

- *late over early*: tick 1,000 beside tick 10 of a pipeline, with equal batches of rows that come
  after all others of their keys, so that keys are a hundred times as long;
- *over by hand*: the late tick beside the PySpark that somebody would write for it, which reads
  all rows from a Delta table, computes the columns over each key, and appends those of the tick;
- *a row into a long key*: a tick with one row that lies in the middle of a key of a million rows,
  beside ticks with one at its end and a hundred rows before it, and beside the key by hand.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window, WindowSpec
from pyspark.sql import functions as F

from benchmarks.growth import Case, Grown, Tables
from benchmarks.measure import Meter, Ratio, note, parser_of, report, session
from hydro_core.settings import Settings

GOAL_LATE = 1.1
GOAL_BY_HAND = 0.5
EVENTS = "user long, at long, amount long"
TICK_LENGTH = 1_000_000
"""How far the `at` of a tick's rows lie apart from those of the next."""

ByHand = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True, slots=True)
class Ordered:
    """A program over `events`, and the same columns by hand over all rows."""

    program: str
    by_hand: ByHand | None = None
    quotes: bool = False
    """It joins `quotes`, too."""


def appended(tick: int, rows: int) -> Tables:
    """Events of a bounded set of users, later than all before them."""
    rng = np.random.default_rng(tick)
    return {
        "events": pa.table(
            {
                "user": pa.array(rng.integers(0, rows, rows)),
                "at": pa.array(np.sort(rng.integers(0, TICK_LENGTH, rows)) + tick * TICK_LENGTH),
                "amount": pa.array(rng.integers(1, 1000, rows)),
            }
        )
    }


def quoted(tick: int, rows: int) -> Tables:
    """Events, and a tenth as many quotes for the same users."""
    rng = np.random.default_rng(tick + 1_000_000)
    quotes = {
        "user": pa.array(rng.integers(0, rows, rows // 10)),
        "since": pa.array(rng.integers(0, TICK_LENGTH, rows // 10) + tick * TICK_LENGTH),
        "price": pa.array(rng.integers(1, 1000, rows // 10)),
    }
    return {**appended(tick, rows), "quotes": pa.table(quotes)}


def _over(columns: str) -> str:
    return f'events -> persist() -> over(by="user", order="at", {columns}) -> delta() -> out'


def _by_user() -> WindowSpec:
    return Window.partitionBy("user").orderBy("at", "amount")


def _so_far() -> WindowSpec:
    return _by_user().rowsBetween(Window.unboundedPreceding, 0)


def _sessions(rows: DataFrame) -> DataFrame:
    gap = F.col("at") - F.lag("at").over(_by_user())
    begins = F.when(gap.isNull() | (gap > TICK_LENGTH), F.col("at"))
    return rows.withColumn("begin", begins).withColumn(
        "start", F.last("begin", ignorenulls=True).over(_so_far())
    )


def _best(rows: DataFrame) -> DataFrame:
    by_amount = Window.partitionBy("user").orderBy(F.desc("amount"), "at")
    return rows.withColumn("n", F.row_number().over(by_amount)).where(F.col("n") <= 3)


CASES: Mapping[str, Ordered] = {
    "running sum": Ordered(
        _over('total=running(sum("amount"))'),
        lambda rows: rows.withColumn("total", F.sum("amount").over(_so_far())),
    ),
    "lag": Ordered(
        _over('before=lag("amount")'),
        lambda rows: rows.withColumn("before", F.lag("amount").over(_by_user())),
    ),
    "rank": Ordered(
        _over("place=rank()"),
        lambda rows: rows.withColumn("place", F.rank().over(_by_user())),
    ),
    "sessions": Ordered(_over(f"start=session(gap={TICK_LENGTH})"), _sessions),
    "top n": Ordered(
        'events -> persist() -> top(3, by="user", order="amount", descending=True)'
        " -> delta() -> out",
        _best,
    ),
    "as of": Ordered(
        "known = quotes -> persist()\n"
        'events -> persist() -> join_asof(right=known, on="user") -> delta() -> out',
        quotes=True,
    ),
}


def case_of(name: str) -> Case:
    """The program and its batches."""
    own = CASES[name]
    sources = f'events = source("{EVENTS}")\n'
    if own.quotes:
        sources += 'quotes = source("user long, since long, price long")\n'
    return Case(sources + own.program, quoted if own.quotes else appended)


class Script:
    """The tick by hand: all rows lie in a Delta table, to which each tick appends its own."""

    def __init__(self, spark: SparkSession, directory: Path, by_hand: ByHand) -> None:
        self.spark, self.directory, self.by_hand = spark, directory, by_hand

    def land(self, ticks: Sequence[int], rows: int) -> None:
        """Appends the events of the ticks."""
        tables = [
            appended(t, rows)["events"].append_column("tick", pa.array([t] * rows)) for t in ticks
        ]
        events = self.spark.createDataFrame(pa.concat_tables(tables))
        self._append(events, "events")

    def tick(self, t: int, rows: int) -> None:
        """Lands a tick, computes the columns over all rows, and appends those of the tick."""
        self.land([t], rows)
        events = self.spark.read.format("delta").load(str(self.directory / "events"))
        self._append(self.by_hand(events).where(F.col("tick") == t), "out")

    def _append(self, rows: DataFrame, name: str) -> None:
        rows.write.format("delta").mode("append").save(str(self.directory / name))


class Bench:
    """The comparisons, with what they were asked for."""

    def __init__(self, spark: SparkSession, settings: Settings, asked: argparse.Namespace) -> None:
        self.spark, self.settings, self.asked = spark, settings, asked
        self.meter = Meter(spark, asked.seconds)

    def grown(self, case: Case, directory: Path) -> Grown:
        """A pipeline of the case."""
        return Grown(case, directory, self.asked.rows, self.spark, self.settings)

    def compared(self, name: str, scratch: Path) -> dict[str, Any]:
        """A late tick beside an early one, and beside the script where there is one."""
        case, asked, by_hand = case_of(name), self.asked, CASES[name].by_hand
        early, late = self.grown(case, scratch / "early"), self.grown(case, scratch / "late")
        started = time.perf_counter()
        late.to(asked.late - asked.warm)
        note(f"{name}: at tick {late.next} after {time.perf_counter() - started:.0f} s")
        runs: dict[str, Callable[[int], object]] = {
            "early": lambda _: early.tick(),
            "late": lambda _: late.tick(),
        }
        if by_hand is not None:
            script = Script(self.spark, scratch / "script", by_hand)
            script.land(range(late.next), asked.rows)
            first = late.next
            runs["script"] = lambda number: script.tick(first + number, asked.rows)
        found = self.meter.alternate(runs, range(asked.warm + asked.ticks), asked.warm)
        result: dict[str, Any] = {
            "program": name,
            "early, cpu s": found["early"].cpu,
            "late, cpu s": found["late"].cpu,
            "late over early": found["late"].cpu / found["early"].cpu,
        }
        if by_hand is not None:
            result["by hand, cpu s"] = found["script"].cpu
            result["late over by hand"] = found["late"].cpu / found["script"].cpu
        return result

    def long_key(self, name: str, scratch: Path) -> dict[str, Any]:
        """A row into the middle of a long key, one near its end, and one at it."""
        case, by_hand, length = case_of(name), CASES[name].by_hand, self.asked.key
        ends = self.grown(case, scratch / "end"), self.grown(case, scratch / "middle")
        for grown in ends:
            grown.pipeline.run_tick(0, {"events": _of_one_key(range(0, 2 * length, 2))})
            grown.next = 1
        at_end, in_middle = ends

        def arrives(grown: Grown, at: Callable[[int], int]) -> None:
            grown.pipeline.run_tick(grown.next, {"events": _of_one_key([at(grown.next)])})
            grown.next += 1

        runs: dict[str, Callable[[int], object]] = {
            "end": lambda _: arrives(at_end, lambda t: 2 * length + t),
            "near the end": lambda _: arrives(at_end, lambda t: 2 * (length - 100 + t) + 1),
            "middle": lambda _: arrives(in_middle, lambda t: length + 2 * t + 1),
        }
        if by_hand is not None:
            whole = self.spark.createDataFrame(_of_one_key(range(0, 2 * length, 2)))
            runs["by hand"] = lambda _: by_hand(whole).write.format("noop").mode("overwrite").save()
        found = self.meter.alternate(runs, range(2 + 3), 2)
        return {
            "program": f"{name}, a key of {length:,} rows",
            **{f"{variant}, cpu s": runs.cpu for variant, runs in found.items()},
        }


def _of_one_key(at: Sequence[int]) -> pa.Table:
    times = np.asarray(at, dtype=np.int64)
    columns = {"user": np.zeros_like(times), "at": times, "amount": times % 1000}
    return pa.table({name: pa.array(values) for name, values in columns.items()})


def main() -> int:
    """Runs the cases that are asked for."""
    parser = parser_of("ordered", __doc__)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--rows", type=int, default=1000, help="rows of a tick")
    parser.add_argument("--late", type=int, default=1000, help="the late tick")
    parser.add_argument("--ticks", type=int, default=9, help="measured ticks of each")
    parser.add_argument("--warm", type=int, default=5, help="ticks before these")
    parser.add_argument("--key", type=int, default=1_000_000, help="rows of the long key")
    parser.add_argument("--long", nargs="*", default=["running sum", "rank"], choices=list(CASES))
    asked = parser.parse_args()
    bench, rows, ratios = Bench(*session(asked.memory), asked), [], []
    for name in asked.cases:
        with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
            found = bench.compared(name, Path(scratch))
        rows.append(found)
        ratios.append(
            Ratio(f"{name}: a late tick over tick 10", found["late over early"], GOAL_LATE)
        )
        if "late over by hand" in found:
            ratios.append(Ratio(f"{name}: over by hand", found["late over by hand"], GOAL_BY_HAND))
    for name in asked.long:
        with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
            rows.append(bench.long_key(name, Path(scratch)))
    report("ordered groups, kept up to date", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
