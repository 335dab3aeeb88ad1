"""Dates, timestamps and timedeltas: construction, methods and properties.

A timedelta is a long of microseconds in Spark. Timestamps are read in UTC, the zone of every
session; a time without a zone (`timestamp_ntz`) is another type, which has an entry of its own
where its expression differs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from hydro_core.functions.kinds import ANY, NULL, TIMEDELTA, ZONE, ExprType
from hydro_core.functions.library import entry
from hydro_core.functions.library.entry import (
    ANYTHING,
    KNOWN_TEXT,
    REAL,
    TEXT,
    WHOLE,
    CallSite,
    Column,
    Members,
    Operation,
    Parameter,
    constant,
    method,
    optional,
    read,
)
from hydro_core.types.item import DATE, DOUBLE, LONG, STRING, TIMESTAMP, TIMESTAMP_NTZ, Tuple

SECOND = 1_000_000
DAY = 86_400 * SECOND
EPOCH_DAY = 719_163
"""`date(1970, 1, 1).toordinal()`."""
PLAIN_DATE = "\\A[0-9]{4}-[0-9]{2}-[0-9]{2}\\z"
_EXACT = 2**53
_ZONE = constant(Parameter("a time zone", lambda kind: kind == ZONE))
_DIRECTIVES = {
    "Y": "yyyy",
    "y": "yy",
    "m": "MM",
    "d": "dd",
    "j": "DDD",
    "H": "HH",
    "M": "mm",
    "S": "ss",
    "f": "SSSSSS",
}
"""Directives whose texts no locale changes, and Spark's patterns for them."""


def strptime(text: str, form: str) -> datetime:
    # Python imports a module on its first call, from the caller's globals: it must be called here,
    # since a program's function has no import.
    try:
        return datetime.strptime(text, form)
    except re.error as problem:
        raise ValueError(f"{form!r} is no format of times: {problem}") from None


# the types of calls


def _of_date(site: CallSite) -> ExprType:
    if len(site.args) + len(site.keywords) != 3:
        raise site.problem("`date` takes a year, a month and a day")
    return DATE


def _of_datetime(site: CallSite) -> ExprType:
    zone = site.keywords.get("tzinfo", site.args[7] if len(site.args) > 7 else NULL)
    return TIMESTAMP_NTZ if zone == NULL else TIMESTAMP if zone == ZONE else ANY


def _of_strptime(site: CallSite) -> ExprType:
    form = site.constant(1)
    if not isinstance(form, str):
        return ANY
    return TIMESTAMP if "%z" in form else TIMESTAMP_NTZ


def _replaced(site: CallSite) -> ExprType:
    zone = site.keywords.get("tzinfo")
    if zone is None or site.base == DATE:
        return site.base
    return TIMESTAMP if zone == ZONE else TIMESTAMP_NTZ if zone == NULL else ANY


def _zoneless(site: CallSite) -> ExprType:
    """A zoneless time has the zone of the machine for `timestamp`: another one on each machine."""
    cure = "`.replace(tzinfo=timezone.utc)` gives it one"
    raise site.problem(f"a timestamp without a zone has no `{site.name}`", cure)


# Spark's expressions


def pattern(form: str) -> str | None:
    """Spark's pattern for a format of `strftime`; None if there is none."""
    found = ""
    for between, directive in re.findall(r"((?:[^%]|%%)+)|%(.?)", form, re.DOTALL):
        if directive not in _DIRECTIVES and not between:
            return None
        quoted = between.replace("%%", "%").replace("'", "''")
        found += f"'{quoted}'" if between else _DIRECTIVES[directive]
    return found


def formatted(F: Any, moment: Column, form: str) -> Column | None:
    """`moment.strftime(form)`; the machine decides the number of digits of a year before 1000."""
    of_spark = pattern(form)
    if of_spark is None:
        return None
    return F.when(F.year(moment) >= 1000, F.date_format(moment, of_spark))


def microseconds(F: Any, moment: Column) -> Column:
    return F.unix_micros(moment.cast("timestamp"))


def iso(F: Any, moment: Column, between: str, zone: str) -> Column:
    """`timestamp.isoformat()`, `str(timestamp)`: they differ in `between`."""
    micros = _below(F, microseconds(F, moment), SECOND)
    parts = [
        F.date_format(moment, f"yyyy-MM-dd'{between}'HH:mm:ss"),
        F.when(micros == 0, F.lit("")).otherwise(F.date_format(moment, ".SSSSSS")),
    ]
    return F.concat(*parts, F.lit(zone))


def _seconds(F: Any, microseconds: Column) -> Column:
    within = microseconds.between(-_EXACT, _EXACT)
    return F.when(within, microseconds.cast("double") / float(SECOND))


def _div(F: Any, number: Column, by: int) -> Column:
    return F.call_function("div", number, F.lit(by))


def _below(F: Any, number: Column, limit: int) -> Column:
    """The remainder of a division, never negative."""
    return F.pmod(number, F.lit(limit))


def _days(F: Any, length: Column) -> Column:
    return _div(F, length, DAY) - F.when(length % DAY < 0, 1).otherwise(0)


def _iso_week(F: Any, moment: Column) -> tuple[Column, ...]:
    year = F.extract(F.lit("YEAROFWEEK"), moment)
    # The last days of the calendar belong to a year that Python does not have either.
    return year, F.weekofyear(moment), F.weekday(moment) + 1


def _field(of: str) -> Operation:
    return read(LONG, lambda F, moment: getattr(F, of)(moment))


