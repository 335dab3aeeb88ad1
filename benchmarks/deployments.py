"""What changing the program of a pipeline costs, after a year of flights: a day a tick.

- `plan` after a refactoring, an added column, and a new aggregate, each in a fresh process.
- Deploying the new aggregate, over all ticks: derived from a stored state, rebuilt from the landing
  (the same, with the stored tables out of sight), and by a backfill of a new pipeline.
- A correction of the ticks from some back on, beside a single tick.
- A month of single ticks by the plan that is deployed and by the program as written: time, and the
  rows that are read of what is stored and of what has landed.

What Dagster records of ticks is left out: all of it runs without. A landing is read once, by
whoever reads it; of the state, what Spark's scans read is counted, not what checks look at.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import takewhile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from assets.flights.landing import land
from benchmarks.definitions import PROGRAM, in_fresh_process
from benchmarks.fresh import flights_in, program_at
from benchmarks.measure import Meter, Ratio, Runs, note, parser_of, report, session
from benchmarks.year import Ours
from hydro_core.plan.planner import WantedTables, bootstrap
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.pipeline.rework import first_again
from hydro_core.ticks.calendar import TickWindow
from hydrotick.deploy.deployments import plan_as_written
from hydrotick.deploy.planning import DeployOptions, DeployPlan, Work, plan_deployment
from hydrotick.deploy.switch import deploy
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner

WRITTEN = PROGRAM.read_text(encoding="utf-8")
REFACTORED = WRITTEN.replace(
    'filter(lambda r: r.tail_number is not None) -> select("tail_number")',
    'select("tail_number") -> filter(lambda x: x.tail_number is not None)',
).replace("known_planes", "fleet")
WITH_COLUMN = WRITTEN.replace(
    'delay_minutes=sum("departure_delay"),',
    'delay_minutes=sum("departure_delay"), distance=sum("distance"),',
)
NEW = "routes_of_carriers"
WITH_AGGREGATE = WRITTEN + (
    "\n# How many routes each carrier has flown so far.\n"
    'routes -> persist() -> unique() -> aggregate(by="carrier", routes=count()) -> delta()\n'
    f"  -> {NEW}\n"
)
PLANS = {
    "a refactoring": REFACTORED,
    "an added column": WITH_COLUMN,
    "a new aggregate": WITH_AGGREGATE,
}
PLAN_GOAL = 5.0
"""Seconds that `plan` may take."""
DERIVED, REBUILT, BACKFILL = "derived from state", "rebuilt from the landing", "a full backfill"
RETAINED = (("spark.ui.retainedStages", "10000"),)
"""So many stages are remembered to count what they read."""


@dataclass(frozen=True)
class Home:
    """A home with the flights, whose data lie elsewhere."""

    directory: Path
    landed: Path
    memory: str

    @cached_property
    def flow(self) -> FlowAsset:
        return flights_in(self.directory, self.landed)

    @cached_property
    def runner(self) -> TickRunner:
        return TickRunner(
            ProjectSettings(home=self.directory, spark_master="local[2]", spark_memory=self.memory)
        )

    def write(self, program: str) -> Home:
        """Makes this the program."""
        place = program_at(self.directory)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(program, encoding="utf-8")
        return self

    def copy(self, name: str) -> Home:
        """Another home with the same tables."""
        other = replace(self, directory=self.directory.with_name(name))
        shutil.rmtree(other.directory, ignore_errors=True)
        shutil.copytree(self.directory, other.directory)
        return other

    def windows(self, first: int, last: int) -> list[TickWindow]:
        window = self.flow.ticks.calendar.window
        return [window(tick) for tick in range(first, last + 1)]

    def run(self, first: int, last: int) -> None:
        """Runs ticks, in ranges of a hundred at most."""
        for done in self.runner.run(self.flow, self.windows(first, last), _quiet):
            if not done.committed:
                sys.exit(f"tick {done.window.key}: {done.problem}")

    def correct(self, first: int) -> None:
        """Computes the ticks from `first` on again."""
        [window] = self.windows(first, first)
        for done in self.runner.correct(self.flow, window, _quiet):
            if not done.committed:
                sys.exit(f"tick {done.window.key}: {done.problem}")

    def change(self) -> DeployPlan:
        found = plan_deployment(self.flow, self.runner, DeployOptions())
        if found is None:
            sys.exit("the changed program is the active one")
        return found

    def rows(self, output: str) -> list[str]:
        pipeline = self.runner.pipeline(self.flow)
        return sorted(map(repr, pipeline.output(output, every=True).to_pylist()))


class FromLanding(DeployPlan):
    """A plan that computes no table from a stored one."""

    def computing(self, wanted: WantedTables, since: Mapping[str, int]) -> Work:
        return Work(wanted, bootstrap(self.target.deployment.plan, wanted, {}), since)


@dataclass(slots=True)
class Scans:
    """Counts the rows that Spark's scans have read."""

    spark: SparkSession
    _last: int = -1
    """The number of the last stage that was counted."""

    def since(self) -> int:
        """The rows read since it was last asked."""
        context: Any = self.spark.sparkContext._jsc.sc()  # noqa: SLF001 - Spark offers no question
        context.listenerBus().waitUntilEmpty()
        gateway: Any = self.spark.sparkContext._gateway  # noqa: SLF001
        none, jvm = gateway.new_array(gateway.jvm.double, 0), gateway.jvm
        stages = context.statusStore().stageList(
            None, False, False, none, jvm.java.util.ArrayList()
        )
        # The newest stages come first.
        every = (stages.apply(i) for i in range(stages.size()))
        new = list(takewhile(lambda stage: stage.stageId() > self._last, every))
        self._last = max((stage.stageId() for stage in new), default=self._last)
        return sum(stage.inputRecords() for stage in new)


