"""Keyed state of which a tick touches little: an append-only log of changes beside MERGE.

A tick reads the stored rows of 1,000 keys, and stores new ones. The log appends two rows for each
key, the old one taken away and the new one added, and reads what they sum up to; its small files
are joined as the store does it, or left alone. MERGE replaces the rows, by delta-rs or by Spark.
All take turns in one warm session, first on a new table, then on one with many ticks behind it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.measure import Meter, Ratio, Runs, note, parser_of, report, session
from hydro_core.catalog.forms import Form
from hydro_core.ir.graph import Endpoint
from hydro_core.plan.tick_plan import StateSlot
from hydro_core.spark.frames.relation import live
from hydro_core.spark.lower.relations import with_keys_of
from hydro_core.spark.store.schema import state_table
from hydro_core.spark.store.store import Store
from hydro_core.types.ddl import parse_ddl

COLUMNS = ("k", "total", "n")
SLOT = StateSlot(
    "totals",
    Endpoint("totals"),
    ("prev_1",),
    parse_ddl("k long, total long, n long"),
    ordered=False,
    form=Form.CHANGES,
    semantic_hash="00000000",
)


class State(Protocol):
    """A way of keeping rows (k, total, n)."""

    def read(self, keys: pa.Table) -> pa.Table:
        """The rows of these keys."""

    def write(self, old: pa.Table, new: pa.Table) -> None:
        """New rows in the place of old ones of the same keys."""


def of_keys(frame: DataFrame, key: str, keys: pa.Table) -> DataFrame:
    """The rows of these keys; the keys are sent to where the rows are."""
    wanted = F.broadcast(frame.sparkSession.createDataFrame(keys))
    return with_keys_of(wanted, [F.col(key)])(frame)


class Log:
    """The log of changes, as the store keeps it."""

    def __init__(self, spark: SparkSession, directory: Path, rows: pa.Table, joined: int) -> None:
        self.spark, self.joined, self.tick = spark, joined, 0
        spec = state_table(SLOT)
        self.name = spec.name
        self.store = Store(directory, [spec])
        self.store.recover(None)
        self._append(rows, rows.slice(0, 0))

    def read(self, keys: pa.Table) -> pa.Table:
        log = self.store.frame(self.spark, self.name, 0, self.tick)
        if log is None:
            raise LookupError("the log is empty")
        return live(of_keys(log, "item.k", keys)).select("item.*").toArrow()

    def write(self, old: pa.Table, new: pa.Table) -> None:
        self.tick += 1
        self._append(new, old)
        table = self.store.tables[self.name]
        if self.joined and table.small_files() >= self.joined:
            table.compact(self.joined)

    def _append(self, come: pa.Table, gone: pa.Table) -> None:
        both = pa.concat_tables([come, gone.cast(come.schema)]).combine_chunks()
        counts = np.repeat([1, -1], [come.num_rows, gone.num_rows])
        items = pa.StructArray.from_arrays([both[n].combine_chunks() for n in COLUMNS], COLUMNS)
        ticks = np.full(both.num_rows, self.tick)
        self.store.tables[self.name].append(pa.table({"t": ticks, "item": items, "n": counts}))


class Merged:
    """A table with a row for each key, and MERGE by delta-rs."""

    def __init__(self, spark: SparkSession, directory: Path, rows: pa.Table) -> None:
        self.spark, self.path = spark, str(directory)
        write_deltalake(self.path, rows)
        self.table = DeltaTable(self.path)

    def read(self, keys: pa.Table) -> pa.Table:
        files = self.spark.read.parquet(*self.table.file_uris())
        return of_keys(files, "k", keys).select(*COLUMNS).toArrow()

    def write(self, old: pa.Table, new: pa.Table) -> None:
        merge = self.table.merge(new, "t.k = s.k", source_alias="s", target_alias="t")
        merge.when_matched_update_all().when_not_matched_insert_all().execute()


class MergedBySpark(Merged):
    """The same, and MERGE by Spark."""

    def read(self, keys: pa.Table) -> pa.Table:
        table = self.spark.read.format("delta").load(self.path)
        return of_keys(table, "k", keys).select(*COLUMNS).toArrow()

    def write(self, old: pa.Table, new: pa.Table) -> None:
        self.spark.createDataFrame(new).createOrReplaceTempView("new_rows")
        self.spark.sql(
            f"MERGE INTO delta.`{self.path}` t USING new_rows s ON t.k = s.k "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()


@dataclass(slots=True)
class Measured:
    """A way of keeping state, what it took, and how many ticks it has behind it."""

    state: State
    left: np.ndarray
    """By key, the tick that wrote its row."""
    reads: Runs = field(default_factory=Runs)
    writes: Runs = field(default_factory=Runs)
    ticks: int = 0

    def forget(self) -> None:
        """Starts measuring anew."""
        self.reads, self.writes = Runs(), Runs()


def rows_of(keys: np.ndarray, ticks: np.ndarray) -> pa.Table:
    """The rows of these keys as these ticks leave them."""
    return pa.table({"k": keys, "total": keys * 3 + ticks, "n": ticks + 1})


def one_tick(way: Measured, keys: np.ndarray, meter: Meter) -> None:
    """Reads the rows of the keys, then stores new ones."""
    found: list[pa.Table] = []
    old, new = next_rows(way, keys)
    wanted = new.select(["k"])
    way.reads.usages.append(meter.measure(lambda: found.append(way.state.read(wanted))))
    if found[0].select(COLUMNS).sort_by("k") != old.sort_by("k"):
        sys.exit("what was read is not what was written")
    way.writes.usages.append(meter.measure(lambda: way.state.write(found[0], new)))


def next_rows(way: Measured, keys: np.ndarray) -> tuple[pa.Table, pa.Table]:
    """The rows of the keys before and after the next tick."""
    old = rows_of(keys, way.left[keys])
    way.ticks += 1
    way.left[keys] = way.ticks
    return old, rows_of(keys, way.left[keys])


def grown(way: Measured, keys: list[np.ndarray], seconds: float) -> None:
    """Ticks that only write, as many as there is time for."""
    end = time.monotonic() + seconds
    for some in keys:
        if time.monotonic() > end:
            return
        way.state.write(*next_rows(way, some))


def ways(spark: SparkSession, scratch: Path, rows: pa.Table) -> Mapping[str, State]:
    """All ways of keeping the rows."""
    return {
        "log": Log(spark, scratch / "log", rows, 16),
        "log, files as they come": Log(spark, scratch / "files", rows, 0),
        "MERGE, delta-rs": Merged(spark, scratch / "rs", rows),
        "MERGE, Spark": MergedBySpark(spark, scratch / "spark", rows),
    }


def main() -> int:
    """Measures all sizes that are asked for."""
    parser = parser_of("keyed_state", __doc__)
    parser.add_argument("--keys", type=int, nargs="*", default=[10_000, 1_000_000])
    parser.add_argument("--touched", type=int, default=1000, help="keys that a tick touches")
    parser.add_argument("--ticks", type=int, default=8, help="measured ticks")
    parser.add_argument("--warm", type=int, default=2, help="ticks before these")
    parser.add_argument("--grow", type=int, default=90, help="ticks between the measured ones")
    parser.add_argument("--grow-seconds", type=float, default=120, help="a limit for these")
    asked = parser.parse_args()
    spark, _ = session(asked.memory)
    quick = spark.newSession()
    for key, value in {"adaptive.enabled": "false", "shuffle.partitions": "2"}.items():
        quick.conf.set(f"spark.sql.{key}", value)
    table = []
    for keys in asked.keys:
        with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
            table += measured_rows(quick, Path(scratch), keys, asked)
    ratios = [
        Ratio(
            f"{r['keys']} keys after {r['ticks']} ticks: {r['way']} over the log", r["time / log"]
        )
        for r in table
        if r["way"] != "log"
    ]
    report(f"{asked.touched} keys touched in a tick, medians", table, ratios, asked)
    return 0


def measured_rows(
    spark: SparkSession, scratch: Path, keys: int, asked: object
) -> list[Mapping[str, Any]]:
    """A row for each way, on a new table and on one that has grown."""
    options = vars(asked)
    rng, meter = np.random.default_rng(1), Meter(spark, options["seconds"])
    none = np.zeros(keys, dtype=np.int64)
    states = ways(spark, scratch, rows_of(np.arange(keys), none))
    found = []
    all_ways = {name: Measured(state, none.copy()) for name, state in states.items()}
    for grow in (0, options["grow"]):
        more = [rng.choice(keys, options["touched"], replace=False) for _ in range(grow)]
        for name, way in all_ways.items():
            grown(way, more, options["grow_seconds"])
            way.forget()
            note(f"{keys} keys, {name}: {way.ticks} ticks")
        for turn in range(options["warm"] + options["ticks"]):
            some = rng.choice(keys, options["touched"], replace=False)
            for way in list(all_ways.values()) if turn % 2 else reversed(all_ways.values()):
                one_tick(way, some, meter)
                if turn < options["warm"]:
                    way.forget()
        first = all_ways["log"]
        whole = first.reads.seconds + first.writes.seconds
        found += [
            {
                "keys": keys,
                "way": name,
                "ticks": way.ticks,
                "read, s": way.reads.seconds,
                "write, s": way.writes.seconds,
                "cpu, s": way.reads.cpu + way.writes.cpu,
                "time / log": (way.reads.seconds + way.writes.seconds) / whole,
            }
            for name, way in all_ways.items()
        ]
    return found


if __name__ == "__main__":
    sys.exit(main())
