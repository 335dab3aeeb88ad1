"""Ticks and tick keys: Dagster's time-window partitions are the ticks 0, 1, 2, … of a flow.

The flow's calendar says which windows there are; here it gets the form in which Dagster has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from hydro_core.project.flow_asset import Ticks
from hydro_core.ticks.calendar import Calendar, TickWindow

if TYPE_CHECKING:
    import dagster as dg

__all__ = ["TickAxis", "TickWindow", "times_of"]


def times_of(windows: Sequence[TickWindow]) -> dict[int, tuple[datetime, datetime]]:
    """When the ticks begin and end."""
    return {window.tick: (window.start, window.end) for window in windows}


class TickAxis(Calendar):
    """The tick axis of one flow."""

    def __init__(self, ticks: Ticks) -> None:
        calendar = ticks.calendar
        super().__init__(**{f.name: getattr(calendar, f.name) for f in fields(calendar)})

    @cached_property
    def partitions(self) -> dg.TimeWindowPartitionsDefinition:
        """The axis as Dagster knows it."""
        # Imported here: commands that only read tables do without the second that Dagster takes.
        import dagster as dg

        return dg.TimeWindowPartitionsDefinition(
            # Dagster takes wall clocks' times, whatever zone they say they are of.
            start=self.local(self.origin),
            end=None if self.last is None else self.local(self.last),
            cron_schedule=self.cron,
            fmt=self.key_format,
            timezone=self.zone,
        )
