"""A declared column that a file lacks is null where the input says so, and refused elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from hydro_core.errors import DataError
from hydro_core.files.inputs import InputFile
from hydro_core.files.scan import cut, read_all, scans_of, tick_inputs
from hydro_core.spark.inputs.looks import LandingTable
from hydro_core.spark.inputs.reading import InputBatches
from hydro_core.ticks.every import TickLength
from hydro_core.types.ddl import parse_ddl
from tests.support.int96 import has_int96
from tests.support.refused import Refused

ITEM = parse_ddl("k long, v string, w long")
OPTIONAL = frozenset({"v", "w"})
ROWS = [[{"k": 1, "v": "a", "w": None}, {"k": 2, "v": None, "w": None}], [], []]
"""The first file lacks `w`, and the second both."""


def csv(folder: Path) -> Path:
    (folder / "a.csv").write_text("day,k,v\n0,1,a\n")
    (folder / "b.csv").write_text("day,k\n0,2\n")
    return folder


def json(folder: Path) -> Path:
    (folder / "a.jsonl").write_text('{"day": 0, "k": 1, "v": "a"}\n')
    (folder / "b.jsonl").write_text('{"day": 0, "k": 2}\n')
    (folder / "empty.jsonl").write_text("")
    return folder


def parquet(folder: Path) -> Path:
    pq.write_table(pa.table({"day": [0], "k": [1], "v": ["a"]}), folder / "a.parquet")
    pq.write_table(pa.table({"day": [0], "k": [2]}), folder / "b.parquet")
    return folder


def delta(folder: Path) -> Path:
    """Its own schema gained `v`: rows from before have a null there."""
    write_deltalake(folder / "t", pa.table({"day": [0], "k": [2]}))
    rows = pa.table({"day": [0], "k": [1], "v": ["a"]})
    write_deltalake(folder / "t", rows, mode="append", schema_mode="merge")
    return folder / "t"


KINDS = (csv, json, parquet, delta)
Write = Callable[[Path], Path]


def by_run(path: Path, optional: frozenset[str], item: Any = ITEM) -> list[list[Any]]:
    scan = scans_of([InputFile("x", str(path), "day", optional)], {"x": item})
    inputs = [read_all(one) for one in scan]
    found = [
        tick.batches["x"] for tick in tick_inputs(inputs, cut(inputs, TickLength.parse("1d"), None))
    ]
    return [list(rows) for rows in found]


def by_flow(path: Path, optional: frozenset[str], item: Any = ITEM) -> list[list[Any]]:
    landings = {"x": LandingTable(path, "day", None, optional)}
    inputs = InputBatches(landings, {"x": item}, lambda: pytest.fail("no Spark"))
    rows = inputs.read(0, 2)["x"].rows
    return [[row["item"] for row in rows.to_pylist() if row["t"] == t] for t in range(3)]


@pytest.mark.parametrize("write", KINDS)
def test_what_may_be_lacking_is_null(write: Write, tmp_path: Path) -> None:
    path = write(tmp_path)
    for found in (by_run(path, OPTIONAL), by_flow(path, OPTIONAL)):
        assert sorted(found[0], key=lambda row: row["k"]) == ROWS[0]


@pytest.mark.parametrize("read", [by_run, by_flow])
@pytest.mark.parametrize("write", KINDS)
def test_what_may_not_is_refused(write: Write, read: Any, tmp_path: Path, refused: Refused) -> None:
    path = write(tmp_path)
    with refused(DataError, "input"):
        read(path, OPTIONAL - {"w"})
    item = parse_ddl("k long, v string")
    if write is delta:
        # A Delta table has one schema, which the log tells.
        assert len(read(path, frozenset(), item)[0]) == 2
        return
    with refused(DataError, "input"):
        read(path, frozenset(), item)


def test_old_files_of_a_table_are_read_by_themselves(tmp_path: Path) -> None:
    """Text is made a decimal value by value, so these are read file by file."""
    write_deltalake(tmp_path / "t", pa.table({"day": [0], "k": ["2"]}))
    rows = pa.table({"day": [1], "k": ["1"], "v": ["a"]})
    write_deltalake(tmp_path / "t", rows, mode="append", schema_mode="merge")
    item = parse_ddl("k decimal(5,0), v string")
    expected = [[{"k": Decimal(2), "v": None}], [{"k": Decimal(1), "v": "a"}]]
    assert by_run(tmp_path / "t", frozenset(), item) == expected
    assert by_flow(tmp_path / "t", frozenset(), item)[:2] == expected


def test_a_row_of_json_may_leave_out_what_others_have(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"day": 0, "k": 1}\n{"day": 0, "k": 2, "v": "b"}\n')
    expected = [{"k": 1, "v": None}, {"k": 2, "v": "b"}]
    for read in (by_run, by_flow):
        assert read(tmp_path, frozenset(), parse_ddl("k long, v string"))[0] == expected


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_other_writers_timestamps_are_read_as_they_are(kind: str, tmp_path: Path) -> None:
    """Spark and Hive write INT96, which nanoseconds do not hold."""
    times = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC), None]
    of = pa.timestamp("us", "UTC")
    rows = pa.table(
        {
            "day": [0, 0, 0],
            "at": pa.array(times, of),
            "ats": pa.array([times, [], None], pa.list_(of)),
            "deep": pa.array([{"at": at} for at in times], pa.struct([("at", of)])),
        }
    )
    file = tmp_path / "rows.parquet"
    if kind == "delta":
        write_deltalake(tmp_path / "t", rows)
        (file,) = (tmp_path / "t").glob("*.parquet")
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True)
    for log in (tmp_path / "t" / "_delta_log").glob("*.json"):
        size = f'"size":{file.stat().st_size},'
        log.write_text(re.sub(r'"size":\d+,', size, log.read_text()))
    assert has_int96(file)
    item = parse_ddl("at timestamp, ats array<timestamp>, deep struct<at: timestamp>")
    expected = [row | {"day": 0} for row in rows.to_pylist()]
    path = tmp_path / "t" if kind == "delta" else file
    for read in (by_run, by_flow):
        found = read(path, frozenset(), item)[0]
        assert [{**row, "day": 0} for row in found] == expected
