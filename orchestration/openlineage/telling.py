"""Tells of the runs of a flow's ticks, where the project's settings ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from hydro_core.errors import HydroError

from ..report import TickReport
from ..settings import ProjectSettings
from ..ticks import Window
from .client import send
from .events import Run

Begin = Callable[[Sequence[Window]], Run]


def told(
    reports: Iterable[TickReport],
    windows: Sequence[Window],
    begin: Begin,
    project: ProjectSettings,
    log: Callable[[str], None],
) -> Iterator[TickReport]:
    """The reports of ticks that are run together as they come; what becomes of them is told.

    Args:
        reports: of the ticks; they run as these are asked for.
        windows: the ticks.
        begin: makes the run; not asked where nobody is to be told.
        project: says who is told.
        log: takes warnings.
    """
    if project.openlineage is None:
        yield from reports
        return
    try:
        run = begin(windows)
    except HydroError:
        # What is wrong with it the ticks say.
        yield from reports
        return
    seen: list[TickReport] = []
    with _run(run, seen, project, log):
        for report in reports:
            seen.append(report)
            yield report


@contextmanager
def _run(
    run: Run, seen: Sequence[TickReport], project: ProjectSettings, log: Callable[[str], None]
) -> Iterator[None]:
    to = project.openlineage or ""
    send(run.started(), to, project.openlineage_key, log)
    try:
        yield
    finally:
        # Whatever stops the ticks, a signal say, the run has an end.
        failed = any(not report.committed for report in seen)
        how = "FAIL" if failed else "COMPLETE" if seen else "ABORT"
        send(run.ended(how, seen), to, project.openlineage_key, log)
