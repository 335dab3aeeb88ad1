"""The ticks of rows by a calendar, however many ticks there are: those before an open one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.ticks.axis import NONE, Axis, Numbers
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.moments import moment_of
from hydro_core.types.values import ValueProblem

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ONE_BY_ONE = 1_000
"""So many different moments are looked up one by one; of more the windows are listed."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The ticks from 0 up to `until`, which is not among them; None: all ticks."""

    column: str | None
    calendar: Calendar | None
    until: int | None = None
    zone: str = "UTC"

    def of_moments(self, moments: pa.Array[Any]) -> Numbers:
        """The ticks of moments in UTC, `NONE` where they are of none of these."""
        micros: Any = moments.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
        values = micros.fill_null(0).to_numpy(zero_copy_only=False)
        found, places = np.unique(values, return_inverse=True)
        ticks = self._ticks(found)[places] if len(found) else np.array([], np.int64)
        there = pc.is_valid(moments).to_numpy(zero_copy_only=False)
        return self._known(np.where(there, ticks, NONE))

    def numbers(self, values: pa.Array[Any]) -> Numbers:
        """The ticks of the numbers of ticks."""
        found: Any = values.cast(pa.int64()).fill_null(NONE)
        return self._known(found.to_numpy(zero_copy_only=False).astype(np.int64))

    def tick_of(self, value: Any) -> int | None:
        """The tick of what a tick column holds, which may be none of these; None: it tells none."""
        if isinstance(value, str) and value.lstrip("-").isdecimal():
            return int(value)
        try:
            moment = moment_of(value, self.zone)
        except ValueProblem:
            return None
        return moment if isinstance(moment, int) else self._calendar().tick_of(moment)

    def axis(self, lowest: int) -> Axis:
        """The ticks from `lowest` on, as Spark is told of them."""
        if self.column is None or self.until is None:
            raise ValueError("only ticks that end have an axis, and a column tells them")
        last = self.until - 1
        if self.calendar is None:
            return Axis(self.column, lowest, last, (), self.zone)
        starts = [self.calendar.window(tick).start for tick in range(lowest, last + 2)]
        return Axis(self.column, lowest, last, starts, self.zone)

    def _ticks(self, micros: Numbers) -> Numbers:
        """The ticks of different moments, in order."""
        calendar = self._calendar()
        first, last = (calendar.tick_of(_moment(micros[place])) for place in (0, -1))
        first = max(first, 0)
        last = last if self.until is None else min(last, self.until)
        if len(micros) <= max(_ONE_BY_ONE, last - first):
            return np.array([calendar.tick_of(_moment(value)) for value in micros], np.int64)
        starts = [calendar.window(tick).start - _EPOCH for tick in range(first, last + 2)]
        bounds = np.array([start // timedelta(microseconds=1) for start in starts], np.int64)
        found: Numbers = np.searchsorted(bounds, micros, side="right") - 1 + first
        return np.where(micros < bounds[0], NONE, found)

    def _known(self, ticks: Numbers) -> Numbers:
        there = ticks >= 0
        if self.until is not None:
            there &= ticks < self.until
        return np.where(there, ticks, NONE)

    def _calendar(self) -> Calendar:
        if self.calendar is None:
            raise ValueProblem("a time cannot tell a tick where ticks have no windows")
        return self.calendar


def _moment(micros: Any) -> datetime:
    return _EPOCH + timedelta(microseconds=int(micros))
