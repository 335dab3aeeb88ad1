"""The methods and properties of dates, timestamps and timedeltas.

A timedelta is a long of microseconds to Spark. Timestamps are read in UTC, the zone of every
session; what names no zone (`timestamp_ntz`) is another type, whose expressions differ where they
say so by being an entry of their own.
"""

from __future__ import annotations

import re
from typing import Any

from hydro_core.functions.kinds import ANY, NULL, TIMEDELTA, ZONE, ExprType
from hydro_core.functions.library.entry import (
    ANYTHING,
    TEXT,
    CallSite,
    Column,
    Expression,
    Member,
    Parameter,
    constant,
    members,
    method,
    optional,
    read,
)
from hydro_core.functions.library.texts import check_form
from hydro_core.types.item import (
    DATE,
    DOUBLE,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Tuple,
)

SECOND = 1_000_000
DAY = 86_400 * SECOND
EPOCH_DAY = 719_163
"""`date(1970, 1, 1).toordinal()`."""
_EXACT = 2**53
_ZONE = Parameter("a time zone", lambda kind: kind == ZONE, "constant")
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


def _replaced(base: ExprType, site: CallSite) -> ExprType:
    zone = site.keywords.get("tzinfo")
    if zone is None or base == DATE:
        return base
    return TIMESTAMP if zone == ZONE else TIMESTAMP_NTZ if zone == NULL else ANY


def _zoned(kind: ExprType) -> Any:
    """The machine has a zone for a timestamp that names none: another on each machine."""

    def typed(base: ExprType, site: CallSite) -> ExprType:
        if base == TIMESTAMP_NTZ:
            raise site.problem(
                f"a timestamp without a zone has no `{site.name}`",
                "`.replace(tzinfo=timezone.utc)` gives it one",
            )
        return kind

    return typed


def pattern(form: str) -> str | None:
    """Spark's pattern for one of `strftime`; None where there is none."""
    found = ""
    for between, directive in re.findall(r"((?:[^%]|%%)+)|%(.?)", form, re.DOTALL):
        if directive not in _DIRECTIVES and not between:
            return None
        quoted = between.replace("%%", "%").replace("'", "''")
        found += f"'{quoted}'" if between else _DIRECTIVES[directive]
    return found


def formatted(F: Any, moment: Column, form: str) -> Column | None:
    """`moment.strftime(form)`; how long a year before 1000 is, the machine decides."""
    of_spark = pattern(form)
    if of_spark is None:
        return None
    return F.when(F.year(moment) >= 1000, F.date_format(moment, of_spark))


def microseconds(F: Any, moment: Column) -> Column:
    """Since 1970."""
    return F.unix_micros(moment.cast("timestamp"))


def iso(F: Any, moment: Column, between: str, zone: str) -> Column:
    """`timestamp.isoformat()`, `str(timestamp)`: what is `between` differs."""
    micros = F.pmod(microseconds(F, moment), F.lit(SECOND))
    parts = [
        F.date_format(moment, f"yyyy-MM-dd'{between}'HH:mm:ss"),
        F.when(micros == 0, F.lit("")).otherwise(F.date_format(moment, ".SSSSSS")),
    ]
    return F.concat(*parts, F.lit(zone))


def _seconds(F: Any, microseconds: Column) -> Column:
    within = microseconds.between(-_EXACT, _EXACT)
    return F.when(within, microseconds.cast("double") / float(SECOND))


def _days(F: Any, length: Column) -> Column:
    down = F.when(length % DAY < 0, 1).otherwise(0)
    return F.call_function("div", length, F.lit(DAY)) - down


def _iso_week(F: Any, moment: Column) -> tuple[Column, ...]:
    year = F.extract(F.lit("YEAROFWEEK"), moment)
    # The last days of the calendar are of a year that Python does not have either.
    return year, F.weekofyear(moment), F.weekday(moment) + 1


def _in_utc(_: Any, moment: Column, zone: Any) -> Column | None:
    return moment if str(zone) == "UTC" else None


def _field(of: str) -> Expression:
    return lambda F, moment: getattr(F, of)(moment)


def _of_dates(*more: Member) -> dict[str, Member]:
    return members(
        method("ctime", gives=STRING),
        method("isocalendar", gives=Tuple((LONG,) * 3), column=_iso_week),
        method("isoweekday", gives=LONG, column=lambda F, day: F.weekday(day) + 1),
        method("replace", *(optional(ANYTHING),) * 8, gives=_replaced),
        method(
            "strftime",
            constant(TEXT),
            gives=STRING,
            column=formatted,
            may_fail=True,
            cost=check_form,
        ),
        method(
            "toordinal",
            gives=LONG,
            column=lambda F, day: F.unix_date(day.cast("date")) + EPOCH_DAY,
        ),
        method("weekday", gives=LONG, column=_field("weekday")),
        read("year", LONG, _field("year")),
        read("month", LONG, _field("month")),
        read("day", LONG, _field("dayofmonth")),
        *more,
    )


def _of_moments(zone: str, *more: Member) -> dict[str, Member]:
    return _of_dates(
        method("date", gives=DATE, column=lambda _, moment: moment.cast("date")),
        method(
            "isoformat",
            optional(TEXT),
            optional(TEXT),
            gives=STRING,
            column=lambda F, moment: iso(F, moment, "T", zone),
        ),
        read("hour", LONG, _field("hour")),
        read("minute", LONG, _field("minute")),
        read("second", LONG, _field("second")),
        read("microsecond", LONG, lambda F, moment: F.pmod(microseconds(F, moment), F.lit(SECOND))),
        read("fold", LONG),
        read("tzinfo", ZONE),
        *more,
    )


DATE_MEMBERS = _of_dates(
    method("isoformat", gives=STRING, column=lambda _, day: day.cast("string"))
)
TIMESTAMP_MEMBERS = _of_moments(
    "+00:00",
    method("astimezone", _ZONE, gives=TIMESTAMP, column=_in_utc),
    method(
        "timestamp",
        gives=DOUBLE,
        column=lambda F, moment: _seconds(F, microseconds(F, moment)),
        may_fail=True,
    ),
    method("utcoffset", gives=TIMEDELTA),
)
NTZ_MEMBERS = _of_moments(
    "",
    method("astimezone", optional(ANYTHING), gives=_zoned(TIMESTAMP)),
    method("timestamp", gives=_zoned(DOUBLE)),
    method("utcoffset", gives=TIMEDELTA),
)
TIMEDELTA_MEMBERS = members(
    method("total_seconds", gives=DOUBLE, column=_seconds, may_fail=True),
    read("days", LONG, _days),
    read(
        "seconds",
        LONG,
        lambda F, length: F.call_function("div", F.pmod(length, F.lit(DAY)), F.lit(SECOND)),
    ),
    read("microseconds", LONG, lambda F, length: F.pmod(length, F.lit(SECOND))),
)
