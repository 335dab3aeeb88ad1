from __future__ import annotations

from datetime import UTC, datetime

import pytest

from hydro_core.errors import HydroError
from hydro_core.ticks.every import TickLength, parse_time
from tests.support.refused import Refused


def at(text: str) -> datetime:
    return parse_time(text)


@pytest.mark.parametrize(
    ("every", "time", "floor"),
    [
        ("15m", "2024-05-16T09:44:59Z", "2024-05-16T09:30:00Z"),
        ("1h", "2024-05-16T09:44:59Z", "2024-05-16T09:00:00Z"),
        ("1d", "2024-05-16T23:59:59Z", "2024-05-16T00:00:00Z"),
        ("1d", "2024-05-16T01:00:00+02:00", "2024-05-15T00:00:00Z"),
        ("1w", "2024-05-16", "2024-05-13"),
        ("1w", "2024-05-13", "2024-05-13"),
        ("1mo", "2024-02-29T10:00:00Z", "2024-02-01"),
        ("3mo", "2024-06-30", "2024-04-01"),
        ("1d", "1969-12-31T10:00:00Z", "1969-12-31"),
        ("1w", "1969-12-31", "1969-12-29"),
    ],
)
def test_floor(every: str, time: str, floor: str) -> None:
    assert TickLength.parse(every).floor(at(time)) == at(floor)


@pytest.mark.parametrize(
    ("every", "start", "time", "tick"),
    [
        ("1d", "2024-01-01", "2024-01-01", 0),
        ("1d", "2024-01-01", "2024-01-02", 1),
        ("1d", "2024-01-01T06:00:00Z", "2024-01-02T05:59:59Z", 0),
        ("1d", "2024-01-01", "2023-12-31T23:59:59Z", -1),
        ("2w", "2024-01-01", "2024-01-15", 1),
        ("1mo", "2024-01-01", "2024-03-01", 2),
        ("1mo", "2024-01-01", "2024-02-29", 1),
        ("1mo", "2024-01-31", "2024-02-28", 0),
        ("1mo", "2024-01-31", "2024-02-29", 1),
        ("1mo", "2024-01-15", "2024-01-14", -1),
        ("2mo", "2023-11-01", "2024-01-01", 1),
        ("12mo", "2020-02-29", "2021-02-28", 1),
    ],
)
def test_tick_of(every: str, start: str, time: str, tick: int) -> None:
    assert TickLength.parse(every).tick_of(at(time), at(start)) == tick


@pytest.mark.parametrize("every", ["15m", "1h", "1d", "1w", "1mo", "5mo"])
@pytest.mark.parametrize("start", ["2023-12-31T05:00:00Z", "2024-01-29", "2024-02-29"])
def test_a_tick_holds_its_own_start(every: str, start: str) -> None:
    length, first = TickLength.parse(every), at(start)
    starts = [length.start_of(tick, first) for tick in range(20)]
    assert starts == sorted(set(starts))
    assert [length.tick_of(time, first) for time in starts] == list(range(20))


def test_months_end_on_their_last_day() -> None:
    assert TickLength(1, "mo").start_of(1, datetime(2023, 1, 31, tzinfo=UTC)) == at("2023-02-28")


@pytest.mark.parametrize("text", ["", "0d", "1", "1y", "d", "-1d", "1.5h", "1 d"])
def test_no_length(text: str, refused: Refused) -> None:
    with refused(HydroError, "config"):
        TickLength.parse(text)


def test_no_time(refused: Refused) -> None:
    with refused(HydroError, "config"):
        parse_time("yesterday")
