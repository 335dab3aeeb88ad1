"""From the values of a tick column to ticks, for a range.

A column holds the number of the tick, or a date or time that lies in the tick's window. Dates, and
times without a zone, are those of the wall clocks of the ticks' own zone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.types.values import ValueProblem

if TYPE_CHECKING:
    import pyarrow.dataset as ds

TimeRange = tuple[datetime, datetime]
Numbers = npt.NDArray[np.int64]

_TIME = pa.timestamp("us", tz="UTC")
NONE = -1
"""The number of rows that are of no tick of the range."""


class TickLookup(Protocol):
    """Which ticks rows are of, by what their tick column holds; `NONE`: of none that is wanted."""

    def of_moments(self, moments: pa.Array[Any]) -> Numbers:
        """The ticks of moments in UTC."""

    def numbers(self, values: pa.Array[Any]) -> Numbers:
        """The ticks of the values of the column, where it has the number of the tick."""


@dataclass(frozen=True, slots=True)
class Axis:
    """The ticks `first` to `last`, told by a column; `starts` are those of their windows, and the
    end of the last one: none, where nobody knows them.
    """

    column: str
    first: int
    last: int
    starts: Sequence[datetime]
    zone: str = "UTC"

    @staticmethod
    def of(
        column: str, ticks: tuple[int, int], times: Mapping[int, TimeRange], zone: str = "UTC"
    ) -> Axis:
        """The axis of a range whose windows, if it has any, follow each other without a gap."""
        first, last = ticks
        windows = [times[t] for t in range(first, last + 1) if t in times]
        for (_, end), (start, _) in pairwise(windows):
            if end != start:
                raise ValueError("the windows of a range follow each other without a gap")
        if len(windows) < last - first + 1:
            return Axis(column, first, last, (), zone)
        return Axis(column, first, last, (*(s for s, _ in windows), windows[-1][1]), zone)

    def within(self, kind: pa.DataType) -> ds.Expression:
        """What surely holds of the rows of the range; it also holds of few others."""
        field = pc.field(self.column)
        if pa.types.is_integer(kind):
            return _both(field >= self.first, field <= self.last)
        # Bounds of the column's own type let the files' statistics tell what need not be read.
        low, high = (self._bound(moment, kind) for moment in self._ends())
        return _both(field >= low, field < high)

    def numbers(self, values: pa.ChunkedArray[Any] | pa.Array[Any]) -> Numbers:
        """The ticks of the values of the column, `NONE` where they are of none of the range."""
        found: Any = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if pa.types.is_integer(found.type):
            return self._known(_ints(found.cast(pa.int64())))
        if pa.types.is_date(found.type) or found.type.tz is None:
            moments: Any = pc.assume_timezone(
                found.cast(pa.timestamp("us")),
                self.zone,
                ambiguous="earliest",
                nonexistent="latest",
            )
        else:
            moments = found
        return self.of_moments(moments.cast(_TIME, safe=False))

    def of_moments(self, moments: pa.Array[Any]) -> Numbers:
        """The ticks of moments in UTC.

        Raises:
            ValueProblem: the ticks have no windows.
        """
        self._ends()
        starts = np.array([micros(start) for start in self.starts])
        found = np.searchsorted(starts, _ints(moments.cast(pa.int64())), side="right") - 1
        return self._known(found + self.first)

    def _ends(self) -> tuple[datetime, datetime]:
        if not self.starts:
            raise ValueProblem(f"tick {self.first} has no window, so a time cannot tell it")
        return self.starts[0], self.starts[-1]

    def _known(self, numbers: Numbers) -> Numbers:
        there = (numbers >= self.first) & (numbers <= self.last)
        return np.where(there, numbers, NONE)

    def _bound(self, moment: datetime, kind: pa.DataType) -> Any:
        """The moment as a value of the column; a date begins at its midnight."""
        there = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            return pa.scalar(there.replace(tzinfo=None), pa.timestamp("us")).cast(kind)
        wall = there.astimezone(ZoneInfo(self.zone)).replace(tzinfo=None)
        if self.zone != "UTC" and pa.types.is_timestamp(kind):
            # What the clocks show goes back now and then: some more are read, and told apart.
            wall += timedelta(hours=-3 if moment == self.starts[0] else 3)
        if pa.types.is_date(kind):
            is_midnight = wall.time() == time.min
            day = wall.date() if is_midnight else wall.date() + timedelta(days=1)
            return pa.scalar(day, pa.date32()).cast(kind)
        return pa.scalar(wall, pa.timestamp("us")).cast(kind)


def _both(one: ds.Expression, other: ds.Expression) -> ds.Expression:
    both: ds.Expression = one & other
    return both


def _ints(values: pa.Array[Any]) -> Numbers:
    found: Numbers = values.fill_null(NONE).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def micros(moment: datetime) -> int:
    """The microseconds since 1970, of a moment in UTC where it names no zone."""
    there = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = there - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
