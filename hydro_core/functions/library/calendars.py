"""Dates and times by the calendar, in UTC or by the clocks of a zone that is named.

A time zone's name is that of the tz database. Where clocks are set back, a time by them that comes
twice is the first one; where they skip a time, it is as much later.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hydro_core.functions.kinds import ExprType, computed_of, is_open
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
from hydro_core.types.item import DATE, LONG, TIMESTAMP, TIMESTAMP_NTZ

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
    """Refuses the name of a time zone that there is not, and one of what is no timestamp."""
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
    """The unit of time that a call names, where it is constant."""
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


# what programs call


@CALENDAR.strict(_of_truncated, _UNIT, TIME, optional(KNOWN_TEXT), column=_trunc)
def date_trunc(unit: str, at: Any, zone: str | None = None) -> Any:
    """The beginning of the year, quarter, month, week (from Monday), day, hour, minute or second,
    in UTC or by the clocks of a time zone.
    """
    _check_unit(unit)
    if zone is None:
        return _truncated(unit, at)
    local = _truncated(unit, at.astimezone(zone_of(zone)))
    # An hour that comes twice begins twice, a day once.
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
    # What stands behind the month decides whether the last one is whole.
    first, last = (t.replace(year=2000, month=1) for t in (start, end))
    short: bool = last < first
    return (months - short) // _MONTHS[unit]


@CALENDAR.strict(_same_time, TIME, WHOLE)
def add_months(at: Any, months: int) -> Any:
    """The same day so many months later; the last of the month where it has no such day."""
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
    """What the clocks of a time zone show at a timestamp: one without a zone."""
    return at.astimezone(zone_of(zone)).replace(tzinfo=None, fold=0)


@CALENDAR.strict(_in_zone(TIMESTAMP), _LOCAL, TEXT)
def from_zone(at: datetime, zone: str) -> datetime:
    """The timestamp at which the clocks of a time zone show a time without a zone."""
    return at.replace(tzinfo=zone_of(zone), fold=0).astimezone(UTC)
