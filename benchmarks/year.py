"""A year in one range: 365 daily ticks of the flights, beside a batch query written by hand.

The flights of New York's airports in 2013 lie in Delta tables, a day a tick. Ours runs all ticks as
one range and keeps the state for the next one. The script by hand is one batch job that gives every
day's results, with windows over the days where a day depends on those before it, and writes the
four tables at once; it keeps nothing to go on from. Both read the landed tables and write Delta.

Beside it stand the last 30 days as one range on the stored past, and single ticks: some are timed
after two months, when most routes and aircraft are known, and the year of them is 365 times their
median.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from assets.flights.landing import FIRST_DAY, land
from benchmarks.measure import Meter, Ratio, Runs, note, parser_of, plan_of, report, session
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import Settings
from hydro_core.spark.inputs.looks import LandingTable
from hydro_core.spark.inputs.reading import InputBatches
from hydro_core.spark.pipeline.pipeline import Pipeline
from hydro_core.ticks.calendar import Calendar

GOAL = 1.5
PROGRAM = Path("assets/flights/flights.hydro")
CALENDAR = Calendar(datetime(FIRST_DAY.year, FIRST_DAY.month, FIRST_DAY.day, tzinfo=UTC))
INPUTS = ("flights", "weather", "planes", "airlines", "airports")
OUTPUTS = ("departures", "new_routes", "delay_statistics", "back_in_service")


class Ours:
    """The pipeline of the flights in a directory, fed from the landed tables."""

    def __init__(
        self, directory: Path, plan: TickPlan, landed: Path, spark: SparkSession, settings: Settings
    ) -> None:
        self.pipeline = Pipeline(directory, plan, settings, spark)
        items = {name: plan.typed.inputs[name].item for name in INPUTS}
        landings = {name: LandingTable(landed / name, "day") for name in INPUTS}
        self.batches = InputBatches(landings, items, lambda: spark, calendar=CALENDAR)

    def range(self, first: int, last: int) -> None:
        """Runs the days `first` to `last`, counted from 0."""
        times = CALENDAR.times(first, last)
        self.pipeline.run_range(first, last, self.batches.read(first, last), times=times)


class ByHand:
    """The batch job: all days from `first` to `last` in one query for each output."""

    def __init__(self, spark: SparkSession, landed: Path, directory: Path) -> None:
        self.spark, self.landed, self.directory = spark, landed, directory

    def read(self, name: str) -> DataFrame:
        return self.spark.read.format("delta").load(str(self.landed / name))

    def range(self, first: int, last: int) -> None:
        """Writes the results of these days."""
        begin, end = (FIRST_DAY + timedelta(days=t) for t in (first, last))
        until = {name: self.read(name).where(F.col("day") <= end) for name in INPUTS}
        wanted = F.col("day") >= begin
        results = {
            "departures": departures(until, wanted),
            "new_routes": new_routes(until).where(wanted),
            "delay_statistics": delay_statistics(until).where(wanted),
            "back_in_service": back_in_service(until, begin),
        }
        with ThreadPoolExecutor(len(results)) as pool:
            list(pool.map(lambda name: self.write(name, results[name]), results))

    def write(self, name: str, rows: DataFrame) -> None:
        tick = F.datediff(F.col("day"), F.lit(FIRST_DAY)).cast("long").alias("tick")
        rows = rows.select(tick, *[c for c in rows.columns if not c.startswith("_")])
        if name != "departures":
            rows = rows.drop("day")
        rows.write.format("delta").mode("append").save(str(self.directory / name))


def departures(given: Mapping[str, DataFrame], wanted: F.Column) -> DataFrame:
    """Each flight with its aircraft, if known by then, and the weather of its hour and day."""
    flights = given["flights"].where(wanted)
    flights = flights.select(
        "day", "carrier", "flight", "tail_number", "origin", "destination", "hour",
        "scheduled_departure", "departure_delay", "arrival_delay", "distance",
    )  # fmt: skip
    planes = given["planes"].select(
        "tail_number", "year_built", "manufacturer", "model", "seats", F.col("day").alias("_since")
    )
    weather = given["weather"].select(
        "day", "origin", "hour", "temperature", "wind_speed", "precipitation", "visibility"
    )
    known = (flights["tail_number"] == planes["tail_number"]) & (F.col("_since") <= flights["day"])
    with_planes = flights.join(F.broadcast(planes), known, "left").drop(planes["tail_number"])
    return with_planes.join(F.broadcast(weather), ["day", "origin", "hour"], "left")


def new_routes(given: Mapping[str, DataFrame]) -> DataFrame:
    """Each route on the first day on which it was flown; names are known from the first day on."""
    first = (
        given["flights"].groupBy("carrier", "origin", "destination").agg(F.min("day").alias("day"))
    )
    airlines = given["airlines"].select("carrier", F.col("name").alias("airline"))
    airports = given["airports"].select(
        F.col("airport").alias("destination"), F.col("name").alias("destination_name")
    )
    named = first.join(F.broadcast(airlines), "carrier", "left")
    return named.join(F.broadcast(airports), "destination", "left")


def delay_statistics(given: Mapping[str, DataFrame]) -> DataFrame:
    """The sums up to each day of what flew on it, of the sums of the days."""
    delay = F.col("departure_delay")
    keys = ["carrier", "origin"]
    days = (
        given["flights"]
        .groupBy(*keys, "day")
        .agg(
            F.count("*").alias("flights"),
            F.count_if(delay.isNull()).alias("cancelled"),
            F.count_if(delay > 15).alias("late"),
            F.sum("departure_delay").alias("delay_minutes"),
            F.max("departure_delay").alias("longest_delay"),
        )
    )
    so_far = Window.partitionBy(*keys).orderBy("day").rowsBetween(Window.unboundedPreceding, 0)
    sums = [F.sum(n).over(so_far).alias(n) for n in ("flights", "cancelled", "late")]
    return days.select(
        "day", *keys, *sums,
        F.sum("delay_minutes").over(so_far).alias("delay_minutes"),
        F.max("longest_delay").over(so_far).alias("longest_delay"),
    )  # fmt: skip


def back_in_service(given: Mapping[str, DataFrame], begin: object) -> DataFrame:
    """The aircraft of a day that are not those of the day before."""
    flown = given["flights"].where(F.col("day") >= F.date_sub(F.lit(begin), 1))
    days = flown.where(F.col("tail_number").isNotNull()).select("day", "tail_number").distinct()
    before = Window.partitionBy("tail_number").orderBy("day")
    gap = F.datediff("day", F.lag("day").over(before))
    marked = days.withColumn("_gap", gap)
    return marked.where((F.col("day") >= begin) & (F.col("_gap").isNull() | (F.col("_gap") > 1)))


def check_equal(ours: Ours, hand: ByHand) -> None:
    """A benchmark of two things that do not do the same says nothing."""
    for name in OUTPUTS:
        mine = ours.pipeline.output_frame(name, every=True)
        theirs = hand.spark.read.format("delta").load(str(hand.directory / name))
        theirs = theirs.select(*mine.columns)
        if mine.exceptAll(theirs).count() or theirs.exceptAll(mine).count():
            sys.exit(f"the two differ in `{name}`")


def main() -> int:
    """Runs the year."""
    parser = parser_of("year", __doc__)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--last", type=int, default=30, help="days of the last range")
    parser.add_argument("--rounds", type=int, default=3, help="measured runs of each")
    parser.add_argument("--warm", type=int, default=1, help="runs before these")
    parser.add_argument("--singles", type=int, default=7, help="single ticks that are timed")
    asked = parser.parse_args()
    spark, settings = session(asked.memory)
    meter = Meter(spark, asked.seconds)
    plan = plan_of(PROGRAM.read_text(encoding="utf-8"))
    days, last = asked.days, asked.last
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as name:
        scratch = Path(name)
        land(scratch / "landed", days=days)

        def ours(place: str) -> Ours:
            return Ours(scratch / place, plan, scratch / "landed", spark, settings)

        def hand(place: str) -> ByHand:
            return ByHand(spark, scratch / "landed", scratch / place)

        whole = meter.alternate(
            {
                "ours": lambda n: ours(f"ours-{n}").range(0, days - 1),
                "by hand": lambda n: hand(f"hand-{n}").range(0, days - 1),
            },
            range(asked.warm + asked.rounds),
            asked.warm,
        )
        check_equal(ours("ours-0"), hand("hand-0"))
        past = [ours(f"past-{n}") for n in range(asked.warm + asked.rounds)]
        for one in past:
            one.range(0, days - last - 1)
        note(f"the past of the last {last} days is stored")
        end = meter.alternate(
            {
                "ours, the last days": lambda n: past[n].range(days - last, days - 1),
                "by hand, the last days": lambda n: hand(f"end-{n}").range(days - last, days - 1),
            },
            range(asked.warm + asked.rounds),
            asked.warm,
        )
        single = singles(meter, ours("singles"), days // 2, asked.singles)
    rows = rows_of(whole, end, single, days, last)
    report(f"{days} daily ticks of the flights", rows, ratios_of(whole, end, single, days), asked)
    return 0


def singles(meter: Meter, ours: Ours, at: int, count: int) -> Runs:
    """So many ticks from `at` on; those before them as ranges."""
    # Two months in ranges that fit into the memory of a benchmark.
    step = 10 if ours.pipeline.plan.notes else 30
    at = min(at, 2 * step)
    for first in range(0, at, step):
        ours.range(first, min(first + step, at) - 1)
    found = Runs()
    for t in range(at, at + count + 3):
        usage = meter.measure(lambda t=t: ours.range(t, t))
        note(f"tick {t}: {usage.seconds:.2f} s, cpu {usage.cpu:.2f} s")
        if t >= at + 3:
            found.usages.append(usage)
    return found


def rows_of(
    whole: Mapping[str, Runs], end: Mapping[str, Runs], single: Runs, days: int, last: int
) -> list[dict[str, object]]:
    """The table: ours beside what it is compared with."""
    ours, mine = whole["ours"], end["ours, the last days"]

    def line(what: str, runs: Runs, beside: Runs | None, goal: float | None) -> dict[str, object]:
        ratios = {
            "ours over it": beside.seconds / runs.seconds if beside else None,
            "of cpu": beside.cpu / runs.cpu if beside else None,
        }
        return {"what": what, **runs.record(), **ratios, "goal": goal}

    year = single.seconds * days
    return [
        line(f"ours, {days} ticks as one range", ours, None, None),
        line("by hand, one batch query", whole["by hand"], ours, GOAL),
        line(f"ours, the last {last} ticks, the past stored", mine, None, None),
        line("by hand, these days", end["by hand, the last days"], mine, GOAL),
        {
            **line("ours, a single tick", single, None, None),
            "ours over it": None,
        },
        {
            "what": f"{days} single ticks (scaled up)",
            "seconds": round(year, 1),
            "cpu_seconds": round(single.cpu * days, 1),
            "ours over it": ours.seconds / year,
            "of cpu": ours.cpu / (single.cpu * days),
        },
    ]


def ratios_of(
    whole: Mapping[str, Runs], end: Mapping[str, Runs], single: Runs, days: int
) -> list[Ratio]:
    """What the benchmark is for."""
    ours, hand = whole["ours"].cpu, whole["by hand"].cpu
    mine, theirs = (end[f"{who}, the last days"].cpu for who in ("ours", "by hand"))
    return [
        Ratio("a year as one range over a batch query by hand", ours / hand, GOAL),
        Ratio("a year as one range over its single ticks", ours / (single.cpu * days)),
        Ratio("the last days on the stored past over a query by hand", mine / theirs, GOAL),
        Ratio("the last days on the stored past over the year", mine / ours),
    ]


if __name__ == "__main__":
    sys.exit(main())
