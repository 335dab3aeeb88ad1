"""A tick of another calendar arrives with the same window, or after its own, longer one."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from deltalake import write_deltalake

from hydro_core.spark.inputs.looks import LandingTable
from hydro_core.spark.inputs.reading import InputBatches
from hydro_core.ticks.calendar import Calendar, Feed
from hydro_core.ticks.tick_range import NONE, TickRange, tick_of_value
from hydro_core.types.ddl import parse_ddl

JANUARY, ZONE = datetime(2026, 1, 1), "Europe/Amsterdam"
FEEDS = {
    "the same": (Calendar(JANUARY), Calendar(JANUARY), [0, 1, 2]),
    "it begins later": (Calendar(datetime(2026, 1, 3)), Calendar(JANUARY), [-2, -1, 0, 1]),
    "the other begins later": (Calendar(JANUARY), Calendar(datetime(2026, 1, 3)), [2, 3]),
    "days for hours": (Calendar(JANUARY, "1h"), Calendar(JANUARY), [24, 48, 72]),
    "weeks for days": (Calendar(JANUARY), Calendar(datetime(2026, 1, 5), "1w"), [11, 18]),
    "months for days": (Calendar(JANUARY), Calendar(JANUARY, "1mo"), [31, 59, 90]),
    "half a day off": (Calendar(JANUARY, "6h"), Calendar(datetime(2026, 1, 1, 9)), [5, 9]),
    "a day of 23 hours": (
        Calendar(datetime(2026, 3, 28), "1h", zone=ZONE),
        Calendar(datetime(2026, 3, 28), zone=ZONE),
        [24, 47, 71],
    ),
    "a day of 25 hours": (
        Calendar(datetime(2026, 10, 24), "1h", zone=ZONE),
        Calendar(datetime(2026, 10, 24), zone=ZONE),
        [24, 49, 73],
    ),
}


@pytest.mark.parametrize("name", FEEDS)
def test_with_which_tick_another_one_arrives(name: str) -> None:
    own, other, arrive = FEEDS[name]
    feed = Feed(own, other)
    assert [feed.arrives(tick) for tick in range(len(arrive))] == arrive
    assert feed.is_one_to_one is (own.every == other.every)
    assert feed.is_coarser is (own.every != other.every)
    for first in range(30):
        for last in (first, first + 1, first + 40):
            wanted = [tick for tick in range(99) if first <= feed.arrives(tick) <= last]
            assert list(feed.needed(first, last)) == wanted


@pytest.mark.parametrize("name", FEEDS)
def test_rows_arrive_by_the_other_flows_ticks(name: str) -> None:
    own, other, arrive = FEEDS[name]
    told = pa.array([None, -1, *range(len(arrive))], pa.int64())
    for first, last in ((0, None), (0, 200), (arrive[-1], arrive[-1]), (arrive[-1] + 1, 500)):
        ticks = TickRange(first, last, own, other)
        wanted = [t if first <= t <= (500 if last is None else last) else NONE for t in arrive]
        assert ticks.numbers(told).tolist() == [NONE, NONE, *wanted]
        if last is not None:
            found = ds.dataset(pa.table({"tick": told}))
            kept = found.to_table(filter=ticks.within("tick", told.type))["tick"]
            assert np.array_equal(kept, [c for c, t in enumerate(wanted) if t != NONE])
    assert [tick_of_value(tick, own, other) for tick in range(len(arrive))] == arrive


def test_a_tick_reads_the_rows_of_the_longer_tick_that_was_over(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"tick": [0, 0, 1, 2], "n": [1, 2, 3, 4]}))
    own, other = Calendar(JANUARY, "6h"), Calendar(JANUARY)
    inputs = InputBatches(
        {"x": LandingTable(tmp_path, "tick", other)},
        {"x": parse_ddl("n long")},
        lambda: pytest.fail("no Spark"),
        calendar=own,
        directory=tmp_path / "none",
    )
    batch = inputs.read(0, 9)["x"]
    assert [(row["t"], row["item"]["n"]) for row in batch.rows.to_pylist()] == [
        (4, 1),
        (4, 2),
        (8, 3),
    ]
    assert batch.read.empty == (0, 1, 2, 3, 5, 6, 7, 9)
    write_deltalake(tmp_path, pa.table({"tick": [1], "n": [9]}), mode="append")
    (late,) = inputs.landings.look(10, [batch.read]).values()
    assert late.arrivals.late == {8: 1}
