"""What the check of a sample of keys takes of a tick of the flights, a day a tick.

Every tick is judged by some keys of each output: the program as it is written runs over the landed
rows that can matter for them (docs/why.md). Two homes run the same ticks in turns, one with the
check and one without. The share is the processor time of the check itself over that of the tick
which it is a part of; it uses no Spark. `--days` says how much has landed by then.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from assets.flights.landing import land
from benchmarks.definitions import PROGRAM
from benchmarks.fresh import flights_in, program_at
from benchmarks.measure import Meter, Ratio, note, parser_of, report, session
from hydro_core.project.flow_asset import FlowAsset
from hydrotick.project.settings import ProjectSettings
from hydrotick.quality.sample import Sample
from hydrotick.runner.runner import TickRunner

GOAL = 0.1
RANGE = 50


@dataclass
class Timed:
    """The processor time of a check, as it is called."""

    check: Callable[..., Iterator[Any]]
    seconds: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __call__(self, *given: Any) -> Iterator[Any]:
        began = time.process_time()
        found = list(self.check(*given))
        self.seconds.append(time.process_time() - began)
        self.notes = [f"{output}: {next(iter(v.seen.values()))}" for output, v in found]
        return iter(found)


@dataclass
class Home:
    """The flights in a directory of their own, judged by so many keys."""

    flow: FlowAsset
    runner: TickRunner

    @staticmethod
    def of(directory: Path, landed: Path, keys: int, memory: str) -> Home:
        program = program_at(directory)
        program.parent.mkdir(parents=True)
        program.write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
        flow = replace(flights_in(directory, landed), sample_keys=keys)
        project = ProjectSettings(home=directory, spark_master="local[2]", spark_memory=memory)
        return Home(flow, TickRunner(project))

    def run(self, first: int, last: int) -> None:
        windows = [self.flow.ticks.calendar.window(tick) for tick in range(first, last + 1)]
        for done in self.runner.run(self.flow, windows, lambda _: None):
            if not done.committed:
                sys.exit(f"tick {done.window.key}: {done.problem}")


def main() -> int:
    """Runs the days in ranges, then single ticks in turns."""
    parser = parser_of("sample", __doc__)
    parser.add_argument("--days", type=int, default=40, help="days that are run before, in ranges")
    parser.add_argument("--keys", type=int, default=8)
    parser.add_argument("--ticks", type=int, default=12, help="measured ticks")
    parser.add_argument("--warm", type=int, default=6, help="single ticks before these")
    asked = parser.parse_args()
    spark, _ = session(asked.memory)
    days = asked.days + asked.warm + asked.ticks
    timed = Timed(Sample.judge)

    def judge(*given: Any) -> Iterator[Any]:
        return timed(*given)

    Sample.judge = judge  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory(prefix="hydrotick-bench-") as scratch:
        landed = Path(scratch) / "landed"
        land(landed, days=days)
        homes = {
            name: Home.of(Path(scratch) / name, landed, keys, asked.memory)
            for name, keys in (("with the check", asked.keys), ("without", 0))
        }
        for name, home in homes.items():
            for first in range(0, asked.days, RANGE):
                home.run(first, min(first + RANGE, asked.days) - 1)
            note(f"{name}: {asked.days} days have run")
        timed.seconds.clear()
        found = Meter(spark, asked.seconds).alternate(
            {name: lambda t, home=home: home.run(t, t) for name, home in homes.items()},
            range(asked.days, days),
            asked.warm,
        )
        note("; ".join(timed.notes))
    judged, plain = found["with the check"], found["without"]
    checks = timed.seconds[asked.warm :]
    share = sum(checks) / sum(usage.cpu for usage in judged.usages)
    rows = [
        {"tick": "with the check", **judged.record(), "share of cpu": share, "goal": GOAL},
        {"tick": "without", **plain.record()},
        {"tick": "the check", "runs": len(checks), "cpu_seconds": sum(checks) / len(checks)},
    ]
    ratios = [Ratio("the check of a sample over the tick, processor time", share, GOAL)]
    report(f"a tick of the flights after {asked.days} days", rows, ratios, asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
