"""One calendar: a row is of the tick whose window holds it, whoever reads it, in any zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.tick_range import NONE, TickRange, moment_of, tick_of_value
from hydro_core.types.values import ValueProblem

ZONES = (
    "UTC",
    "Europe/Amsterdam",
    "America/Havana",  # clocks go back at midnight
    "America/Santiago",  # and forward at midnight
    "Australia/Lord_Howe",  # by half an hour
    "Asia/Kathmandu",
    "Pacific/Apia",  # without a 30th of December 2011
)
# Also lengths that no schedule has, which files are cut by.
LENGTHS = ("1m", "7m", "15m", "1h", "5h", "6h", "1d", "3d", "1w", "1mo", "5mo")
NEAR = [
    datetime(2026, 3, 29, 2, 30),
    datetime(2026, 10, 25, 2, 30),
    datetime(2026, 11, 1, 0, 30),
    datetime(2026, 9, 6, 0, 30),
    datetime(2026, 4, 5, 1, 45),
    datetime(2011, 12, 30, 12),
    datetime(2024, 2, 29, 23, 59, 59, 999_999),
]


@st.composite
def calendars(draw: st.DrawFn) -> Calendar:
    start = draw(st.sampled_from(NEAR)) + timedelta(hours=draw(st.integers(-200, 200)))
    return Calendar(start, draw(st.sampled_from(LENGTHS)), zone=draw(st.sampled_from(ZONES)))


walls = st.builds(
    lambda near, minutes: near + timedelta(minutes=minutes),
    st.sampled_from(NEAR),
    st.integers(-3000, 3000),
)


@given(calendars(), st.lists(walls, min_size=1, max_size=30))
@example(Calendar(datetime(2026, 3, 29), "15m", zone="Europe/Amsterdam"), NEAR)
@example(Calendar(datetime(2026, 3, 29), "1m", zone="Pacific/Apia"), [datetime(2011, 12, 30, 12)])
def test_a_row_is_of_the_tick_whose_window_holds_it(
    calendar: Calendar, times: list[datetime]
) -> None:
    moments = [moment_of(time, calendar.zone) for time in times]
    told = [calendar.tick_of(moment) for moment in moments]
    for tick, moment in zip(told, moments, strict=True):
        window = calendar.window(tick)
        assert window.start <= moment < window.end
    assert [tick_of_value(time, calendar) for time in times] == told
    assert [tick_of_value(time.isoformat(), calendar) for time in times] == told
    zoned = pa.array(moments, pa.timestamp("us", "UTC"))
    wall = pa.array(times, pa.timestamp("us"))
    middle = sorted(told)[len(told) // 2]
    for ticks in (
        TickRange(min(told), None, calendar),
        TickRange(min(told), max(told), calendar),
        TickRange(middle, middle, calendar),
    ):
        wanted = [t if ticks.first <= t <= (ticks.last or t) else NONE for t in told]
        if ticks.last == 0:
            wanted = [t if ticks.first <= t <= 0 else NONE for t in told]
        for values in (zoned, wall, pa.chunked_array([wall, wall.slice(0, 0)])):
            assert ticks.numbers(values).tolist() == wanted
    _finds_them_in_files(TickRange(middle, middle, calendar), told, zoned, wall)


def _finds_them_in_files(ticks: TickRange, told: list[int], *columns: Any) -> None:
    """What is asked of files leaves out no row of the range."""
    for column in columns:
        table = pa.table({"at": column, "tick": told})
        found = ds.dataset(table).to_table(filter=ticks.within("at", column.type))
        there = [tick for tick in found["tick"].to_pylist() if tick == ticks.first]
        assert there == [tick for tick in told if tick == ticks.first]


@given(calendars(), st.integers(-50, 50))
def test_windows_follow_each_other(calendar: Calendar, tick: int) -> None:
    times = calendar.times(tick, tick + 9)
    assert list(times) == list(range(tick, tick + 10))
    assert all(one[1] == other[0] for one, other in pairwise(times.values()))
    for number, (start, end) in times.items():
        assert (start, end) == (calendar.window(number).start, calendar.window(number).end)
        if start < end:  # Apia had days that never were
            assert calendar.tick_of(start) == number
            assert calendar.tick_of(end - timedelta(microseconds=1)) == number


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("every", LENGTHS)
def test_the_ends_of_time_are_of_some_tick(every: str, zone: str) -> None:
    calendar = Calendar(datetime(2026, 1, 1), every, zone=zone)
    last, first = (end.replace(tzinfo=UTC) for end in (datetime.max, datetime.min))
    assert calendar.tick_of(last) > 0 > calendar.tick_of(first)
    ends = pa.array([last, first, datetime(2026, 1, 1, 12, tzinfo=UTC)])
    week = TickRange(0, 7 * 24 * 60, calendar)
    assert np.flatnonzero(week.of_moments(ends) != NONE).tolist() == [2]


def test_rows_before_the_start_have_negative_ticks_and_are_of_no_range_from_0() -> None:
    calendar = Calendar(datetime(2026, 1, 31), "1mo", zone="Europe/Amsterdam")
    days = [date(2025, 12, 30), date(2025, 12, 31), date(2026, 1, 31), date(2026, 2, 28)]
    assert [tick_of_value(day, calendar) for day in days] == [-2, -1, 0, 1]
    assert TickRange(0, None, calendar).numbers(pa.array(days)).tolist() == [NONE, NONE, 0, 1]
    assert TickRange(0, 0, calendar).numbers(pa.array(days)).tolist() == [NONE, NONE, 0, NONE]
    numbers = pa.array([-1, 0, None, 3], pa.int32())
    assert TickRange(0, 2).numbers(numbers).tolist() == [NONE, 0, NONE, NONE]
    assert TickRange(0, None).numbers(numbers).tolist() == [NONE, 0, NONE, 3]


def test_nulls_are_of_no_tick() -> None:
    nulls = pa.array([None, datetime(2026, 1, 1)], pa.timestamp("us"))
    for zone in ZONES:
        ticks = TickRange(0, None, Calendar(datetime(2025, 12, 31), zone=zone))
        assert ticks.numbers(nulls).tolist() == [NONE, 1]
        assert ticks.numbers(nulls.slice(0, 1)).tolist() == [NONE]


def test_a_time_tells_no_tick_where_ticks_have_no_windows() -> None:
    with pytest.raises(ValueProblem, match="no windows"):
        TickRange(0, 1).numbers(pa.array([date(2026, 1, 1)]))
    assert tick_of_value(date(2026, 1, 1), None) is None
    assert tick_of_value("7", None) == 7
