"""The ticks of a flow as Dagster has them: partitions by time, whose keys are the ticks' own."""

from __future__ import annotations

import dagster as dg

from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.schedule import cron_of


def partitions_of(calendar: Calendar) -> dg.TimeWindowPartitionsDefinition:
    """The ticks of a calendar as partitions."""
    return dg.TimeWindowPartitionsDefinition(
        # Dagster takes wall clocks' times, whatever zone they say they are of.
        start=calendar.local(calendar.origin),
        end=None if calendar.last is None else calendar.local(calendar.last),
        cron_schedule=cron_of(calendar),
        fmt=calendar.key_format,
        timezone=calendar.zone,
    )
