"""Dates and timestamps: read from ISO 8601, kept in UTC, printed back.

A `timestamp` is a moment, kept in UTC; text or a datetime that names no zone is meant in UTC. A
`timestamp_ntz` has no zone, and what names one is none.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hydro_core.types.containers import ValueProblem, describe

MICROSECOND = timedelta(microseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_date(value: Any) -> date:
    """The date that a value is.

    >>> to_date("2024-02-29")
    datetime.date(2024, 2, 29)
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if isinstance(value, str) and len(value) == 10:
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise ValueProblem(f"{describe(value)} is not a date such as 2024-01-31")


def to_timestamp(value: Any, *, zone: bool) -> datetime:
    """The timestamp that a value is: in UTC if `zone`, else without one.

    >>> to_timestamp("2024-01-01T01:00:00+01:00", zone=True)
    datetime.datetime(2024, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)
    """
    found = _moment(value)
    if found is None:
        raise ValueProblem(f"{describe(value)} is not a timestamp such as 2024-01-31T12:00:00Z")
    if not zone:
        if found.tzinfo is not None:
            raise ValueProblem(f"{describe(value)} names a zone, but a timestamp_ntz has none")
        return found
    if found.tzinfo is None:
        return found.replace(tzinfo=UTC)
    try:
        return found.astimezone(UTC)
    except OverflowError:
        raise ValueProblem(f"{describe(value)} is not within the years 1 to 9999 in UTC") from None


def in_utc(value: date) -> datetime:
    """The moment of a date, which is its midnight, or of a timestamp; in UTC without a zone.

    >>> in_utc(date(2024, 1, 31)).isoformat()
    '2024-01-31T00:00:00+00:00'
    """
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value


def since_epoch(moment: datetime) -> int:
    return (moment - _EPOCH) // MICROSECOND


def _moment(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def print_moment(value: date | datetime) -> str:
    """ISO 8601, with `Z` for UTC.

    >>> print_moment(datetime(2024, 1, 1, tzinfo=UTC)), print_moment(date(2024, 1, 1))
    ('2024-01-01T00:00:00Z', '2024-01-01')
    """
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
    return value.isoformat()


def is_distance(value: Any) -> bool:
    """Whether a value can be how far two times, or two numbers, are apart; it is not negative.

    >>> is_distance(timedelta(hours=1)), is_distance(2.5), is_distance(-1), is_distance(True)
    (True, True, False, False)
    """
    if isinstance(value, timedelta):
        return value >= timedelta()
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value >= 0
