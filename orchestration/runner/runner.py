"""Runs ticks of flows: reads what landed, prepares ticks, judges them, and commits them or not."""

from __future__ import annotations

import importlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from hydro_core.errors import HydroError
from hydro_core.project.flow_asset import FlowAsset
from hydro_core.project.program import refuse_not_growing
from hydro_core.spark.session.ready import ready_for
from hydro_core.ticks.calendar import TickWindow, span
from hydro_core.types.item import QUARANTINE

from ..deploy.deployments import started_empty
from ..flows.flows import Flows, OneLook
from ..flows.landed_past import LandingReads, look
from ..flows.readiness import ReadyTicks, refuse_held
from ..openlineage import Parent, with_lineage
from ..project.logs import log
from ..project.settings import ProjectSettings
from ..quality.suites import landed_verdicts, quarantine_verdicts
from .correction import (
    Log,
    Ranges,
    correct,
    first_to_correct,
    forget_lists,
    is_of_the_tick,
    says,
    seen_again,
)
from .report import TickReport, report_of_committed, report_of_error

if TYPE_CHECKING:
    from ..quality.sample import Sample
    from ..quality.suites import Verdict


# One warm Spark session serves all ticks of a process. Nothing here starts it before the first
# tick runs. Ticks that are asked for together are computed together, as ranges.


_SECONDS_TO_LOOK = 1.0


class _BeforeTicks(NamedTuple):
    """Which ticks may run, and the look at the landings that says so; None: ticks have run since,
    and the next ones look anew.
    """

    ready: ReadyTicks
    landings: OneLook | None = None


