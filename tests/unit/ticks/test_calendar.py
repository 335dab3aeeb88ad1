"""Windows of ticks partition time wherever clocks are changed, by however much."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from hydro_core.ticks.calendar import Calendar

MOMENT = timedelta(microseconds=1)
CHANGED = {
    "Pacific/Apia": [2011],
    "Pacific/Kwajalein": [1969, 1993],
    "Pacific/Kiritimati": [1979, 1994, 1995],
    "Pacific/Enderbury": [1994, 1995],
    "Asia/Manila": [1844, 1845, 1899],
    "America/Juneau": [1867],
    "Africa/Monrovia": [1882, 1919, 1972],
    "Australia/Lord_Howe": [1981, 1985, 2025],
    "Antarctica/Troll": [2005, 2025],
    "Antarctica/Casey": [1968, 1969, 2009, 2010],
    "America/Danmarkshavn": [1996],
    "America/Goose_Bay": [1988, 1989],
    "America/Santiago": [2025],
    "Asia/Pyongyang": [2015, 2018],
    "Europe/Amsterdam": [1937, 1940, 2025],
    "Africa/El_Aaiun": [1934, 2025],
}
"""Zones whose clocks skip or repeat a day, hours, or less than one, and the years of it."""
LENGTHS = ["20m", "1h", "2h", "5h", "6h", "1d", "2d", "1mo"]


@pytest.mark.parametrize("every", LENGTHS)
@pytest.mark.parametrize("zone", CHANGED)
def test_windows_partition_time_and_keys_name_them(zone: str, every: str) -> None:
    for changed in _changes(zone, CHANGED[zone]):
        for hours in (0, 2.5, 23):
            calendar = _before(changed, every, zone, hours)
            past = calendar.tick_of(changed + timedelta(days=1, hours=3)) + 3
            windows = [calendar.window(tick) for tick in range(past)]
            assert all(one.end == after.start for one, after in pairwise(windows))
            assert all(one.start <= one.end for one in windows)
            for one in windows:
                # One that is empty holds no moment.
                inside = (one.start, one.end - MOMENT) if one.start < one.end else ()
                assert [calendar.tick_of(moment) for moment in inside] == [one.tick] * len(inside)
            assert len({one.key for one in windows}) == past
            assert [calendar.window_of(one.key) for one in windows] == windows


def test_ticks_within_a_skipped_day_are_empty() -> None:
    calendar = Calendar(datetime(2011, 12, 29, 23), "5h", zone="Pacific/Apia")
    midnight = datetime(2011, 12, 30, 10, tzinfo=UTC)
    windows = [calendar.window(tick) for tick in range(7)]
    assert [(one.key, one.start - midnight, one.end - midnight) for one in windows] == [
        ("2011-12-29-23:00", timedelta(hours=-1), timedelta()),
        *((f"2011-12-30-{hour:02}:00", timedelta(), timedelta()) for hour in (4, 9, 14, 19)),
        ("2011-12-31-00:00", timedelta(), timedelta(hours=5)),
        ("2011-12-31-05:00", timedelta(hours=5), timedelta(hours=10)),
    ]
    assert calendar.tick_of(midnight) == 5
    assert calendar.closed(midnight) == 5


@pytest.mark.parametrize(
    ("start", "every", "starts"),
    [
        # Windows that were ever right stay as they are: deployed flows have rows of them.
        (datetime(2011, 12, 29, 23), "1d", [9, 33, 33, 57]),
        (datetime(2011, 12, 29), "1d", [-14, 10, 10, 34]),
        (datetime(2011, 12, 29, 2), "1d", [-12, 12, 12, 36]),
        (datetime(2011, 12, 29, 22), "1w", [8, 152, 320]),
    ],
)
def test_days_begin_at_their_time_after_a_skipped_one(
    start: datetime, every: str, starts: list[int]
) -> None:
    calendar = Calendar(start, every, zone="Pacific/Apia")
    first = datetime(2011, 12, 30, tzinfo=UTC)
    found = [calendar.start_of(tick) - first for tick in range(len(starts))]
    assert found == [timedelta(hours=hours) for hours in starts]
    keys = [calendar.window(tick).key for tick in range(3)]
    length = timedelta(days=7 if every == "1w" else 1)
    assert keys == [f"{start + n * length:%Y-%m-%d}" for n in range(3)]


def _before(changed: datetime, every: str, zone: str, hours: float) -> Calendar:
    """Ticks from a time of day on, which begin shortly before the change."""
    if every.endswith("m"):
        start = changed - timedelta(hours=1, minutes=int(hours))
        return Calendar(start.replace(second=0), every, zone=zone)
    days = {"h": 1, "d": 3, "w": 8, "o": 70}[every[-1]]
    day = (changed - timedelta(days=days)).astimezone(ZoneInfo(zone)).date()
    at = datetime(day.year, day.month, day.day) + timedelta(hours=hours)
    return Calendar(at, every, zone=zone)


def _changes(zone: str, years: list[int]) -> Iterator[datetime]:
    """When the clocks of a zone are changed in some years, to the second."""
    clocks = ZoneInfo(zone)
    for year in years:
        days = [datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=n) for n in range(-1, 366)]
        for early, late in pairwise(days):
            low, high = early, late
            before = low.astimezone(clocks).utcoffset()
            if high.astimezone(clocks).utcoffset() == before:
                continue
            while (half := (high - low) // 2) >= timedelta(seconds=1):
                middle = (low + half).replace(microsecond=0)
                if middle.astimezone(clocks).utcoffset() == before:
                    low = middle
                else:
                    high = middle
            yield high
