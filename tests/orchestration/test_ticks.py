"""Tick keys, windows and numbers are three names of one thing, and Dagster's partitions another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hydro_core.errors import HydroError
from hydro_core.project.flow_asset import Ticks
from hydrotick.code_location.asset_specs import partitions_of
from tests.support.refused import Refused

pytestmark = pytest.mark.dagster

ZONES = (
    "UTC",
    "Europe/Amsterdam",
    "America/New_York",
    "America/Santiago",
    "America/Havana",
    "Africa/Cairo",
    "Asia/Kolkata",
    "Australia/Sydney",
    "Pacific/Auckland",
)
LENGTHS = [
    "1m",
    "2m",
    "3m",
    "5m",
    "10m",
    "15m",
    "20m",
    "30m",
    "1h",
    "2h",
    "3h",
    "4h",
    "6h",
    "8h",
    "12h",
    "1d",
    "1w",
    "1mo",
    "2mo",
    "3mo",
    "6mo",
    "12mo",
]
SHOWN = 40


@st.composite
def axes(draw: st.DrawFn) -> Ticks:
    """Axes that begin near a change of clocks now and then, or on the last of a month."""
    every = draw(st.sampled_from(LENGTHS))
    first = draw(
        st.datetimes(datetime(2023, 1, 1), datetime(2027, 12, 31))
        | st.sampled_from(
            [datetime(2026, 3, 28), datetime(2026, 10, 24), datetime(2026, 1, 31)]
        ).flatmap(lambda day: st.integers(0, 1439).map(lambda m: day + timedelta(minutes=m)))
    )
    start = first.replace(second=0, microsecond=0)
    if every.endswith("mo") and start.day in (29, 30):
        start = start.replace(day=28)
    zone = draw(st.sampled_from(ZONES))
    # Dagster begins on a time that comes twice with either of the two.
    return Ticks(start, every, datetime(2050, 1, 1), zone=zone)


@settings(max_examples=300, deadline=None)
@given(axes())
@example(Ticks(datetime(2026, 3, 1, 2, 30), "1d", datetime(2027, 1, 1), zone="Europe/Amsterdam"))
@example(Ticks(datetime(2026, 1, 4, 6), "1w", datetime(2027, 1, 1)))
@example(Ticks(datetime(2026, 1, 31), "1mo", datetime(2029, 1, 1)))
@example(Ticks(datetime(2023, 9, 1, 0, 30), "2h", datetime(2027, 1, 1), zone="America/Santiago"))
@example(Ticks(datetime(2023, 9, 1, 0, 30), "1d", datetime(2027, 1, 1), zone="America/Santiago"))
@example(Ticks(datetime(2024, 9, 1, 0, 30), "1w", datetime(2027, 1, 1), zone="America/Santiago"))
@example(Ticks(datetime(2026, 4, 23), "6h", datetime(2027, 1, 1), zone="Africa/Cairo"))
@example(Ticks(datetime(2026, 10, 28), "6h", datetime(2027, 1, 1), zone="Africa/Cairo"))
@example(Ticks(datetime(2026, 10, 24, 22), "15m", datetime(2027, 1, 1), zone="Europe/Amsterdam"))
def test_numbers_keys_and_windows_agree_with_dagster(ticks: Ticks) -> None:
    axis = ticks.calendar
    keys = partitions_of(axis).get_partition_keys_between_indexes(0, SHOWN)
    windows = [axis.window(number) for number in range(len(keys))]
    assert [window.key for window in windows] == keys
    assert len(set(keys)) == len(keys)
    assert [axis.window_of(key) for key in keys] == windows
    for window in windows:
        theirs = partitions_of(axis).time_window_for_partition_key(window.key)
        # In UTC: times of two zones are never equal where one of them comes twice.
        ends = theirs.start.astimezone(UTC), theirs.end.astimezone(UTC)
        assert (window.start, window.end) == ends
    assert all(before.end == after.start for before, after in pairwise(windows))
    assert all(window.start < window.end for window in windows)
    for window in windows:
        moments = (window.start, window.end - timedelta(microseconds=1))
        assert [axis.tick_of(moment) for moment in moments] == [window.tick] * 2


@pytest.mark.parametrize(
    ("every", "count"), [("1d", 10), ("1w", 1), ("6h", 43), ("1mo", 0), ("1h", 260)]
)
def test_an_end_within_a_window_leaves_that_window_out(
    every: str, count: int, refused: Refused
) -> None:
    ticks = Ticks(datetime(2026, 1, 1), every, datetime(2026, 1, 11, 20))
    if not count:
        with refused(HydroError, "config"):
            _ = ticks.calendar
        return
    axis = ticks.calendar
    assert axis.count == count == len(partitions_of(axis).get_partition_keys())
    assert axis.closed(datetime(2030, 1, 1, tzinfo=UTC)) == count


@pytest.mark.parametrize(
    ("ticks", "key", "says"),
    [
        (Ticks(datetime(2024, 1, 1), "1w"), "2024-01-03", "the nearest is 2024-01-01"),
        (Ticks(datetime(2024, 1, 1), "1w"), "2023-12-25", "the first tick is 2024-01-01"),
        (Ticks(datetime(2024, 1, 1)), "monday", "a key is like 2024-01-01"),
        (
            Ticks(datetime(2024, 1, 1), "1d", datetime(2024, 1, 4)),
            "2024-01-04",
            "the last tick is 2024-01-03",
        ),
    ],
)
def test_a_key_of_no_tick_is_refused(ticks: Ticks, key: str, says: str, refused: Refused) -> None:
    with refused(HydroError, "config"):
        ticks.calendar.window_of(key)


def test_a_tick_is_closed_when_its_window_has_ended() -> None:
    axis = Ticks(datetime(2024, 1, 1), "1d", datetime(2024, 1, 4)).calendar
    assert axis.closed(datetime(2023, 12, 31, tzinfo=UTC)) == 0
    assert axis.closed(datetime(2024, 1, 1, 23, 59, tzinfo=UTC)) == 0
    assert axis.closed(datetime(2024, 1, 2, tzinfo=UTC)) == 1
    assert axis.closed(datetime(2030, 1, 1, tzinfo=UTC)) == 3
    late = Ticks(datetime(2024, 1, 1), delay="2h").calendar
    assert late.closed(datetime(2024, 1, 2, 1, 59, tzinfo=UTC)) == 0
    assert late.closed(datetime(2024, 1, 2, 2, tzinfo=UTC)) == 1


@pytest.mark.parametrize(
    ("ticks", "says"),
    [
        (Ticks(datetime(2024, 1, 1), "7m"), "`every`: ticks of 7m have no schedule"),
        (Ticks(datetime(2024, 1, 1), "2d"), "`every`: ticks of 2d have no schedule"),
        (Ticks(datetime(2024, 1, 1), "daily"), "`every`: 'daily' is not a length of time"),
        (Ticks(datetime(2024, 1, 1, 0, 0, 5)), "`start`: .* is within a minute"),
        (Ticks(datetime(2024, 1, 30), "1mo"), "`start`: not every month has a day 30"),
        (Ticks(datetime(2024, 1, 2), "1d", datetime(2024, 1, 1)), "is before the start"),
        (Ticks(datetime(2024, 1, 2), zone="Europe/Amsterdan"), "did you mean `Europe/Amsterdam`"),
        (Ticks(datetime(2024, 1, 2), delay="1mo"), "`delay`: '1mo' has no fixed length"),
        (Ticks(datetime(2024, 1, 2), delay="soon"), "`delay`: 'soon' is not a length of time"),
    ],
)
def test_an_axis_without_ticks_is_refused(ticks: Ticks, says: str, refused: Refused) -> None:
    with refused(HydroError, "config"):
        _ = ticks.calendar