def year(home: Home, days: int, back: int, meter: Meter) -> Runs:
    """Runs the ticks: the last `back` as a range that a correction can begin with, and of these
    some as single ticks, of which the last are measured.
    """
    singles, warm = min(6, back), 3 if back >= 6 else 0
    home.run(0, days - back - 1)
    if back > singles:
        home.run(days - back, days - singles - 1)
    found = Runs()
    for tick in range(days - singles, days):
        usage = meter.measure(lambda tick=tick: home.run(tick, tick))
        note(f"tick {tick}: {usage.seconds:.2f} s, cpu {usage.cpu:.2f} s")
        if tick >= days - singles + warm:
            found.usages.append(usage)
    return found


def plans(home: Home, rounds: int) -> dict[str, list[dict[str, Any]]]:
    """What `plan` takes for each change, in fresh processes."""
    found: dict[str, list[dict[str, Any]]] = {what: [] for what in PLANS}
    for turn in range(rounds + 1):
        for what, text in PLANS.items():
            program = home.directory / "next.hydro"
            program.write_text(text, encoding="utf-8")
            one = in_fresh_process("plan", *map(str, (home.directory, home.landed, program)))
            if turn:
                found[what].append(one)
            else:
                note(one["text"])
    home.write(WRITTEN)
    return found


def deployments(base: Home, days: int, meter: Meter, rounds: int) -> Mapping[str, Runs]:
    """The new aggregate over all ticks, in each way."""

    def fresh(way: str, turn: int) -> Home:
        name = f"{way.replace(' ', '-')}-{turn}"
        home = replace(base, directory=base.directory.with_name(name))
        return (home if way == BACKFILL else base.copy(name)).write(WITH_AGGREGATE)

    homes = {(w, t): fresh(w, t) for w in (DERIVED, REBUILT, BACKFILL) for t in range(rounds)}
    changes = {key: home.change() for key, home in homes.items() if key[0] != BACKFILL}
    for key, change in changes.items():
        if key[0] == REBUILT:
            said = {f.name: getattr(change, f.name) for f in fields(change)}
            changes[key] = FromLanding(**said)
        read = changes[key].work.made_by
        note(f"{key[0]}: reads {', '.join([*read.tables, *read.inputs])}")
    if changes[DERIVED, 0].work.made_by.inputs:
        sys.exit("the new aggregate is not derived from a stored state")

    def run(way: str) -> Callable[[int], object]:
        if way == BACKFILL:
            return lambda turn: homes[way, turn].run(0, days - 1)
        return lambda turn: deploy(changes[way, turn], homes[way, turn].runner, lambda _: None)

    ways = (DERIVED, REBUILT, BACKFILL)
    found = meter.alternate({way: run(way) for way in ways}, range(rounds))
    results = [homes[way, 0].rows(NEW) for way in ways]
    if results[0] != results[1] or results[0] != results[2] or not results[0]:
        sys.exit(f"`{NEW}` differs by the way in which it came to be")
    return found


def corrections(home: Home, first: int, meter: Meter, rounds: int) -> tuple[Runs, int]:
    """Corrections from a tick on, and the tick with which they begin."""
    begins = first_again(home.runner.pipeline(home.flow), first)
    found = Runs()
    for _ in range(rounds):
        found.usages.append(meter.measure(lambda: home.correct(first)))
        note(f"correction: {found.usages[-1].seconds:.2f} s, cpu {found.usages[-1].cpu:.2f} s")
    return found, begins


@dataclass(slots=True)
class Month:
    """Single ticks of a plan, and what they read."""

    ours: Ours
    runs: Runs = field(default_factory=Runs)
    scanned: list[int] = field(default_factory=list)

    def tick(self, number: int, meter: Meter, scans: Scans) -> None:
        scans.since()
        self.runs.usages.append(meter.measure(lambda: self.ours.range(number, number)))
        self.scanned.append(scans.since())

    @property
    def landed(self) -> int:
        commits = self.ours.pipeline.ledger.commits()
        return sum(read.rows or 0 for commit in commits for read in commit.inputs)

    def row(self, what: str) -> dict[str, Any]:
        """All ticks but the first, which also warms up, and what all of them have read."""
        counted = self.runs.usages[1:] or self.runs.usages
        return {
            "what": what,
            "runs": len(counted),
            "seconds": sum(usage.seconds for usage in counted),
            "cpu_seconds": sum(usage.cpu for usage in counted),
            "rows of state": sum(self.scanned),
            "of the last tick": self.scanned[-1],
            "rows of landings": self.landed,
            **self.runs.memory(),
        }


