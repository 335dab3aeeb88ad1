"""The small flow with rows that land late, for tests of what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from hydro_core.spark.pipeline.copies import verify
from hydrotick.deploy.planning import DeployOptions, DeployPlan, plan_deployment
from hydrotick.deploy.switch import deploy, predecessor, roll_back
from hydrotick.flows.landed_past import look, missing
from hydrotick.flows.late_arrivals import LateArrivals
from hydrotick.project.settings import ProjectSettings
from hydrotick.quality.judge import measure
from hydrotick.runner.correction import accept
from hydrotick.runner.report import TickReport
from hydrotick.runner.runner import TickRunner
from tests.orchestration.changing import by_name
from tests.orchestration.small import BATCHES, contents, small_flow

DAYS = [f"2026-01-0{day}" for day in range(1, 10)]
LATE = [(1, "dan", 7), (1, "ann", 5), (2, "eve", 4)]
"""Rows for ticks 1 and 2, of which the second had none."""
SCHEMA = pa.schema([("tick", pa.int64()), ("user", pa.string()), ("amount", pa.int64())])
OPEN = 4
"""The tick that is the next one."""

Row = tuple[int, str, int]
IN_TIME = [(tick, *row) for tick, rows in enumerate(BATCHES) for row in rows]


class Late:
    """The small flow with one policy, and what lands for it: a Delta table, or Parquet files."""

    def __init__(
        self, home: Path, policy: str = "next", kind: str = "delta", removed: str = "note"
    ) -> None:
        self.project = ProjectSettings(home=home, spark_master="local[2]")
        flow = small_flow(home / "program")
        landing = replace(flow.inputs["payments"], late=policy, removed=removed)
        self.flow = replace(flow, inputs={"payments": landing})
        self.place = self.project.landing / "small" / "payments"
        self.kind, self.files = kind, 0
        self.place.mkdir(parents=True, exist_ok=True)
        self.open()

    def open(self) -> None:
        """As a new process does."""
        self.runner = TickRunner(self.project)

    def land(self, rows: Sequence[Row], name: str = "") -> Path:
        """Lands rows, of files in one of its own, by a name if it has one."""
        found = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
        table = pa.Table.from_pylist(found, schema=SCHEMA)
        if self.kind == "delta":
            write_deltalake(self.place, table, mode="append")
            return self.place
        self.files += 1
        file = self.place / (name or f"{self.files}.parquet")
        pq.write_table(table, file)
        return file

    def run(self, first: int, last: int) -> list[TickReport]:
        windows = [self.flow.ticks.calendar.window(tick) for tick in range(first, last + 1)]
        return list(self.runner.run(self.flow, windows, lambda _: None))

    def ran(self, *ranges: tuple[int, int]) -> Late:
        for first, last in ranges:
            reports = self.run(first, last)
            assert all(report.committed for report in reports), reports[-1].failure
        return self

    def correct(self, first: int) -> list[TickReport]:
        window = self.flow.ticks.calendar.window(first)
        reports = list(self.runner.correct(self.flow, window, lambda _: None))
        assert all(report.committed for report in reports), reports[-1].failure
        return reports

    def edit(self, text: str) -> None:
        """The program is another one now."""
        Path(self.flow.program).write_text(text, encoding="utf-8")

    def planned(self, **asked: object) -> DeployPlan:
        """What `hydrotick plan` finds."""
        found = plan_deployment(self.flow, self.runner, DeployOptions(**asked))  # type: ignore[arg-type]
        assert found is not None
        return found

    def deploy(self, text: str, **asked: object) -> DeployPlan:
        """Edits the program and deploys it, as a new process does."""
        self.edit(text)
        self.open()
        found = self.planned(**asked)
        deploy(found, self.runner, lambda _: None)
        self.open()
        return found

    def rollback(self) -> int:
        """Goes back to the deployment before; gives the first tick that was computed again."""
        self.open()
        to = predecessor(self.flow, self.runner)
        roll_back(self.flow, self.runner, to, lambda _: None)
        self.open()
        return to.first

    def verified(self) -> Late:
        """The same; the tables and the ledger agree."""
        assert verify(self.runner.directory(self.flow), measure).problems == ()
        return self

    @property
    def by_name(self) -> Mapping[str, list[str]]:
        """What is committed by what the tables are, wherever they stand."""
        return by_name(self.contents)

    @property
    def waiting(self) -> Mapping[str, LateArrivals]:
        """What is late or changed now."""
        return missing(self.flow, look(self.runner, self.flow))

    def accept(self) -> Mapping[str, LateArrivals]:
        """As `hydrotick accept` does it."""
        reading = look(self.runner, self.flow)
        found = missing(self.flow, reading, undecided=True)
        if found:
            accept(self.runner, self.flow, reading)
        return found

    @property
    def contents(self) -> Mapping[str, list[str]]:
        return contents(self.flow, self.runner)


def at(tick: int, rows: Sequence[Row] = LATE) -> list[Row]:
    """The rows, if they were of another tick."""
    return [(tick, user, amount) for _, user, amount in rows]


def committed(home: Path, policy: str, kind: str = "delta", *, together: bool = False) -> Late:
    """The flow with its first ticks committed, and then rows that are late."""
    late = Late(home, policy, kind)
    late.land(IN_TIME)
    late.ran((0, OPEN - 1)) if together else late.ran((0, 0), (1, 1), (2, 3))
    late.land(LATE)
    return late