def plain_date(F: Any, text: Column) -> Column:
    """A plain date; Python computes other forms."""
    plain = F.rlike(text, F.lit(PLAIN_DATE))
    found = F.when(plain, text.try_cast("date"))
    return F.when(F.year(found) >= 1, found)


def _day_of(F: Any, number: Column) -> Column:
    held = number.between(date.min.toordinal(), date.max.toordinal())
    return F.when(held, F.date_from_unix_date((number - EPOCH_DAY).cast("int")))


def _moment(F: Any, text: Column, form: str) -> Column | None:
    """A moment whose fields all have their full width; Python computes other texts."""
    read = re.fullmatch(r"(?:%[YmdHMSf]|[-/:. T_])+", form)
    fields = re.findall("%(.)", form)
    if read is None or len(set(fields)) != len(fields) or not {"Y", "m", "d"} <= set(fields):
        return None
    widths = {"Y": 4, "f": 6}
    plain_form = form.replace(".", "[.]")
    digits = re.sub("%(.)", lambda m: f"[0-9]{{{widths.get(m[1], 2)}}}", plain_form)
    plain = F.rlike(text, F.lit(f"\\A{digits}\\z"))
    found = F.try_to_timestamp(F.when(plain, text), F.lit(pattern(form)))
    return F.when(F.year(found) >= 1, found.cast("timestamp_ntz"))


_OF_DATES: Members = {
    "ctime": method(STRING),
    "isocalendar": method(Tuple((LONG,) * 3), column=_iso_week),
    "isoweekday": method(LONG, column=lambda F, day: F.weekday(day) + 1),
    "replace": method(_replaced, *(optional(ANYTHING),) * 8),
    "strftime": method(STRING, KNOWN_TEXT, column=formatted, may_fail=True, cost=entry.form),
    "toordinal": method(LONG, column=lambda F, day: F.unix_date(day.cast("date")) + EPOCH_DAY),
    "weekday": method(LONG, column=lambda F, day: F.weekday(day)),
    "year": _field("year"),
    "month": _field("month"),
    "day": _field("dayofmonth"),
}


def _of_moments(zone: str) -> Members:
    return {
        **_OF_DATES,
        "date": method(DATE, column=lambda _, moment: moment.cast("date")),
        "isoformat": method(
            *(STRING, optional(TEXT), optional(TEXT)),
            column=lambda F, moment: iso(F, moment, "T", zone),
        ),
        "hour": _field("hour"),
        "minute": _field("minute"),
        "second": _field("second"),
        "microsecond": read(LONG, lambda F, moment: _below(F, microseconds(F, moment), SECOND)),
        "fold": read(LONG),
        "tzinfo": read(ZONE),
        "utcoffset": method(TIMEDELTA),
    }


DATE_MEMBERS: Members = {
    **_OF_DATES,
    "isoformat": method(STRING, column=lambda _, day: day.cast("string")),
}
TIMESTAMP_MEMBERS: Members = {
    **_of_moments("+00:00"),
    "astimezone": method(
        *(TIMESTAMP, _ZONE),
        column=lambda _, moment, zone: moment if str(zone) == "UTC" else None,
    ),
    "timestamp": method(
        DOUBLE, column=lambda F, moment: _seconds(F, microseconds(F, moment)), may_fail=True
    ),
}
NTZ_MEMBERS: Members = {
    **_of_moments(""),
    "astimezone": method(_zoneless, optional(ANYTHING)),
    "timestamp": method(_zoneless),
}
TIMEDELTA_MEMBERS: Members = {
    "total_seconds": method(DOUBLE, column=_seconds, may_fail=True),
    "days": read(LONG, _days),
    "seconds": read(LONG, lambda F, length: _div(F, _below(F, length, DAY), SECOND)),
    "microseconds": read(LONG, lambda F, length: _below(F, length, SECOND)),
}
OF_TIMES: Mapping[str, Operation] = {
    "date": Operation(_of_date, None, date),
    "datetime": Operation(_of_datetime, None, datetime),
    "timedelta": Operation(TIMEDELTA, (optional(REAL),) * 7, timedelta),
    "timezone": Operation(ZONE, (ANYTHING, optional(TEXT)), timezone),
}
OF_TIME_TYPES: Mapping[str, Operation] = {
    "date.fromisoformat": Operation(DATE, (TEXT,), date.fromisoformat, plain_date, may_fail=True),
    "date.fromordinal": Operation(DATE, (WHOLE,), date.fromordinal, _day_of, may_fail=True),
    "date.fromisocalendar": Operation(DATE, (WHOLE,) * 3, date.fromisocalendar),
    # A text without a zone is in UTC, as it is in data.
    "datetime.fromisoformat": Operation(TIMESTAMP, (TEXT,), datetime.fromisoformat),
    "datetime.fromordinal": Operation(TIMESTAMP_NTZ, (WHOLE,), datetime.fromordinal),
    "datetime.strptime": Operation(
        *(_of_strptime, (TEXT, KNOWN_TEXT), strptime, _moment), may_fail=True, cost=entry.form
    ),
    "datetime.combine": Operation(
        *(lambda site: TIMESTAMP if len(site.args) + len(site.keywords) > 2 else ANY, None),
        datetime.combine,
    ),
    "datetime.fromtimestamp": Operation(
        TIMESTAMP, (REAL, optional(ANYTHING)), datetime.fromtimestamp
    ),
}
TIME_CONSTANTS: Mapping[str, Any] = {
    "date.min": date.min,
    "date.max": date.max,
    "datetime.min": datetime.min,
    "datetime.max": datetime.max,
    "timezone.utc": UTC,
    "timedelta.max": timedelta.max,
    "timedelta.min": timedelta.min,
}
