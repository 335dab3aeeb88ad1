"""Time cut into ticks: `15m 1h 1d 1w 1mo`, in UTC, months by the calendar."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from hydro_core.errors import DataError
from hydro_core.types.item import TIMESTAMP
from hydro_core.types.values import ValueProblem, conform

Unit = Literal["m", "h", "d", "w", "mo"]
_LENGTHS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_TEXT = re.compile(r"([1-9][0-9]{0,5})(m|h|d|w|mo)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONDAY = datetime(1970, 1, 5, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TickLength:
    """The length of a tick: `count` units."""

    count: int
    unit: Unit

    @staticmethod
    def parse(text: str, what: str = "--every") -> TickLength:
        """The length that a text such as `15m` names; an error calls it `what`.

        >>> TickLength.parse("15m")
        TickLength(count=15, unit='m')
        """
        found = _TEXT.fullmatch(text.strip())
        if found is None:
            raise DataError.of(
                "config",
                f"`{what}`: {text!r} is not a length of time",
                help="a number and m, h, d, w or mo: `15m`, `1h`, `1d`, `1w`, `1mo`",
            )
        unit: Unit = found[2]  # type: ignore[assignment]
        return TickLength(int(found[1]), unit)

    def __str__(self) -> str:
        return f"{self.count}{self.unit}"

    def floor(self, time: datetime) -> datetime:
        """The time cut down to a whole length: weeks begin on Mondays, months on their first day.

        >>> TickLength(1, "w").floor(datetime(2024, 5, 16, 9, tzinfo=UTC)).date()
        datetime.date(2024, 5, 13)
        """
        if self.unit == "mo":
            months = _months(time) // self.count * self.count
            return datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC)
        origin = _MONDAY if self.unit == "w" else _EPOCH
        return origin + (time - origin) // self._length * self._length

    def tick_of(self, time: datetime, start: datetime) -> int:
        """The number of the tick that holds the time; negative before `start`."""
        if self.unit != "mo":
            return (time - start) // self._length
        guess = (_months(time) - _months(start)) // self.count
        # The guess is right but for the day of the month, if ticks do not begin on the first.
        return guess if self.start_of(guess, start) <= time else guess - 1

    def start_of(self, tick: int, start: datetime) -> datetime:
        """When the tick begins, which is when the one before it ends."""
        if self.unit != "mo":
            return start + tick * self._length
        return _add_months(start, tick * self.count)

    @property
    def _length(self) -> timedelta:
        return _LENGTHS[self.unit] * self.count


def parse_time(text: str, what: str = "--start") -> datetime:
    """The time that `--start` names, in UTC where it names no zone; an error calls it `what`."""
    try:
        time: datetime = conform(text.strip(), TIMESTAMP)
    except ValueProblem as problem:
        raise DataError.of(
            "config",
            f"`{what}`: {text!r} is not a time: {problem}",
            help="write a date or a timestamp: `2024-01-01`, `2024-01-01T06:00:00Z`",
        ) from None
    return time


def _months(time: datetime) -> int:
    return time.year * 12 + time.month - 1


def _add_months(time: datetime, months: int) -> datetime:
    """The same day some months later; the last of the month where it has no such day."""
    year, month = divmod(_months(time) + months, 12)
    last = monthrange(year, month + 1)[1]
    return time.replace(year=year, month=month + 1, day=min(time.day, last))
