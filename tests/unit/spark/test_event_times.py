"""By how much events lie before the window of the tick with which their rows arrive."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hydro_core.spark.inputs.batches import Batch, EventLateness, event_lateness, relation_schema
from hydro_core.spark.store.ledger.records import InputRead
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.tick_range import TickRange
from hydro_core.types.arrow import to_arrow
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.values import RowItem

UTC_DAYS = Calendar(datetime(2026, 1, 1, tzinfo=UTC), "1d")
AMSTERDAM = Calendar(datetime(2025, 12, 31, 23, tzinfo=UTC), "1d", zone="Europe/Amsterdam")
Rows = list[tuple[int, Any]]
CASES: list[tuple[str, Calendar, Rows, dict[int, EventLateness]]] = [
    (
        "timestamp",
        UTC_DAYS,
        [
            (1, datetime(2026, 1, 2, tzinfo=UTC)),
            (1, datetime(2026, 1, 1, 23, 59, 59, tzinfo=UTC)),
            (1, datetime(2026, 1, 1, 12, tzinfo=UTC)),
            (1, None),
            (2, datetime(2026, 1, 9, tzinfo=UTC)),
            (3, datetime(2025, 12, 31, tzinfo=UTC)),
        ],
        {1: EventLateness(2, timedelta(hours=12)), 3: EventLateness(1, timedelta(days=4))},
    ),
    (
        "date",
        AMSTERDAM,
        [(1, date(2026, 1, 2)), (1, date(2026, 1, 1)), (2, date(2026, 1, 3))],
        {1: EventLateness(1, timedelta(days=1))},
    ),
    (
        "timestamp_ntz",
        AMSTERDAM,
        [(1, datetime(2026, 1, 2)), (2, datetime(2026, 1, 2, 23, 30))],
        {2: EventLateness(1, timedelta(minutes=30))},
    ),
    ("timestamp", UTC_DAYS, [(1, None)], {}),
    ("timestamp", UTC_DAYS, [], {}),
]


def table(of: str, rows: Rows) -> tuple[pa.Table, Any]:
    item = parse_ddl(f"k long, at {of}")
    items = to_arrow([RowItem(k=1, at=at) for _, at in rows], item)
    return pa.table({"item": items, "t": pa.array([t for t, _ in rows], pa.int64())}), item


@pytest.mark.parametrize(("of", "calendar", "rows", "late"), CASES)
def test_few_rows(of: str, calendar: Calendar, rows: Rows, late: dict[int, EventLateness]) -> None:
    found, item = table(of, rows)
    batch = Batch(found, item, InputRead("in"))
    assert event_lateness(batch, "at", TickRange(1, 3, calendar)) == late
    assert event_lateness(batch, "gone", TickRange(1, 3, calendar)) == {}
    assert event_lateness(batch, "at", TickRange(1, 3)) == {}


@pytest.mark.spark
@pytest.mark.parametrize(("of", "calendar", "rows", "late"), CASES[:3])
def test_many_rows(
    spark: SparkSession,
    of: str,
    calendar: Calendar,
    rows: Rows,
    late: dict[int, EventLateness],
) -> None:
    found, item = table(of, rows)
    frame = spark.createDataFrame(found, relation_schema(item))
    batch = Batch(frame, item, InputRead("in"))
    assert event_lateness(batch, "at", TickRange(1, 3, calendar)) == late