def month(home: Home, days: int, meter: Meter, spark: SparkSession) -> dict[str, Month]:
    """So many single ticks, by the plan that is deployed and by the program as written."""
    plans: dict[str, TickPlan] = {
        "optimized": home.runner.plan(home.flow),
        "as written": plan_as_written(home.flow),
    }
    months = {
        what: Month(
            Ours(
                home.directory.with_name(f"month-{what.replace(' ', '-')}"),
                plan,
                home.landed,
                spark,
                home.runner.settings,
            )
        )
        for what, plan in plans.items()
    }
    scans = Scans(spark)
    for tick in range(days):
        for what, one in months.items() if tick % 2 else reversed(months.items()):
            one.tick(tick, meter, scans)
            note(f"day {tick}, {what}: {one.runs.usages[-1].seconds:.2f} s, {one.scanned[-1]} rows")
    first, second = (one.ours.pipeline for one in months.values())
    for name in first.output_tables:
        one, other = (p.output(name, every=True).to_pylist() for p in (first, second))
        if sorted(map(repr, one)) != sorted(map(repr, other)):
            sys.exit(f"the two plans differ in `{name}`")
    return months


def _quiet(_: str) -> None:
    """What ticks say of themselves is not shown."""


def rows_and_ratios(
    asked: argparse.Namespace,
    single: Runs,
    planned: Mapping[str, Sequence[Mapping[str, Any]]],
    deployed: Mapping[str, Runs],
    corrected: tuple[Runs, int],
    months: Mapping[str, Month],
) -> tuple[list[dict[str, Any]], list[Ratio]]:
    """The table, and what it is for."""
    rows: list[dict[str, Any]] = []
    ratios = []
    for what, runs in planned.items():
        seconds = sorted(run["plan_seconds"] for run in runs)[len(runs) // 2]
        cpu = sorted(run["plan_cpu"] for run in runs)[len(runs) // 2]
        rows.append({"what": f"plan after {what}", "runs": len(runs), "seconds": seconds,
                     "cpu_seconds": cpu, "goal": PLAN_GOAL})  # fmt: skip
        ratios.append(Ratio(f"seconds of `plan` after {what}", seconds, PLAN_GOAL))
    whole = deployed[BACKFILL]
    for way, done in deployed.items():
        rows.append({"what": f"a new aggregate, {way}", **done.record()})
        if way != BACKFILL:
            ratios.append(Ratio(f"{way} over {BACKFILL}", done.seconds / whole.seconds))
            ratios.append(Ratio(f"{way} over {BACKFILL}, processor time", done.cpu / whole.cpu))
    again, begins = corrected
    count = asked.days - begins
    rows.append({"what": f"a correction {count} ticks back", **again.record()})
    rows.append({"what": "a single tick", **single.record()})
    back = f"a correction {count} ticks back over a tick"
    ratios.append(Ratio(back, again.seconds / single.seconds))
    ratios.append(Ratio(f"{back}, processor time", again.cpu / single.cpu))
    made = {what: one.row(f"{asked.month} days, {what}") for what, one in months.items()}
    rows += made.values()
    best, written = made.values()
    for name in ("seconds", "cpu_seconds", "rows of state"):
        if written[name]:
            what = f"{asked.month} days, optimized over as written: {name}"
            ratios.append(Ratio(what, best[name] / written[name]))
    return rows, ratios


def main() -> int:
    """Runs all of it."""
    parser = parser_of("deployments", __doc__ or "")
    parser.set_defaults(memory="2g", seconds=60)
    parser.add_argument("--days", type=int, default=365, help="ticks before the change")
    parser.add_argument("--back", type=int, default=30, help="ticks that are corrected")
    parser.add_argument("--month", type=int, default=31, help="single ticks of the two plans")
    parser.add_argument("--rounds", type=int, default=2, help="measured runs of each")
    asked = parser.parse_args()
    back = max(1, min(asked.back, asked.days - 1))
    spark, _ = session(asked.memory, extra=RETAINED)
    meter = Meter(spark, asked.seconds)
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as name:
        scratch = Path(name)
        land(scratch / "landed", days=max(asked.days, asked.month))
        base = Home(scratch / "base", scratch / "landed", asked.memory).write(WRITTEN)
        single = year(base, asked.days, back, meter)
        note(f"{asked.days} ticks are committed")
        planned = plans(base, asked.rounds)
        deployed = deployments(base, asked.days, meter, asked.rounds)
        corrected = corrections(base, asked.days - back, meter, asked.rounds)
        months = month(base, asked.month, meter, spark)
        rows, ratios = rows_and_ratios(asked, single, planned, deployed, corrected, months)
    report(f"changes of a program after {asked.days} ticks of the flights", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