class TickRunner(Flows):
    """The ticks of all flows of a project; opening it costs nothing."""

    def __init__(self, project: ProjectSettings) -> None:
        super().__init__(project)
        self._reports: dict[str, TickReport] = {}
        self._samples: dict[str, Sample] = {}
        self.computed_again: Callable[[Sequence[TickWindow]], None] = lambda _: None
        """Called during a correction with the ticks that have been computed, as ranges."""
        self.progress: Callable[[str], None] = lambda _: None
        """Called with what came late or was changed, and with what that has led to."""

    def sample(self, flow: FlowAsset) -> Sample | None:
        """What judges the flow's outputs by a few keys; None: it is switched off, or cannot."""
        keys = self.project.sample_keys if flow.sample_keys is None else flow.sample_keys
        shown = self.deployments.active_or_draft(flow)
        made = None if shown is None else shown.deployment
        # What began without a past gives something else than the program over what is landed, and
        # so does what is another each time.
        if not keys or (made is not None and (started_empty(made) or not made.repeatable)):
            return None
        program = self.deployments.program(flow)
        known = self._samples.get(flow.name)
        if known is None or known.program.typed is not program.typed or known.keys != keys:
            # A run that hands its ticks to a worker judges none.
            from ..quality.sample import Sample

            known = self._samples[flow.name] = Sample(flow, program, self.inputs, keys)
        return known

    def sampled(self, flow: FlowAsset) -> tuple[str, ...]:
        """The outputs that are judged by a few keys."""
        sample = self.sample(flow)
        return () if sample is None else tuple(sample.drivers)

    def last_report(self, flow: FlowAsset) -> TickReport | None:
        """The report of the tick that this process ran last, or had run; None before the first."""
        return self._reports.get(flow.name)

    def remember(self, flow: FlowAsset, report: TickReport) -> None:
        """Takes the report of a tick that another process has run as one of this process's."""
        self._reports[flow.name] = report

    def last_committed(self, flow: FlowAsset) -> TickReport | None:
        """The report of the last committed tick, from the ledger; None before the first."""
        done = self.next_tick(flow)
        return self._committed(flow, flow.ticks.calendar.window(done - 1)) if done else None

    def warm_up(self) -> None:
        """Has what the first tick needs, and would wait for: what Spark starts with is made ready
        here, since what is printed within a run of Dagster nobody sees; the checks' library is
        loaded in the background.
        """
        ready_for(self.settings.spark)
        # It loads SQLAlchemy's mapper, and Dagster's storage fails while that is half loaded.
        importlib.import_module("sqlalchemy.orm")
        load = partial(importlib.import_module, "hydrotick.quality.library")
        threading.Thread(target=load, daemon=True).start()

    def run(
        self, flow: FlowAsset, windows: Sequence[TickWindow], log: Log, parent: Parent | None = None
    ) -> Iterator[TickReport]:
        """Runs ticks, in order, and reports each; after one that is not committed none is run.

        A tick that is committed already is reported again. What is wrong with the program, the
        data or the state is a report with a problem. It is told that `parent` has started them.
        """
        self._reports.pop(flow.name, None)
        self.wait_for_work(flow, log)
        try:
            self.deployments.prepare(flow)
            refuse_not_growing(flow, self.plan(flow))
            landings = self.one_look(flow)
            before = _BeforeTicks(self.ready(flow, landings), landings)
        except HydroError as error:
            first = min(windows, key=lambda window: window.tick)
            judged = is_of_the_tick(error)
            yield TickReport(first, committed=False, problem=str(error), judged=judged)
            return
        for part in self._parts(flow, windows, before.ready.until):
            reports = self._run_part(flow, part, log, before, parent)
            if part[0].tick >= self.next_tick(flow):
                reports = with_lineage(reports, part, self, flow, parent, log)
                # What lands while these ticks run is for the next look.
                before = _BeforeTicks(before.ready)
            for report in reports:
                self._reports[flow.name] = report
                yield report
                if not report.committed:
                    return

    def correct(
        self,
        flow: FlowAsset,
        first: TickWindow,
        log: Log,
        reading: LandingReads | None = None,
        parent: Parent | None = None,
    ) -> Iterator[TickReport]:
        """Computes the committed ticks from `first` on again, in one commit, and reports each.

        If one of them fails, it alone is reported, and all is as it was. What is landed now is
        read, or what `reading` has seen. It is told that `parent` has started it.
        """
        self._reports.pop(flow.name, None)
        if reading is None:
            self.wait_for_work(flow, log)
        last = flow.ticks.calendar.window(max(first.tick, self.next_tick(flow) - 1))
        windows = (first,) if first == last else (first, last)
        reports = correct(self, flow, first, log, reading, self.computed_again)
        for report in with_lineage(reports, windows, self, flow, parent, log):
            self._reports[flow.name] = report
            yield report

    def judge_again(self, flow: FlowAsset, window: TickWindow, asset: str) -> tuple[Verdict, ...]:
        """Judges a committed tick by its stored tables; nothing if it is not committed."""
        from ..quality.judge import judge_again

        pipeline = self.pipeline(flow)
        if window.tick >= pipeline.next_tick:
            return ()
        if asset.startswith("landing/"):
            report = self._committed(flow, window)
            landed = landed_verdicts(self.asset(flow), report.empty, report.noticed)
            return tuple(verdict for judged, verdict in landed if judged == asset)
        found = judge_again(self.asset(flow), pipeline, window.tick, asset)
        if asset == QUARANTINE:
            rows = self._committed(flow, window).rows
            found += tuple(verdict for _, verdict in quarantine_verdicts(flow, window.key, rows))
        sample = self.sample(flow)
        if sample is not None:
            found += tuple(sample.judge_again(pipeline, asset, window.tick))
        return found

    def wait_for_work(self, flow: FlowAsset, log: Log) -> None:
        """Waits while somebody deploys, corrects or compacts the flow, which is no failure of its
        ticks, and says once whose work that is.

        Such work holds the right to write for as long as it takes. Whoever else holds it, a tick,
        say, is done in moments, and who meets that is refused.
        """
        # Imported here: what runs ticks is opened by who only asks, too.
        from hydro_core.spark.store.ledger.lock import long_work

        said = ""
        while work := long_work(self.directory(flow)):
            if work != said:
                for tell in (log, self.progress):
                    tell(f"it waits for {work}")
                said = work
            time.sleep(_SECONDS_TO_LOOK)

    def _parts(
        self, flow: FlowAsset, windows: Sequence[TickWindow], until: int
    ) -> Iterator[Sequence[TickWindow]]:
        """The ticks that are done, one by one; then the others as ranges, those from `until` on,
        which may not run yet, apart.
        """
        ordered = sorted(windows, key=lambda window: window.tick)
        done = [window for window in ordered if window.tick < self.pipeline(flow).next_tick]
        yield from ([window] for window in done)
        part: list[TickWindow] = []
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
        self,
        flow: FlowAsset,
        windows: Sequence[TickWindow],
        log: Log,
        before: _BeforeTicks,
        parent: Parent | None,
    ) -> Iterator[TickReport]:
        """Runs open ticks that follow each other, after what came for committed ones had its way:
        where these are computed again, they are reported first. A committed one is reported again.
        """
        pipeline = self.pipeline(flow)
        commit = pipeline.ledger.refresh()
        if commit is not None and windows[0].tick <= commit.last:
            yield self._committed(flow, windows[0])
            return
        reading, first = LandingReads(self, flow, {}), None
        if windows[0].tick == pipeline.next_tick:
            try:
                # What may not run is told as such, whatever has landed.
                for window in (windows[0], windows[-1]):
                    before.ready.refuse(window)
                reading = look(self, flow, before.landings)
                refuse_held(flow, reading.seen, windows[0].tick)
                first = first_to_correct(self.asset(flow), reading.seen)
            except HydroError as error:
                yield report_of_error(windows[0], error, judged=is_of_the_tick(error))
                return
        if first is not None:
            for report in self._corrected(flow, reading, first, log, parent):
                yield report
                if not report.committed:
                    return
            reading = seen_again(self, flow, reading)
        asset, sample = self.asset(flow), self.sample(flow)
        judge = None if sample is None else partial(sample.judge, seen=reading.seen)
        ranges = Ranges(asset, pipeline, reading, log, before.ready.refuse, reading.after, judge)
        for report in ranges.run(windows):
            if report.committed and report.window == windows[0]:
                self._tell(*report.notices(flow.name))
            yield report
        forget_lists(self, flow)

    def _corrected(
        self, flow: FlowAsset, reading: LandingReads, first: int, log: Log, parent: Parent | None
    ) -> Iterator[TickReport]:
        """The ticks from `first` on, computed again with what is late, and what that has done."""
        window = flow.ticks.calendar.window(first)
        self._tell(f"{window.key} and the ticks after it are corrected first:")
        for line in says(flow, reading.seen):
            log(f"for committed ticks: {line}")
            self._tell(f"  {line}")
        report = None
        for report in self.correct(flow, window, log, reading, parent):
            yield report
        if report is not None and report.corrected is not None:
            self._tell(str(report.corrected), *report.corrected.lines)

    def _tell(self, *lines: str) -> None:
        for line in lines:
            self.progress(line)

    def _committed(self, flow: FlowAsset, window: TickWindow) -> TickReport:
        pipeline = self.pipeline(flow)
        commit = pipeline.ledger.commit_of(window.tick)
        if commit is None:
            raise LookupError(f"no commit made tick {window.tick}")
        return report_of_committed(flow, pipeline, window, commit)


