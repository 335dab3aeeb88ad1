"""Committed ticks are run again beside the tables that serve, as ranges that are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hydro_core.ticks.calendar import TickWindow

from .ranges import Ranges
from .report import TickReport

if TYPE_CHECKING:
    from hydro_core.spark.pipeline.rework import Rework

OnComputed = Callable[[Sequence[TickWindow]], None]
"""Called with ticks that have been computed."""


def run_staged(
    rework: Rework, ranges: Ranges, together: int, computed: OnComputed
) -> list[TickReport]:
    """The reports of all ticks of a rework; or the one of the tick that fails, and none after it.

    Args:
        together: how many make one range.
        computed: told of each range that is done.
    """
    reports: list[TickReport] = []
    for ticks in parts(rework, together):
        windows = [ranges.flow.ticks.calendar.window(tick) for tick in ticks]
        for report in ranges.run(windows):
            if not report.committed:
                return [report]
            reports.append(report)
        computed(windows)
    return reports


def parts(rework: Rework, together: int) -> Iterator[range]:
    """The ticks of a rework, so many at a time."""
    for tick in range(rework.first, rework.last + 1, together):
        yield range(tick, min(tick + together, rework.last + 1))


def kept_for_checks(rework: Rework) -> Mapping[str, Any]:
    """What the ledger keeps for the checks of ticks that have run beside."""
    from ..quality.facts import kept_of_all

    made = rework.staging.ledger.commits(since=rework.first)
    return {**made[-1].checks, "tables": kept_of_all(made)}
