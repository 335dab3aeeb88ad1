"""Does forgetting a person take longer with the ticks before it? A history, and ten times as long.

Two flows of one program run in turns in one session, one with ten times the ticks of the other. In
each round a person is forgotten in both, first one whose rows are of a single tick, then one whose
rows are of all, and right afterwards a tick runs. Beside times there is how many rows were written
anew: those of files that have a row of the person, in tables and in what landed.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from benchmarks.measure import Meter, Ratio, note, parser_of, report, session
from hydro_core.project.flow_asset import FlowAsset, Landing, Ticks
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.forgetting import forget
from hydrotick.runner.runner import TickRunner
from hydrotick.runner.to_forget import to_forget

PROGRAM = """
payments = source("user string, amount long")
payments -> persist() -> aggregate(by="user", total=sum("amount"), n=count()) -> totals
payments -> persist() -> filter(lambda p: p.amount > 90) -> large
"""
LONGER = 10
RANGE = 40


class Forgetting:
    """A flow of so many ticks, each with so many rows of users who are new in it, and of people of
    whom some have rows in each tick, and each other one in a tick of its own.
    """

    def __init__(self, home: Path, ticks: int, rows: int, rounds: int) -> None:
        self.project = ProjectSettings(home=home, spark_master="local[2]", range_ticks=RANGE)
        program = home / "program.hydro"
        home.mkdir(parents=True)
        program.write_text(PROGRAM, encoding="utf-8")
        often = Ticks(datetime(2020, 1, 1, tzinfo=UTC), "1d")
        self.flow = FlowAsset(
            "payers", program, often, {"payments": Landing("payments", "tick")}, sample_keys=0
        )
        self.rows, self.rounds, self.done = rows, rounds, 0
        for first in range(0, ticks, RANGE):
            self.run(min(RANGE, ticks - first))

    def run(self, ticks: int) -> None:
        """So many ticks land, and run."""
        last = self.done + ticks - 1
        landed = pa.concat_tables(map(self._landed, range(self.done, last + 1)))
        write_deltalake(self.project.landing / "payments", landed, mode="append")
        calendar, runner = self.flow.ticks.calendar, TickRunner(self.project)
        windows = [calendar.window(tick) for tick in range(self.done, last + 1)]
        for one in runner.run(self.flow, windows, lambda _: None):
            if not one.committed:
                raise RuntimeError(one.problem)
        self.done = last + 1

    def forget(self, person: str) -> int:
        """Forgets somebody, and gives how many rows were written anew."""
        before = self._files()
        who = to_forget(TickRunner(self.project), self.flow, {"payments": ("user", person)})
        if who.is_nothing or not who.is_by_key:
            raise RuntimeError(f"{person} has no rows, or ticks are computed again")
        forget(who, lambda _: None)
        return sum(pq.read_metadata(file).num_rows for file in self._files() - before)

    def _landed(self, tick: int) -> pa.Table:
        users = [f"user {tick} {number}" for number in range(self.rows)]
        users += [f"in all {number}" for number in range(self.rounds)]
        users += [f"in one {tick}"]
        amounts = [(tick * 7 + number) % 100 for number in range(len(users))]
        return pa.table({"tick": [tick] * len(users), "user": users, "amount": amounts})

    def _files(self) -> set[Path]:
        folders = (self.project.landing, self.project.pipelines)
        found = (file for folder in folders for file in folder.rglob("*.parquet"))
        return {file for file in found if not {"_delta_log", "_landings"} & {*file.parts}}


def main(words: list[str]) -> None:
    parser = parser_of("forgetting", __doc__ or "")
    parser.add_argument("--ticks", type=int, default=40, help="of the shorter history")
    parser.add_argument("--rows", type=int, default=1_000, help="of a tick")
    parser.add_argument("--rounds", type=int, default=4)
    asked = parser.parse_args(words)
    spark, _ = session(asked.memory)
    with tempfile.TemporaryDirectory(prefix="hydrotick-benchmark-") as directory:
        flows = {}
        for name, times in (("short", 1), ("long", LONGER)):
            note(f"{name}: {asked.ticks * times} ticks")
            ticks = asked.ticks * times
            flows[name] = Forgetting(Path(directory) / name, ticks, asked.rows, asked.rounds)
        written: dict[str, list[int]] = {}

        def forgetting(name: str, who: str) -> Callable[[int], object]:
            def run(number: int) -> None:
                rows = flows[name].forget(f"{who} {number}")
                written.setdefault(f"{name}, {who}", []).append(rows)

            return run

        def ticking(flow: Forgetting) -> Callable[[int], object]:
            return lambda _: flow.run(1)

        variants: dict[str, Callable[[int], object]] = {}
        for name, flow in flows.items():
            variants |= {f"{name}, {who}": forgetting(name, who) for who in ("in one", "in all")}
            variants[f"{name}, a tick after"] = ticking(flow)
        found = Meter(spark, asked.seconds).alternate(variants, range(asked.rounds), warm=1)
    rows = [
        {"what": what, **runs.record(), "rows written anew": max(written.get(what, [0]))}
        for what, runs in found.items()
    ]
    whats = ("in one", "in all", "a tick after")
    ratios = [
        Ratio(f"{what}: {LONGER} times the history", found[f"long, {what}"].cpu / cpu)
        for what in whats
        if (cpu := found[f"short, {what}"].cpu)
    ]
    report(f"To forget a person after {asked.ticks} ticks and after more", rows, ratios, asked)


if __name__ == "__main__":
    main(sys.argv[1:])
