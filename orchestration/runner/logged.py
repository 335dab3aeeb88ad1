"""Ticks as they are logged: each piece of work by its begin, its commits, and its end."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence

from hydro_core.ticks.calendar import span

from ..project.logs import log
from .report import TickReport


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
