"""What a run reads, a flow reads: what is wrong with files is told alike, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hydro_core.errors import DataError
from hydro_core.files.inputs import InputFile
from hydro_core.files.scan import cut, read_all, scans_of, tick_inputs
from hydro_core.spark.inputs.looks import LandingTable
from hydro_core.spark.inputs.reading import InputBatches
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.every import TickLength
from hydro_core.types.ddl import parse_ddl
from tests.support.refused import Refused
from tests.support.wrong_files import CASES, INNER, delta, parquet

DAY = datetime(2026, 1, 1, tzinfo=UTC)
CALENDAR = Calendar(DAY)


def by_run(path: Path, schema: str) -> list[list[Any]]:
    scan = scans_of([InputFile("x", str(path), "day")], {"x": parse_ddl(schema)})
    inputs = [read_all(one) for one in scan]
    ticks = tick_inputs(inputs, cut(inputs, TickLength.parse("1d"), None))
    return [list(tick.batches["x"]) for tick in ticks]


def by_flow(path: Path, schema: str) -> list[list[Any]]:
    landings = {"x": LandingTable(path, "day")}
    inputs = InputBatches(
        landings, {"x": parse_ddl(schema)}, lambda: pytest.fail("no Spark"), calendar=CALENDAR
    )
    rows = inputs.read(0, 2)["x"].rows
    return [[row["item"] for row in rows.to_pylist() if row["t"] == t] for t in range(3)]


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_told_alike(tmp_path: Path, case: str, refused: Refused) -> None:
    write, schema = CASES[case]
    path = write(tmp_path)
    told = []
    for read in (by_run, by_flow):
        with refused(DataError, "input") as caught:
            read(path, schema)
        told.append(str(caught.value))
    assert told[0] == told[1]


@pytest.mark.parametrize("write", [parquet, delta])
def test_fields_within_that_are_there_are_read(
    tmp_path: Path, write: Callable[..., Callable[[Path], Path]]
) -> None:
    path = write(v=pa.array([{"a": 1}, None], INNER.type))(tmp_path)
    schema = "v struct<a: long not null>"
    rows = [[{"v": {"a": 1}}], [], [{"v": None}]]
    assert by_run(path, schema) == by_flow(path, schema) == rows


def test_a_file_without_rows_has_none(tmp_path: Path) -> None:
    schema = pa.schema([("day", pa.date32()), ("v", pa.string())])
    pq.write_table(schema.empty_table(), tmp_path / "a.parquet")
    # Text is read by itself as a decimal, so piece by piece.
    assert by_run(tmp_path, "v decimal(5,2)") == []
    assert by_flow(tmp_path, "v decimal(5,2)") == [[], [], []]
