"""From the values of a tick column to ticks.

A column holds the number of the tick, or a date or time that lies in the tick's window. Dates, and
times without a zone, are those of the wall clocks of the ticks' own zone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hydro_core.ticks.calendar import Calendar, Feed, zone_of
from hydro_core.types.item import TIMESTAMP
from hydro_core.types.values import ValueProblem, conform, cut_to_micros

if TYPE_CHECKING:
    import pyarrow.dataset as ds


Numbers = npt.NDArray[np.int64]

_TIME = pa.timestamp("us", tz="UTC")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OFFSET = re.compile(r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$")
NONE = -1
"""The number of rows that are of no tick of the range."""


@dataclass(frozen=True, slots=True)
class TickRange:
    """The ticks `first` to `last`, or all that follow `first` where `last` is None.

    Args:
        first: the first tick.
        last: the last one.
        calendar: their windows; None: they have none, and only numbers tell them.
        numbered: whose ticks the numbers are of; None: these.
    """

    first: int
    last: int | None
    calendar: Calendar | None = None
    numbered: Calendar | None = None

    @property
    def zone(self) -> str:
        """That of dates, and of times that name none."""
        return zone_of(self.calendar)

    @property
    def ticks(self) -> range:
        """The ticks of a range that has a last one."""
        return range(self.first, self._last + 1)

    @property
    def starts(self) -> Sequence[datetime]:
        """When the ticks begin, and the end of the last one; none where they have no windows."""
        if self.calendar is None:
            return ()
        return tuple(map(self.calendar.start_of, range(self.first, self._last + 2)))

    def within(self, column: str, kind: pa.DataType) -> ds.Expression:
        """What surely holds of the rows of the range; it also holds of few others."""
        field = pc.field(column)
        if pa.types.is_integer(kind):
            feed, ticks = self.feed, self.ticks
            told = ticks if feed is None else feed.needed(ticks[0], ticks[-1])
            return _both(field >= told.start, field < told.stop)
        calendar = self._calendar()
        # Bounds of the column's own type let the files' statistics tell what need not be read.
        low = self._bound(calendar.start_of(self.first), kind, -3)
        high = self._bound(calendar.start_of(self._last + 1), kind, 3)
        return _both(field >= low, field < high)

    def before(self, column: str, kind: pa.DataType) -> ds.Expression:
        """What surely holds of the rows before the range; it also holds of few others."""
        field = pc.field(column)
        if pa.types.is_integer(kind):
            early: ds.Expression = field < self.first
        else:
            early = field < self._bound(self._calendar().start_of(self.first), kind, 3)
        return early

    def numbers(self, values: pa.ChunkedArray[Any] | pa.Array[Any]) -> Numbers:
        """The ticks of the values of the column, `NONE` where they are of none of the range."""
        found: Any = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if pa.types.is_integer(found.type):
            return self._known(self._arrived(_ints(found.cast(pa.int64()))))
        if pa.types.is_date(found.type) or found.type.tz is None:
            return self.of_moments(_walls_in_zone(found.cast(pa.timestamp("us")), self.zone))
        return self.of_moments(found)

    def of_moments(self, moments: pa.Array[Any]) -> Numbers:
        """The ticks of moments in UTC.

        Raises:
            ValueProblem: the ticks have no windows.
        """
        self._calendar()
        values = _ints(moments.cast(_TIME, safe=False).cast(pa.int64()), 0)
        found, places = np.unique(values, return_inverse=True)
        ticks = self._ticks(found)[places] if len(found) else found
        return np.where(pc.is_valid(moments).to_numpy(zero_copy_only=False), ticks, NONE)

    @property
    def feed(self) -> Feed | None:
        """How numbers of ticks of another calendar tell these; None: they are these ticks' own."""
        return None if self.numbered is None else Feed(self._calendar(), self.numbered)

    def _arrived(self, numbers: Numbers) -> Numbers:
        feed = self.feed
        if feed is None or not len(numbers):
            return numbers
        told, places = np.unique(numbers, return_inverse=True)
        own = [NONE if number < 0 else feed.arrives(number) for number in told.tolist()]
        return np.array(own, np.int64)[places]

    def _ticks(self, moments: Numbers) -> Numbers:
        """The ticks of different microseconds since 1970, in order."""
        calendar = self._calendar()
        low, high = (calendar.tick_of(_moment(moments[place])) for place in (0, -1))
        low, high = max(low, self.first), high if self.last is None else min(high, self.last)
        if len(moments) < high - low:
            each = np.array([calendar.tick_of(_moment(value)) for value in moments], np.int64)
            return self._known(each)
        starts = [micros(calendar.start_of(tick)) for tick in range(low, high + 2)]
        found = np.searchsorted(np.array(starts, np.int64), moments, side="right") - 1
        there = (found >= 0) & (found <= high - low)
        return np.where(there, found + low, NONE)

    def _known(self, numbers: Numbers) -> Numbers:
        there = numbers >= self.first
        if self.last is not None:
            there &= numbers <= self.last
        return np.where(there, numbers, NONE)

    @property
    def _last(self) -> int:
        if self.last is None:
            raise ValueError("a range that goes on for ever has no last tick")
        return self.last

    def _calendar(self) -> Calendar:
        if self.calendar is None:
            raise ValueProblem("a time cannot tell a tick where ticks have no windows")
        return self.calendar

    def _offset(self, moment: datetime, days: int) -> timedelta:
        """What clocks show beyond UTC so many days after a moment, or at it where none are."""
        zone = ZoneInfo(self.zone)
        try:
            found = (moment.astimezone(UTC) + timedelta(days=days)).astimezone(zone).utcoffset()
        except OverflowError:
            found = moment.astimezone(zone).utcoffset()
        return found or timedelta(0)

    def _bound(self, moment: datetime, kind: pa.DataType, slack: int) -> Any:
        """The moment as a value of the column; a date begins at its midnight."""
        if pa.types.is_timestamp(kind) and kind.tz is not None:
            return pa.scalar(moment.replace(tzinfo=None), pa.timestamp("us")).cast(kind)
        # Times that clocks never showed, a day of Apia among them, count by how they stood before.
        offsets = [self._offset(moment, days) for days in (-2, 0, 2)]
        offset = min(offsets) if slack < 0 else max(offsets)
        wall = moment.astimezone(UTC).replace(tzinfo=None) + offset
        if self.zone != "UTC" and pa.types.is_timestamp(kind):
            # What the clocks show goes back now and then: some more are read, and told apart.
            wall += timedelta(hours=slack)
        if pa.types.is_date(kind):
            is_midnight = wall.time() == time.min
            day = wall.date() if is_midnight else wall.date() + timedelta(days=1)
            return pa.scalar(day, pa.date32()).cast(kind)
        return pa.scalar(wall, pa.timestamp("us")).cast(kind)


