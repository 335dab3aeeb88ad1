"""A flow whose ledger and whose records in Dagster are made as a test wants them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster as dg

from hydro_core.project.flow_asset import FlowAsset
from hydro_core.spark.store.ledger.ledger import Ledger
from hydro_core.spark.store.ledger.records import Commit
from hydrotick.code_location.next_run import NextRun, next_run
from hydrotick.code_location.records import last_key
from hydrotick.flows.readiness import ReadyTicks
from hydrotick.instance.run_tags import FLOW_TAG, JUDGED_TAG, PARTITION
from hydrotick.project.settings import ProjectSettings
from hydrotick.runner.runner import TickRunner
from tests.orchestration.small import small_flow

RUN = dg.DagsterRunStatus


class Case:
    """A flow with some committed ticks, and an instance with runs of it."""

    def __init__(
        self, home: Path, instance: dg.DagsterInstance, flow: FlowAsset | None = None
    ) -> None:
        self.flow: FlowAsset = flow or small_flow(home / "program")
        self.runner = TickRunner(ProjectSettings(home=home, range_ticks=8))
        self.axis = self.flow.ticks.calendar
        self.instance = instance

    def commit(self, first: int, last: int, *, record: bool = True) -> None:
        """As if ticks had run, and had been recorded or not."""
        plan = self.runner.deployments.prepare(self.flow).name
        ledger = Ledger(self.runner.directory(self.flow))
        ledger.create()
        done = ledger.refresh()
        then, number = datetime.now(UTC) - timedelta(hours=1), done.sequence + 1 if done else 0
        ledger.append(Commit(number, first, last, plan, {}, {}, started=then, committed=then))
        for tick in range(first, last + 1) if record else ():
            self.record(tick)

    def record(self, tick: int) -> None:
        """Makes Dagster know a tick."""
        key = last_key(self.flow, self.runner)
        self.instance.report_runless_asset_event(
            dg.AssetMaterialization(key, partition=self.axis.window(tick).key)
        )

    def run(self, status: RUN, tick: int, *, judged: bool = False, **more: Any) -> str:
        """A run of a tick that came to this."""
        run_id = str(uuid4())
        tags = {FLOW_TAG: "small", PARTITION: self.axis.window(tick).key}
        if judged:
            tags[JUDGED_TAG] = run_id
        found = {"job_name": "small_job", "status": status, "tags": tags, **more}
        self.instance.add_run(dg.DagsterRun(run_id=run_id, **found))
        return run_id

    def next(self, later: timedelta = timedelta(0)) -> NextRun:
        """What runs next when 20 ticks may run; runs that are added ended today, so the moment is
        counted from now.
        """
        self.runner.now = lambda: datetime.now(UTC) + later
        due = ReadyTicks(self.axis, 20, "it is not over")
        self.runner.ready = lambda *_: due  # type: ignore[method-assign]
        return next_run(self.flow, self.runner, self.instance)

    def at(self, moment: datetime) -> None:
        """It is another time."""
        self.runner.now = lambda: moment

    def keys(self, found: NextRun) -> tuple[str, str]:
        assert found.ticks is not None, found.says
        first, last = found.ticks
        return first.key, last.key