def logged(reports: Iterable[TickReport], flow: str, run: str | None) -> Iterator[TickReport]:
    """The reports of one piece of work as they come; what becomes of its ticks is logged.

    Args:
        reports: of the ticks; they run as these are asked for.
        flow: whose ticks they are.
        run: the run of Dagster that they are for.
    """
    began, commit = time.monotonic(), list[TickReport]()
    log("begun", f"{flow}: begins", flow=flow, run=run)
    ended = False
    try:
        for report in reports:
            if commit and commit[-1].commit != report.commit:
                _committed(commit, flow, run)
                commit = []
            if report.committed:
                commit.append(report)
            else:
                _failed(report, flow, run)
            yield report
        ended = True
    finally:
        if commit:
            _committed(commit, flow, run)
        seconds = round(time.monotonic() - began, 3)
        how = "ended" if ended else "ended before its time"
        log("ended", f"{flow}: {how}, after {seconds:.1f} s", flow=flow, run=run, seconds=seconds)


def _committed(commit: Sequence[TickReport], flow: str, run: str | None) -> None:
    """One commit, by the reports of its ticks."""
    first = commit[0]
    keys = first.window.key, commit[-1].window.key
    rows = sum(n for one in commit for name, n in one.rows.items() if name.startswith("landing/"))
    how = "committed before" if first.again else "corrected" if first.corrected else "committed"
    took = "" if first.seconds is None or first.again else f" in {first.seconds:.1f} s"
    log(
        how.replace(" ", "_"),
        f"{flow}: {span(keys)} {how}{took}, {rows:,} rows read",
        flow=flow,
        ticks=keys,
        run=run,
        commit=first.commit,
        rows_read=rows,
        seconds=None if first.seconds is None else round(first.seconds, 3),
        warnings=[line for one in commit for line in one.warnings(flow)] or None,
    )


def _failed(report: TickReport, flow: str, run: str | None) -> None:
    log(
        "failed",
        f"{flow}: {report.failure}",
        logging.ERROR,
        flow=flow,
        ticks=(report.window.key, report.window.key),
        run=run,
        cause=report.problem,
        cure=report.cure or None,
        stops=report.judged,
    )


@dataclass(frozen=True, slots=True)
class TickRequest:
    """The ticks that are `asked` for, and those that are to be reported `also`.

    `corrected`: of those that are asked for, the committed ones are computed again. `parent` is
    what has started them.
    """

    asked: frozenset[TickWindow]
    also: frozenset[TickWindow] = frozenset()
    corrected: bool = False
    parent: Parent | None = None

    @property
    def first(self) -> TickWindow:
        """The first tick that is asked for."""
        return min(self.asked, key=lambda window: window.tick)

    def reports(self, runner: TickRunner, flow: FlowAsset, log: Log) -> Iterator[TickReport]:
        """Runs the ticks of a flow and reports each; after one that fails none is run."""
        run = None if self.parent is None else self.parent.run
        yield from logged(self._reports(runner, flow, log), flow.name, run)

    def _reports(self, runner: TickRunner, flow: FlowAsset, log: Log) -> Iterator[TickReport]:
        done = set[TickWindow]()
        if self.corrected and self.first.tick < runner.next_tick(flow):
            for report in runner.correct(flow, self.first, log, parent=self.parent):
                done.add(report.window)
                yield report
        left = (self.asked | self.also) - done
        if left:
            yield from runner.run(flow, list(left), log, self.parent)
