"""Which calendars a cron schedule can name, and how."""

from __future__ import annotations

from hydro_core.errors import ProgramError
from hydro_core.ticks.calendar import Calendar

_DIVIDED = {"m": 60, "h": 24, "d": 1, "w": 1, "mo": 12}
"""What the count of each unit must divide: a schedule names minutes of an hour, hours of a day."""
_LENGTHS = "1m to 30m and 1h to 12h that divide the hour or the day, 1d, 1w, 1mo to 12mo"


def scheduled(calendar: Calendar) -> Calendar:
    """The calendar, if a schedule can name the starts of its windows.

    Raises:
        ProgramError: none can, and what can be named (code `config`).
    """
    length, first = calendar.length, calendar.first
    if _DIVIDED[length.unit] % length.count:
        raise _wrong(f"`every`: ticks of {calendar.every} have no schedule", f"take {_LENGTHS}")
    if first.second or first.microsecond:
        raise _wrong(f"`start`: {calendar.start} is within a minute", "begin at a whole minute")
    if length.unit == "mo" and first.day in (29, 30):
        raise _wrong(
            f"`start`: not every month has a day {first.day}",
            "begin on a day from 1 to 28, or on a 31st for the last day of each month",
        )
    return calendar


def cron_of(calendar: Calendar) -> str:
    """The starts of the windows as a cron schedule in the calendar's zone."""
    first, length = calendar.first, calendar.length
    minute, hour, day = str(first.minute), str(first.hour), str(first.day)
    match length.unit:
        case "m":
            return f"{_listed(first.minute, length.count, 0, 60)} * * * *"
        case "h":
            hours = "*" if length.count == 1 else _listed(first.hour, length.count, 0, 24)
            return f"{minute} {hours} * * *"
        case "d":
            return f"{minute} {hour} * * *"
        case "w":
            return f"{minute} {hour} * * {first.isoweekday() % 7}"
        case "mo":
            months = "*" if length.count == 1 else _listed(first.month, length.count, 1, 12)
            return f"{minute} {hour} {'L' if first.day == 31 else day} {months} *"


def _listed(first: int, step: int, lowest: int, size: int) -> str:
    found = sorted((first - lowest + k * step) % size + lowest for k in range(size // step))
    return ",".join(map(str, found))


def _wrong(message: str, cure: str) -> ProgramError:
    return ProgramError.of("config", message, help=cure)