def moment_of(value: Any, zone: str = "UTC") -> Any:
    """What a value of a tick column is: the number of a tick, or a time in UTC.

    Dates, and times that name no zone, are of `zone`.
    """
    match value:
        case None:
            raise ValueProblem("a row has no tick: it is null")
        case bool():
            raise ValueProblem(f"{value} is neither a number nor a time")
        case int():
            return value
        case str():
            # Intervals begin at whole microseconds, so what is finer changes no tick.
            moment = conform(cut_to_micros(value), TIMESTAMP)
            return _in_zone(moment, zone, is_wall=_names_no_zone(value))
        case datetime():
            return _in_zone(conform(value, TIMESTAMP), zone, is_wall=_names_no_zone(value))
        case date():
            return _in_zone(conform(value.isoformat(), TIMESTAMP), zone, is_wall=True)
        case _:
            raise ValueProblem(f"{value!r} is neither a whole number nor a time")


def _names_no_zone(value: str | datetime) -> bool:
    if isinstance(value, datetime):
        return value.tzinfo is None
    # The hyphens of a date are none of an offset.
    return not ("T" in value or ":" in value) or _OFFSET.search(value.strip()) is None


def _in_zone(moment: datetime, zone: str, *, is_wall: bool) -> datetime:
    if not is_wall or zone == "UTC":
        return moment
    return moment.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def tick_of_value(
    value: Any, calendar: Calendar | None, numbered: Calendar | None = None
) -> int | None:
    """The tick that a value of a tick column tells, negative before tick 0; None: it tells none."""
    if isinstance(value, str) and value.lstrip("-").isdecimal():
        value = int(value)
    if isinstance(value, int) and calendar is not None and numbered is not None:
        return Feed(calendar, numbered).arrives(value)
    try:
        moment = moment_of(value, zone_of(calendar))
    except ValueProblem:
        return None
    if isinstance(moment, int) or calendar is None:
        return moment if isinstance(moment, int) else None
    return calendar.tick_of(moment)


def count_ticks(numbers: Numbers) -> Counter[int]:
    """How many rows each tick has."""
    found, counts = np.unique(numbers[numbers != NONE], return_counts=True)
    return Counter(dict(zip(found.tolist(), counts.tolist(), strict=True)))


def micros(moment: datetime) -> int:
    """The microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _moment(since: Any) -> datetime:
    return _EPOCH + timedelta(microseconds=int(since))


def _walls_in_zone(walls: Any, zone: str) -> pa.Array[Any]:
    """The moments at which the clocks of a zone show times, the first of two, as `moment_of`."""
    moments: Any = pc.assume_timezone(walls, zone, ambiguous="earliest", nonexistent="latest")
    skipped: Any = pc.not_equal(pc.local_timestamp(moments), walls)
    if not pc.any(skipped).as_py():
        return moments  # type: ignore[no-any-return]
    # Clocks never show these times; Arrow would have all of an hour be one moment.
    found = [moment_of(wall, zone) for wall in walls.filter(skipped).to_pylist()]
    put: Any = pc.replace_with_mask(
        moments.cast(_TIME), skipped.fill_null(False), pa.array(found, _TIME)
    )
    return put  # type: ignore[no-any-return]


def _both(one: ds.Expression, other: ds.Expression) -> ds.Expression:
    both: ds.Expression = one & other
    return both


def _ints(values: pa.Array[Any], null: int = NONE) -> Numbers:
    found: Numbers = values.fill_null(null).to_numpy(zero_copy_only=False).astype(np.int64)
    return found
