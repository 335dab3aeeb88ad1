"""Stored rows that leave by their time: which are read, and which files are taken out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hydro_core.catalog.forms import Form
from hydro_core.plan.tick_plan import TimeBound
from hydro_core.spark.frames.relation import Kind
from hydro_core.spark.store.cached_rows import LiveRows, read_alive, take_out
from hydro_core.spark.store.delta.table import StoredTable
from hydro_core.spark.store.schema import TableSpec
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.values import since_epoch

DAY = timedelta(days=1)
START = datetime(2026, 1, 1, tzinfo=UTC)
BOUND = TimeBound("at", 2 * 86_400_000_000)


def stored(directory: Path, time: str = "timestamp") -> StoredTable:
    item = parse_ddl(f"k string, at {time}")
    spec = TableSpec("state/a", "state", "a", item, False, Form.GROWTH, Kind.E, "", BOUND)
    table = StoredTable(directory, spec, checkpoint_interval=100)
    table.create()
    return table


def put(table: StoredTable, tick: int, *times: Any) -> None:
    rows = [{"t": tick, "item": {"k": "x", "at": time}} for time in times]
    table.append(pa.Table.from_pylist(rows, schema=table.spec.arrow_schema))


def ticks(table: StoredTable) -> list[int]:
    return sorted(file.first for file in table.files() if file.first is not None)


@pytest.mark.parametrize("time", ["timestamp", "timestamp_ntz", "date"])
def test_only_what_is_there_or_leaves_is_read(time: str, tmp_path: Path) -> None:
    table = stored(tmp_path, time)
    for tick in range(5):
        moment = START + tick * DAY
        shown: Any = {"date": moment.date(), "timestamp_ntz": moment.replace(tzinfo=None)}
        put(table, tick, shown.get(time, moment))
    put(table, 5, None, None)
    since, until = (since_epoch(START + days * DAY) for days in (1, 2))
    for alive, wanted in (
        (LiveRows(BOUND, since), [2, 3, 4]),
        (LiveRows(BOUND, since, until), [2]),
        (LiveRows(BOUND, until + 3 * 86_400_000_000), []),
    ):
        found = read_alive(table.files(), table.spec.arrow_schema, alive)
        assert sorted(found["t"].to_pylist()) == wanted
        read = [file.first for file in table.files() if alive.places(file)]
        assert sorted(tick for tick in read if tick is not None) == wanted


def test_files_go_when_all_their_rows_have_left(tmp_path: Path) -> None:
    table = stored(tmp_path)
    for tick in range(6):
        put(table, tick, START + tick * DAY)
    take_out(table, 2, START + 3 * DAY)
    assert ticks(table) == [0, 1, 2, 3, 4, 5], "too few have left to be worth it"
    take_out(table, 4, START + 5 * DAY)
    assert ticks(table) == [4, 5]
    assert table.summed_to() == 4, "what it held after an earlier tick is not told any more"
    take_out(table, 4, None)
    assert ticks(table) == [4, 5]


def test_what_is_being_written_stays(tmp_path: Path) -> None:
    """Also where it came too late: it is compared with what was to be written."""
    table = stored(tmp_path)
    put(table, 0, START)
    put(table, 7, START)
    take_out(table, 6, START + 7 * DAY)
    assert ticks(table) == [7]
    take_out(table, 7, START + 8 * DAY)
    assert ticks(table) == []


def test_a_row_of_the_future_holds_its_file(tmp_path: Path) -> None:
    table = stored(tmp_path)
    put(table, 0, START, START + 100 * DAY, None)
    put(table, 1, START)
    take_out(table, 50, START + 51 * DAY)
    assert ticks(table) == [0, 1], "one of four rows is not half of them"
    put(table, 2, *[START] * 5)
    take_out(table, 50, START + 51 * DAY)
    assert ticks(table) == [0]


def test_bounds_are_as_long_as_they_say() -> None:
    assert BOUND.since(START + 2 * DAY) == since_epoch(START)
