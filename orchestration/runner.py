"""Runs ticks of flows: reads what landed, prepares ticks, judges them, and commits them or not.

One warm Spark session serves all ticks of a process. Nothing here starts it before the first tick
runs. Ticks that are asked for together are computed together, as a range; if something in it is
wrong, halves of it are tried, so that all ticks before the wrong one are committed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from assets.spec import FlowAsset
from hydro_core.errors import HydroError, InfrastructureError
from hydro_core.faults import told_faults
from hydro_core.ir.graph import Endpoint
from hydro_core.plan.tick_plan import TickPlan
from hydro_core.settings import Settings
from orchestration.programs import plan_of
from orchestration.readiness import Ready, ready
from orchestration.report import (
    TickReport,
    checks_passed,
    report_of_committed,
    report_of_error,
    reports_of,
)
from orchestration.settings import ProjectSettings
from orchestration.ticks import Window

if TYPE_CHECKING:
    from hydro_core.spark.batches import Batch
    from hydro_core.spark.batches_landing import InputBatches, Landing
    from hydro_core.spark.pipeline import Pipeline
    from orchestration.quality.validate import Verdict

Log = Callable[[str], None]


class TickRunner:
    """The ticks of all flows of a project; opening it costs nothing."""

    def __init__(self, project: ProjectSettings) -> None:
        self.project = project
        self.now: Callable[[], datetime] = lambda: datetime.now(UTC)
        self._plans: dict[str, TickPlan] = {}
        self._pipelines: dict[str, Pipeline] = {}
        self._reports: dict[str, TickReport] = {}

    @property
    def settings(self) -> Settings:
        """The core's settings as the project changes them."""
        wanted = {"master": self.project.spark_master, "memory": self.project.spark_memory}
        return Settings().with_(**{name: value for name, value in wanted.items() if value})

    def directory(self, flow: FlowAsset) -> Path:
        """Where the flow's tables and ledger are."""
        return self.project.pipelines / flow.name

    def plan(self, flow: FlowAsset) -> TickPlan:
        """The flow's plan, compiled once."""
        if flow.name not in self._plans:
            self._plans[flow.name] = plan_of(flow)
        return self._plans[flow.name]

    def pipeline(self, flow: FlowAsset) -> Pipeline:
        """The flow's pipeline, opened once."""
        from hydro_core.spark.pipeline import Pipeline

        if flow.name not in self._pipelines:
            directory = self.directory(flow)
            self._pipelines[flow.name] = Pipeline(directory, self.plan(flow), self.settings)
        return self._pipelines[flow.name]

    def next_tick(self, flow: FlowAsset) -> int:
        """The first tick that is not committed; the ledger tells, Spark is not needed."""
        from hydro_core.spark.ledger import Ledger

        last = Ledger(self.directory(flow)).last_tick
        return 0 if last is None else last + 1

    def committed_at(self, flow: FlowAsset, tick: int) -> datetime | None:
        """When a tick was committed; None if it is not."""
        from hydro_core.spark.ledger import Ledger

        commit = Ledger(self.directory(flow)).commit_of(tick) if tick >= 0 else None
        return None if commit is None else commit.committed

    def ready(self, flow: FlowAsset) -> Ready:
        """Which ticks may run now, and what the next one waits for; Spark is not needed."""

        def latest(name: str) -> int | datetime | None:
            from hydro_core.spark.batches_landing import latest

            return latest(self._landing(flow, name), flow.ticks.zone)

        return ready(flow, flow.ticks.calendar, latest, self.now())

    def last_report(self, flow: FlowAsset) -> TickReport | None:
        """The report of the tick that this process ran last; None before the first."""
        return self._reports.get(flow.name)

    def last_committed(self, flow: FlowAsset) -> TickReport | None:
        """The report of the last committed tick, from the ledger; None before the first."""
        done = self.next_tick(flow)
        return self._committed(flow, flow.ticks.calendar.window(done - 1)) if done else None

    def warm_up(self) -> None:
        """Starts in the background what the first tick would wait for: the checks' library."""
        threading.Thread(target=partial(__import__, "great_expectations"), daemon=True).start()

    def run(self, flow: FlowAsset, windows: Sequence[Window], log: Log) -> Iterator[TickReport]:
        """Runs ticks, in order, and reports each; after one that is not committed none is run.

        A tick that is committed already is reported again. What is wrong with the program, the
        data or the state is a report with a problem.
        """
        self._reports.pop(flow.name, None)
        try:
            until = self.ready(flow).until
        except HydroError as error:
            first = min(windows, key=lambda window: window.tick)
            judged = is_of_the_tick(error)
            yield TickReport(first, committed=False, problem=str(error), judged=judged)
            return
        for part in self._parts(flow, windows, until):
            for report in self._run_part(flow, part, log):
                self._reports[flow.name] = report
                yield report
                if not report.committed:
                    return

    def judge_again(self, flow: FlowAsset, window: Window, asset: str) -> tuple[Verdict, ...]:
        """Judges a committed tick by its stored tables; nothing if it is not committed."""
        from orchestration.quality.judge import judge_again

        pipeline = self.pipeline(flow)
        if window.tick >= pipeline.next_tick:
            return ()
        return judge_again(flow, pipeline, window.tick, asset)

    def _parts(
        self, flow: FlowAsset, windows: Sequence[Window], until: int
    ) -> Iterator[Sequence[Window]]:
        """The ticks that are done, one by one; then the others as ranges, those from `until` on,
        which may not run yet, apart.
        """
        ordered = sorted(windows, key=lambda window: window.tick)
        done = [window for window in ordered if window.tick < self.pipeline(flow).next_tick]
        yield from ([window] for window in done)
        part: list[Window] = []
        for window in ordered[len(done) :]:
            if part and (
                window.tick > part[-1].tick + 1
                or len(part) == self.project.range_ticks
                or window.tick == until
            ):
                yield part
                part = []
            part.append(window)
        if part:
            yield part

    def _run_part(
        self, flow: FlowAsset, windows: Sequence[Window], log: Log
    ) -> Iterator[TickReport]:
        commit = self.pipeline(flow).ledger.refresh()
        if commit is not None and windows[0].tick <= commit.last:
            yield self._committed(flow, windows[0])
            return
        reports = self._run_range(flow, windows, log)
        if reports[0].committed or len(windows) == 1:
            yield from reports
            return
        log(f"{_span(windows)} cannot be committed together: {reports[0].problem}")
        middle = len(windows) // 2
        for half in (windows[:middle], windows[middle:]):
            for report in self._run_part(flow, half, log):
                yield report
                if not report.committed:
                    return

    def _run_range(self, flow: FlowAsset, windows: Sequence[Window], log: Log) -> list[TickReport]:
        """Computes ticks, writes them ahead of the ledger, and commits them if all checks hold."""
        from orchestration.quality.judge import judge

        pipeline = self.pipeline(flow)
        first, last = windows[0].tick, windows[-1].tick
        if first > pipeline.next_tick:
            return [_too_early(windows[0], flow.ticks.calendar.window(pipeline.next_tick))]
        try:
            pipeline.refuse_unless_next(first)
            self.ready(flow).refuse(windows[-1])
            with told_faults(f"the landings of `{flow.name}`", vanished=True):
                batches = self._batches(flow, windows)
            times = _times(windows)
            with pipeline.prepare(first, last, batches, times=times) as prepared:
                log(f"{_span(windows)}: computed {sum(prepared.rows.values()):,} rows")
                prepared.write()
                judged = judge(flow, pipeline, prepared)
                reports = reports_of(windows, prepared, batches, judged, pipeline)
                if reports[0].committed:
                    passed = checks_passed(judged.verdicts)
                    prepared.commit({"tables": judged.facts, "passed": passed})
                    log(f"{_span(windows)}: committed after {len(judged.verdicts)} checks")
                return reports
        except HydroError as error:
            return [report_of_error(windows[0], error, judged=is_of_the_tick(error))]

    def _batches(self, flow: FlowAsset, windows: Sequence[Window]) -> Mapping[str, Batch]:
        first, last = windows[0].tick, windows[-1].tick
        return self._inputs(flow).read(first, last, _times(windows))

    def _inputs(self, flow: FlowAsset) -> InputBatches:
        from hydro_core.spark.batches_landing import InputBatches

        plan, pipeline = self.plan(flow), self.pipeline(flow)
        landings, items = {}, {}
        for name, node in plan.graph.sources.items():
            landings[name] = self._landing(flow, name)
            items[name] = plan.typed.types[Endpoint(node.id)].item
        small = self.settings.spark.small_write_rows
        return InputBatches(landings, items, lambda: pipeline.spark, small)

    def _landing(self, flow: FlowAsset, name: str) -> Landing:
        from hydro_core.spark.batches_landing import Landing

        where = flow.inputs[name]
        return Landing(self.project.landing / where.path, where.column)

    def _committed(self, flow: FlowAsset, window: Window) -> TickReport:
        pipeline = self.pipeline(flow)
        commit = pipeline.ledger.commit_of(window.tick)
        if commit is None:
            raise LookupError(f"no commit made tick {window.tick}")
        return report_of_committed(flow, pipeline, window, commit)


def _too_early(window: Window, expected: Window) -> TickReport:
    problem = f"it cannot run before {expected.key}, the first that is not committed"
    cure = f"run {expected.key} and those after it first"
    return TickReport(window, False, problem, cure, judged=False)


def is_of_the_tick(error: HydroError) -> bool:
    """Whether an error is due to the program or the data of a tick: tried again, it comes again."""
    return not isinstance(error, InfrastructureError) and error.code not in ("state", "config")


def _times(windows: Sequence[Window]) -> dict[int, tuple[datetime, datetime]]:
    return {window.tick: (window.start, window.end) for window in windows}


def _span(windows: Sequence[Window]) -> str:
    first, last = windows[0].key, windows[-1].key
    return first if len(windows) == 1 else f"{first} to {last}"
