"""Dates and times by the calendar, in UTC or in a named zone, and windows of event time."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hydro_core.functions.kinds import NULL, TIMEDELTA, ExprType, computed_of, is_open, part
from hydro_core.functions.library.entry import (
    KNOWN_TEXT,
    TEXT,
    WHOLE,
    CallSite,
    CallTyping,
    Column,
    Library,
    Parameter,
    constant,
    optional,
)
from hydro_core.functions.library.times import DAY, microseconds
from hydro_core.types.item import DATE, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, Array

# Dates and times by the calendar, in UTC or by the clocks of a named zone.
#
# A time zone has its name in the tz database. Where clocks are set back, an ambiguous time is the
# first of the two; where they are set forward, a skipped time is later by the same amount.


CALENDAR = Library()
TIME = Parameter("a date or a time", lambda kind: kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ))
_MOMENT = Parameter("a timestamp", lambda kind: kind == TIMESTAMP)
_LOCAL = Parameter("a timestamp without a zone", lambda kind: kind == TIMESTAMP_NTZ)
_UNIT = constant(Parameter("a unit of time", TEXT.fits))
_TIMES = ("hour", "minute", "second")
_UNITS = ("year", "quarter", "month", "week", "day", *_TIMES)
_LENGTHS = {
    "week": timedelta(weeks=1),
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}


def zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}: a name is like Europe/Berlin") from None


# the types of calls


def check_zone(site: CallSite, position: int, kind: ExprType) -> None:
    """Refuses an unknown time zone, and a zone for a value that is no timestamp."""
    name = site.constant(position)
    if isinstance(name, str):
        try:
            zone_of(name)
        except ValueError as problem:
            cure = "such as `Europe/Berlin`, `America/New_York`, `UTC`"
            place = site.exprs[position].place
            raise site.problem(str(problem).partition(":")[0], cure, place) from None
    if not is_open(kind) and kind != TIMESTAMP:
        raise site.problem(f"a zone is for timestamps, not for {kind}", "it is none's already")


def _unit(site: CallSite) -> str | None:
    """The unit of time in a call, if it is constant."""
    unit = site.constant(0)
    if unit is not ... and unit not in _UNITS:
        raise site.problem(f"{unit!r} is no unit of time", f"there are {', '.join(_UNITS)}")
    return None if unit is ... else str(unit)


def _check_units(site: CallSite, kind: ExprType, unit: str | None) -> None:
    if kind == DATE and unit in _TIMES:
        raise site.problem(f"a date has no {unit}", "a timestamp has")


def _in_zone(gives: ExprType) -> CallTyping:
    def rule(site: CallSite) -> ExprType:
        check_zone(site, 1, TIMESTAMP)
        return gives

    return rule


def _of_truncated(site: CallSite) -> ExprType:
    unit, kind = _unit(site), site.args[1]
    if is_open(kind):
        return computed_of(kind)
    _check_units(site, kind, unit)
    if len(site.args) > 2 and site.constant(2) is not None:
        check_zone(site, 2, kind)
    return kind


def _same_time(site: CallSite) -> ExprType:
    return computed_of(site.args[0]) if is_open(site.args[0]) else site.args[0]


def _difference(site: CallSite) -> ExprType:
    unit, (start, end) = _unit(site), site.args[1:]
    if not is_open(start) and not is_open(end) and start != end:
        raise site.problem(f"`{site.name}` is between two of a kind, not {start} and {end}")
    _check_units(site, start, unit)
    return LONG


# Spark's expressions


def _trunc(F: Any, unit: str, at: Column, zone: str | None = None) -> Column | None:
    return F.date_trunc(unit, at.cast("timestamp")) if zone is None and unit in _UNITS else None


# Functions that programs call.


@CALENDAR.strict(_of_truncated, _UNIT, TIME, optional(KNOWN_TEXT), column=_trunc)
def date_trunc(unit: str, at: Any, zone: str | None = None) -> Any:
    """The beginning of the year, quarter, month, week (from Monday), day, hour, minute or second,
    in UTC or by the clocks of a time zone.
    """
    _check_unit(unit)
    if zone is None:
        return _truncated(unit, at)
    local = _truncated(unit, at.astimezone(zone_of(zone)))
    # An ambiguous hour begins twice, a day once.
    return (local if unit in _TIMES else local.replace(fold=0)).astimezone(UTC)


def _truncated(unit: str, at: Any) -> Any:
    if isinstance(at, datetime):
        at = at.replace(
            hour=at.hour if unit in _TIMES else 0,
            minute=at.minute if unit in _TIMES[1:] else 0,
            second=at.second if unit in _TIMES[2:] else 0,
            microsecond=0,
        )
    match unit:
        case "year":
            return at.replace(month=1, day=1)
        case "quarter":
            return at.replace(month=3 * ((at.month + 2) // 3) - 2, day=1)
        case "month":
            return at.replace(day=1)
        case "week":
            return at - timedelta(days=at.weekday())
        case _:
            return at


def _check_unit(unit: str) -> None:
    if unit not in _UNITS:
        raise ValueError(f"{unit!r} is no unit: {', '.join(_UNITS)}")


@CALENDAR.strict(_difference, _UNIT, TIME, TIME)
def date_diff(unit: str, start: Any, end: Any) -> int:
    """How many whole years, quarters, months, weeks, days, hours, minutes or seconds there are from
    a time to another; negative if that is before it.
    """
    _check_unit(unit)
    return -_between(unit, end, start) if end < start else _between(unit, start, end)


def _between(unit: str, start: Any, end: Any) -> int:
    if unit in _LENGTHS:
        whole: int = (end - start) // _LENGTHS[unit]
        return whole
    months: int = end.year * 12 + end.month - start.year * 12 - start.month
    # The time within the month decides if the last month is whole.
    first, last = (t.replace(year=2000, month=1) for t in (start, end))
    short: bool = last < first
    return (months - short) // _MONTHS[unit]


@CALENDAR.strict(_same_time, TIME, WHOLE)
def add_months(at: Any, months: int) -> Any:
    """The same day after the given number of months; the last of the month where it has no such
    day.
    """
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise ValueError(f"{months} months after {at} is not within the years 1 to 9999")
    day = min(at.day, monthrange(year, month + 1)[1])
    return at.replace(year=year, month=month + 1, day=day)


@CALENDAR.strict(DATE, TIME, column=lambda F, at: F.last_day(at))
def last_day(at: date) -> date:
    """The last day of the month, as a date."""
    return date(at.year, at.month, monthrange(at.year, at.month)[1])


@CALENDAR.strict(LONG, TIME, column=lambda F, at: F.quarter(at))
def quarter(at: date) -> int:
    """The quarter of the year, 1 to 4."""
    return (at.month + 2) // 3


@CALENDAR.strict(_in_zone(TIMESTAMP_NTZ), _MOMENT, TEXT)
def to_zone(at: datetime, zone: str) -> datetime:
    """The time that the clocks of a time zone show at a timestamp, without a zone."""
    return at.astimezone(zone_of(zone)).replace(tzinfo=None, fold=0)


@CALENDAR.strict(_in_zone(TIMESTAMP), _LOCAL, TEXT)
def from_zone(at: datetime, zone: str) -> datetime:
    """The timestamp at which the clocks of a time zone show a time without a zone."""
    return at.replace(tzinfo=zone_of(zone), fold=0).astimezone(UTC)


# Windows of event time: intervals of fixed or calendar length that contain a row's time.
#
# Fixed lengths count from 1970-01-01 (whole weeks from a Monday), months from January: in UTC, or
# by the clocks of a zone that is named. Windows that hop begin every `slide`, and overlap where
# they are longer than that.


WINDOWS = Library()
_EPOCH, _MONDAY = datetime(1970, 1, 1), datetime(1970, 1, 5)
_FIRST_MONDAY = 4
_MICROSECOND, _WEEK = timedelta(microseconds=1), timedelta(weeks=1)
_TEXT = re.compile(r"([1-9][0-9]{0,5})(s|m|h|d|w|mo|y)")
_FIXED = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_MONTHS_OF_UNITS = {"mo": 1, "y": 12}
_MOST = 1_000
"""Windows that a row may be in."""
_LENGTH = constant(Parameter("a length of time", lambda kind: kind in (STRING, TIMEDELTA)))
_ZONE = optional(KNOWN_TEXT)
_LIKE = "a timedelta, or `30s`, `15m`, `1h`, `1d`, `1w`, `1mo`, `1y`"


@dataclass(frozen=True, slots=True)
class Length:
    """A length of time: some months, or a fixed one."""

    fixed: timedelta = timedelta()
    months: int = 0

    @property
    def is_of_days(self) -> bool:
        return bool(self.months) or not self.fixed % timedelta(days=1)

    @property
    def origin(self) -> datetime:
        """The origin from which fixed lengths are counted."""
        return _EPOCH if self.fixed % _WEEK else _MONDAY

    def floor(self, at: datetime) -> datetime:
        """The last start of such a length that is not after `at`."""
        if not self.months:
            return self.origin + (at - self.origin) // self.fixed * self.fixed
        months = (at.year * 12 + at.month - 1) // self.months * self.months
        return datetime(months // 12, months % 12 + 1, 1)

    def holds(self, start: datetime, at: datetime) -> bool:
        """True if `at` is before the end of the length that starts at `start`, which may be out of
        range.
        """
        try:
            return at < self.after(start)
        except (OverflowError, ValueError):
            return True

    def after(self, start: datetime, times: int = 1) -> datetime:
        if not self.months:
            return start + self.fixed * times
        later = add_months(start, self.months * times)
        assert isinstance(later, datetime)
        return later


@lru_cache(maxsize=256)
def length_of(given: str | timedelta) -> Length:
    """The length of a text or a timedelta."""
    if isinstance(given, timedelta):
        if given <= timedelta():
            raise ValueError(f"a window of {given} has no length")
        return Length(given)
    found = _TEXT.fullmatch(given)
    if found is None:
        raise ValueError(f"{given!r} is no length of time")
    count, unit = int(found[1]), found[2]
    if unit in _MONTHS_OF_UNITS:
        return Length(months=count * _MONTHS_OF_UNITS[unit])
    return Length(timedelta(seconds=count * _FIXED[unit]))


# the types of calls


def _length(site: CallSite, position: int) -> Length | None:
    """A length, which must be constant; None if the argument is absent."""
    given = site.constant(position) if len(site.args) > position else None
    if given is None:
        return None
    place = site.exprs[position].place
    if not isinstance(given, str | timedelta):
        cure = "write it as it is: windows are the same for every row"
        raise site.problem(f"`{site.name}` takes a length of time that is constant", cure, place)
    try:
        return length_of(given)
    except ValueError as problem:
        raise site.problem(str(problem), _LIKE, place) from None


def _checked(site: CallSite) -> ExprType:
    """The type of a window's start."""
    kind = site.args[0]
    size, slide = _length(site, 1), _length(site, 2)
    lengths = [length for length in (size, slide) if length is not None]
    if size is not None and slide is not None and _count(size, slide) > _MOST:
        raise site.problem(f"a row is in more than {_MOST:,} windows", "let them begin less often")
    in_days = all(length.is_of_days for length in lengths)
    if len(site.args) > 3 and site.args[3] != NULL:
        check_zone(site, 3, kind)
        if not in_days:
            cure = "leave `zone` out: shorter ones begin in UTC"
            raise site.problem("a zone is for windows of whole days, or of months", cure)
    if kind == DATE and not in_days:
        raise site.problem("a date is in windows of whole days, or of months", "a timestamp is not")
    return computed_of(kind) if is_open(kind) else kind


