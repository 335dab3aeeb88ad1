"""Tick keys, windows and numbers are three names of one thing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from assets.spec import Ticks
from orchestration.ticks import TickAxis

pytestmark = pytest.mark.dagster


@pytest.mark.parametrize(
    ("every", "start"),
    [
        ("15m", datetime(2024, 2, 28, 23, 45)),
        ("1h", datetime(2024, 2, 28, 22)),
        ("1d", datetime(2024, 2, 27)),
        ("1w", datetime(2024, 1, 1)),
        ("1mo", datetime(2023, 11, 1)),
    ],
)
def test_numbers_keys_and_windows_agree_with_dagster(every, start):
    axis = TickAxis(Ticks(start, every, datetime(2025, 3, 3)))
    keys = axis.partitions.get_partition_keys()[:20]
    assert [axis.window(n).key for n in range(len(keys))] == keys
    assert [axis.window_of(key).tick for key in keys] == list(range(len(keys)))
    for number, key in enumerate(keys):
        theirs = axis.partitions.time_window_for_partition_key(key)
        ours = axis.window(number)
        assert (ours.start, ours.end) == (theirs.start, theirs.end)


def test_a_key_within_a_window_is_refused():
    axis = TickAxis(Ticks(datetime(2024, 1, 1), "1w"))
    with pytest.raises(ValueError, match="is not the start of a tick"):
        axis.window_of("2024-01-03")


def test_a_tick_is_closed_when_its_window_has_ended():
    axis = TickAxis(Ticks(datetime(2024, 1, 1), "1d", datetime(2024, 1, 4)))
    assert axis.closed(datetime(2023, 12, 31, tzinfo=UTC)) == 0
    assert axis.closed(datetime(2024, 1, 1, 23, 59, tzinfo=UTC)) == 0
    assert axis.closed(datetime(2024, 1, 2, tzinfo=UTC)) == 1
    assert axis.closed(datetime(2030, 1, 1, tzinfo=UTC)) == 3
