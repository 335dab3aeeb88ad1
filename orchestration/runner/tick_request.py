"""Ticks that somebody asks for, as one piece of work: what is to be corrected, run and reported."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hydro_core.project.flow_asset import FlowAsset
from hydro_core.ticks.calendar import TickWindow, span

from ..openlineage import Parent
from ..project.logs import log
from .ranges import Log
from .report import TickReport
from .runner import TickRunner


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
