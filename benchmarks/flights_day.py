"""A warm day of the flights: ours beside the script that an expert would write for a day.

The script reads the landed tables, which are its history too: aircraft that were known by the day,
and what flew the day before. Routes that it has seen are those that it wrote, and running sums are
a small table of its own, which it reads and appends. It broadcasts small sides, runs without
adaptive execution, writes its tables at once with plain appends, ends with a row in a log of days,
checks nothing and counts nothing. Both go on from the same days, which came as one range.
"""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from assets.flights.landing import FIRST_DAY, land
from benchmarks.measure import Meter, Ratio, note, parser_of, plan_of, report, session
from benchmarks.year import (
    INPUTS,
    PROGRAM,
    ByHand,
    Ours,
    back_in_service,
    check_equal,
    departures,
)

GOAL = 1.0
KEYS = ("carrier", "origin")
SUMS = ("flights", "cancelled", "late", "delay_minutes")


class Daily(ByHand):
    """The script for a day."""

    def __init__(self, spark: SparkSession, landed: Path, directory: Path) -> None:
        super().__init__(spark.newSession(), landed, directory)
        self.spark.conf.set("spark.sql.shuffle.partitions", "2")
        self.spark.conf.set("spark.sql.adaptive.enabled", "false")
        self.pool = ThreadPoolExecutor(6)

    def begin(self, last: int) -> None:
        """The days up to `last`, and the sums by then."""
        self.range(0, last)
        row = F.max_by(F.struct(*SUMS, "longest_delay"), "tick").alias("row")
        sums = self.stored("delay_statistics").groupBy(*KEYS).agg(row).select(*KEYS, "row.*")
        self.append(sums.withColumn("tick", F.lit(last).cast("long")), "sums")

    def tick(self, t: int) -> None:
        """Day `t`, counted from 0."""
        day = FIRST_DAY + timedelta(days=t)
        until = {name: self.read(name).where(F.col("day") <= day) for name in INPUTS}
        stamp = F.lit(t).cast("long").alias("tick")
        today = until["flights"].where(F.col("day") == day)
        sums, changed = self.sums(today, t)
        results = {
            "departures": departures(until, F.col("day") == day),
            "new_routes": self.new_routes(until, today),
            "delay_statistics": changed,
            "back_in_service": back_in_service(until, day).drop("day"),
            "sums": sums,
        }
        for name, rows in results.items():
            results[name] = rows.select(stamp, *[c for c in rows.columns if not c.startswith("_")])
        list(self.pool.map(lambda name: self.append(results[name], name), results))
        done = self.spark.createDataFrame([(t, datetime.now(UTC))], "tick long, at timestamp")
        self.append(done, "log")

    def sums(self, today: DataFrame, t: int) -> tuple[DataFrame, DataFrame]:
        """The sums up to the day, and those of them that it changes."""
        delay = F.col("departure_delay")
        new = today.groupBy(*KEYS).agg(
            F.count("*").alias("flights"),
            F.count_if(delay.isNull()).alias("cancelled"),
            F.count_if(delay > 15).alias("late"),
            F.sum(delay).alias("delay_minutes"),
            F.max(delay).alias("longest_delay"),
        )
        before = self.stored("sums").where(F.col("tick") == t - 1).drop("tick")
        sums = (
            before.unionByName(new)
            .groupBy(*KEYS)
            .agg(*[F.sum(n).alias(n) for n in SUMS], F.max("longest_delay").alias("longest_delay"))
        )
        flown = F.broadcast(today.select(*KEYS).distinct())
        return sums, sums.join(flown, list(KEYS), "left_semi")

    def new_routes(self, until: dict[str, DataFrame], today: DataFrame) -> DataFrame:
        """The routes of the day that it has not written before; names are known from day 0 on."""
        route = ["carrier", "origin", "destination"]
        routes = today.select(*route).distinct()
        new = routes.join(F.broadcast(self.stored("new_routes").select(*route)), route, "left_anti")
        airlines = until["airlines"].select("carrier", F.col("name").alias("airline"))
        airports = until["airports"].select(
            F.col("airport").alias("destination"), F.col("name").alias("destination_name")
        )
        named = new.join(F.broadcast(airlines), "carrier", "left")
        return named.join(F.broadcast(airports), "destination", "left")

    def stored(self, name: str) -> DataFrame:
        """What it has written of a table."""
        return self.spark.read.format("delta").load(str(self.directory / name))

    def append(self, rows: DataFrame, name: str) -> None:
        """Writes rows of the day."""
        # Where the first days were many rows, a day is few: one file.
        rows.coalesce(1).write.format("delta").mode("append").save(str(self.directory / name))


def main() -> int:
    """Runs the days."""
    parser = parser_of("flights_day", __doc__)
    parser.add_argument("--before", type=int, default=30, help="days before, as one range")
    parser.add_argument("--warm", type=int, default=10, help="days that are not counted")
    parser.add_argument("--ticks", type=int, default=9, help="measured days")
    asked = parser.parse_args()
    spark, settings = session(asked.memory)
    plan = plan_of(PROGRAM.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
        directory = Path(scratch)
        land(directory / "landed", days=asked.before + asked.warm + asked.ticks)
        ours = Ours(directory / "ours", plan, directory / "landed", spark, settings)
        hand = Daily(spark, directory / "landed", directory / "hand")
        ours.range(0, asked.before - 1)
        hand.begin(asked.before - 1)
        note("the days before are there")
        found = Meter(spark, asked.seconds).alternate(
            {"ours": lambda t: ours.range(t, t), "by hand": hand.tick},
            range(asked.before, asked.before + asked.warm + asked.ticks),
            asked.warm,
        )
        check_equal(ours, ByHand(spark, directory / "landed", directory / "hand"))
    mine, theirs = found["ours"], found["by hand"]
    rows = [
        {"a day": "ours", **mine.record()},
        {
            "a day": "by hand",
            **theirs.record(),
            "ours over it": mine.seconds / theirs.seconds,
            "ours over its cpu": mine.cpu / theirs.cpu,
            "goal": GOAL,
        },
    ]
    ratios = [Ratio("a warm day of the flights over a script by hand", mine.cpu / theirs.cpu, GOAL)]
    report("a warm day of the flights, medians", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