def _count(size: Length, slide: Length) -> float:
    """The approximate number of windows that contain a time."""
    month = timedelta(days=31)
    return (size.fixed + size.months * month) / (slide.fixed + slide.months * month)


def _hopped(site: CallSite) -> ExprType:
    kind = _checked(site)
    return kind if is_open(kind) else Array(part(kind))


# Spark's expressions


def _start(
    F: Any,
    at: Column,
    size: str | timedelta,
    slide: str | timedelta | None = None,
    zone: str | None = None,
) -> Column | None:
    """By microseconds, or by year and month; only in UTC, and only for windows without gaps."""
    whole, step = length_of(size), length_of(slide or size)
    by_months = whole.months or step.months
    has_gaps = whole != step if by_months else step.fixed > whole.fixed
    if zone is not None or has_gaps:
        return None
    if step.months:
        months = F.year(at) * 12 + F.month(at) - 1
        first = months - F.pmod(months, F.lit(step.months))
        year = F.call_function("div", first, F.lit(12)).cast("int")
        return F.when(year >= 1, F.make_date(year, (F.pmod(first, F.lit(12)) + 1), F.lit(1)))
    length = F.lit(step.fixed // _MICROSECOND)
    origin = 0 if step.origin == _EPOCH else _FIRST_MONDAY * DAY
    micros = microseconds(F, at)
    start = micros - F.pmod(micros - origin, length)
    return F.when(start >= (datetime.min - _EPOCH) // _MICROSECOND, F.timestamp_micros(start))


# Functions that programs call.


@WINDOWS.strict(_checked, TIME, _LENGTH, optional(_LENGTH), _ZONE, column=_start, may_fail=True)
def window_start(
    at: Any, size: str | timedelta, slide: str | timedelta | None = None, zone: str | None = None
) -> Any:
    """Where the window begins that a time is in; of windows that hop, the last one; null for none.

    A length is a timedelta or a text such as `15m`, `1h`, `1d`, `1w` (from Monday), `1mo`, `1y`.
    """
    starts = _starts(at, size, slide or size, zone, most=1)
    return starts[0] if starts else None


@WINDOWS.strict(_hopped, TIME, _LENGTH, _LENGTH, _ZONE)
def hop(
    at: Any, size: str | timedelta, slide: str | timedelta, zone: str | None = None
) -> list[Any]:
    """Where all the windows begin that a time is in: of that size, one every `slide`, in order."""
    return _starts(at, size, slide, zone, most=_MOST)[::-1]


def _starts(
    at: Any, size: str | timedelta, slide: str | timedelta, zone: str | None, most: int
) -> list[Any]:
    """The starts of the windows that contain a time, the last one first."""
    whole, step = length_of(size), length_of(slide)
    local, found = _clocks(at, zone), list[Any]()
    start = step.floor(local)
    while len(found) < most and whole.holds(start, local):
        found.append(_back(start, at, zone))
        try:
            start = step.after(start, -1)
        except (OverflowError, ValueError):
            break
    return found


def _clocks(at: Any, zone: str | None) -> datetime:
    """The time that the clocks of the zone show."""
    if not isinstance(at, datetime):
        return datetime(at.year, at.month, at.day)
    if zone is not None:
        return to_zone(at, zone) or at
    return at.replace(tzinfo=None)


def _back(start: datetime, at: Any, zone: str | None) -> Any:
    """A clock time as the type of the argument."""
    if not isinstance(at, datetime):
        return start.date()
    if zone is not None:
        return from_zone(start, zone)
    return start if at.tzinfo is None else start.replace(tzinfo=UTC)
