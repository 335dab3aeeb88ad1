"""Ticks and tick keys: Dagster's time-window partitions are the ticks 0, 1, 2, … of a flow.

A tick key is the start of the tick's window as Dagster prints it; the tick's number is how many
windows lie before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

import dagster as dg

from assets.spec import Ticks

_CRON = {
    "15m": "*/15 * * * *",
    "1h": "0 * * * *",
    "1d": "0 0 * * *",
    "1w": "0 0 * * 1",
    "1mo": "0 0 1 * *",
}
_FORMAT = {
    "15m": "%Y-%m-%d-%H:%M",
    "1h": "%Y-%m-%d-%H:%M",
    "1d": "%Y-%m-%d",
    "1w": "%Y-%m-%d",
    "1mo": "%Y-%m-%d",
}
_LENGTH = {
    "15m": timedelta(minutes=15),
    "1h": timedelta(hours=1),
    "1d": timedelta(days=1),
    "1w": timedelta(weeks=1),
}


@dataclass(frozen=True)
class Window:
    """A tick with its number, its Dagster key, and its window [start, end) in UTC."""

    tick: int
    key: str
    start: datetime
    end: datetime


@dataclass(frozen=True)
class TickAxis:
    """The tick axis of one flow."""

    ticks: Ticks

    @cached_property
    def partitions(self) -> dg.TimeWindowPartitionsDefinition:
        """The axis as Dagster knows it."""
        return dg.TimeWindowPartitionsDefinition(
            start=self._origin,
            end=self.ticks.end,
            cron_schedule=_CRON[self.ticks.every],
            fmt=_FORMAT[self.ticks.every],
            timezone="UTC",
        )

    @property
    def _origin(self) -> datetime:
        start = self.ticks.start
        return start.replace(tzinfo=UTC) if start.tzinfo is None else start.astimezone(UTC)

    def window(self, tick: int) -> Window:
        """The window of tick `tick` (from 0)."""
        start = self._start(tick)
        key = start.strftime(_FORMAT[self.ticks.every])
        return Window(tick, key, start, self._start(tick + 1))

    def window_of(self, key: str) -> Window:
        """The window whose Dagster key is `key`; ValueError for a key that is not of this axis."""
        start = datetime.strptime(key, _FORMAT[self.ticks.every]).replace(tzinfo=UTC)
        window = self.window(self._number(start))
        if window.key != key:
            raise ValueError(f"{key!r} is not the start of a tick of {self.ticks.every}")
        return window

    def closed(self, now: datetime) -> int:
        """How many ticks' windows have ended at `now`."""
        end = self.ticks.end
        if end is not None:
            now = min(now, end.replace(tzinfo=UTC) if end.tzinfo is None else end)
        return max(0, self._number(now)) if now >= self._origin else 0

    def _start(self, tick: int) -> datetime:
        if self.ticks.every != "1mo":
            return self._origin + tick * _LENGTH[self.ticks.every]
        months = self._origin.year * 12 + self._origin.month - 1 + tick
        return self._origin.replace(year=months // 12, month=months % 12 + 1)

    def _number(self, moment: datetime) -> int:
        if self.ticks.every != "1mo":
            return (moment - self._origin) // _LENGTH[self.ticks.every]
        origin = self._origin
        return (moment.year - origin.year) * 12 + moment.month - origin.month
