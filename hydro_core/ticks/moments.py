"""What the value of a tick column tells: the number of a tick, or a moment."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from hydro_core.types.item import TIMESTAMP
from hydro_core.types.values import ValueProblem, conform


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
        case str() | datetime():
            return _in_zone(conform(value, TIMESTAMP), zone, is_wall=_names_no_zone(value))
        case date():
            return _in_zone(conform(value.isoformat(), TIMESTAMP), zone, is_wall=True)
        case _:
            raise ValueProblem(f"{value!r} is neither a whole number nor a time")


_OFFSET = re.compile(r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$")


def _names_no_zone(value: str | datetime) -> bool:
    if isinstance(value, datetime):
        return value.tzinfo is None
    # The hyphens of a date are none of an offset.
    return not ("T" in value or ":" in value) or _OFFSET.search(value.strip()) is None


def _in_zone(moment: datetime, zone: str, *, is_wall: bool) -> datetime:
    if not is_wall or zone == "UTC":
        return moment
    return moment.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
