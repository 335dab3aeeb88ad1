"""Windows of event time: the whole lengths of time that a row's time lies in.

Fixed lengths count from 1970-01-01 (whole weeks from a Monday), months from January: in UTC, or by
the clocks of a zone that is named. Windows that hop begin every `slide`, and overlap where they are
longer than that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from hydro_core.functions.kinds import NULL, TIMEDELTA, ExprType, computed_of, is_open, part
from hydro_core.functions.library.calendars import TIME, add_months, check_zone, from_zone, to_zone
from hydro_core.functions.library.entry import (
    KNOWN_TEXT,
    CallSite,
    Column,
    Library,
    Parameter,
    constant,
    optional,
)
from hydro_core.functions.library.times import DAY, microseconds
from hydro_core.types.item import DATE, STRING, Array

WINDOWS = Library()
_EPOCH, _MONDAY = datetime(1970, 1, 1), datetime(1970, 1, 5)
_FIRST_MONDAY = 4
_MICROSECOND, _WEEK = timedelta(microseconds=1), timedelta(weeks=1)
_TEXT = re.compile(r"([1-9][0-9]{0,5})(s|m|h|d|w|mo|y)")
_FIXED = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_MONTHS = {"mo": 1, "y": 12}
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
        """Where fixed lengths are counted from."""
        return _EPOCH if self.fixed % _WEEK else _MONDAY

    def floor(self, at: datetime) -> datetime:
        """The last beginning of such a length that is not after a time."""
        if not self.months:
            return self.origin + (at - self.origin) // self.fixed * self.fixed
        months = (at.year * 12 + at.month - 1) // self.months * self.months
        return datetime(months // 12, months % 12 + 1, 1)

    def holds(self, start: datetime, at: datetime) -> bool:
        """Whether a time is before the end of what begins at `start`, which may never come."""
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
    """The length that a text or a timedelta says."""
    if isinstance(given, timedelta):
        if given <= timedelta():
            raise ValueError(f"a window of {given} has no length")
        return Length(given)
    found = _TEXT.fullmatch(given)
    if found is None:
        raise ValueError(f"{given!r} is no length of time")
    count, unit = int(found[1]), found[2]
    if unit in _MONTHS:
        return Length(months=count * _MONTHS[unit])
    return Length(timedelta(seconds=count * _FIXED[unit]))


# the types of calls


def _length(site: CallSite, position: int) -> Length | None:
    """A length, which is constant; None where it is not given."""
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
    """The kind of a window's beginning."""
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
    """How many windows a time is in, about."""
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
    """By the microseconds, or by year and month; in UTC, and not where windows have gaps."""
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


# what programs call


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
    """The beginnings of the windows that a time is in, the last one first."""
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
    """What the clocks show."""
    if not isinstance(at, datetime):
        return datetime(at.year, at.month, at.day)
    if zone is not None:
        return to_zone(at, zone) or at
    return at.replace(tzinfo=None)


def _back(start: datetime, at: Any, zone: str | None) -> Any:
    """A time that the clocks show, as what was given."""
    if not isinstance(at, datetime):
        return start.date()
    if zone is not None:
        return from_zone(start, zone)
    return start if at.tzinfo is None else start.replace(tzinfo=UTC)
