"""A flow's landing is read as `hydrotick run --input` reads it: same rows, types and errors."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from hydro_core.errors import DataError
from hydro_core.files.inputs import InputFile
from hydro_core.files.scan import cut, read_all, scans_of, tick_inputs
from hydro_core.spark.inputs import snapshot as source
from hydro_core.spark.inputs.looks import LandingTable
from hydro_core.spark.inputs.reading import InputBatches
from hydro_core.spark.store.ledger.records import InputRead
from hydro_core.ticks.calendar import Calendar
from hydro_core.ticks.every import TickLength
from hydro_core.ticks.tick_range import moment_of
from hydro_core.types.ddl import parse_ddl
from tests.support.refused import Refused
from tests.support.selection import alternately_slow

pytestmark = pytest.mark.spark

ITEM = parse_ddl("user string, v long")
DAY = datetime(2026, 1, 1, tzinfo=UTC)
TICKS = 3
CALENDAR = Calendar(DAY)
ROWS: list[dict[str, Any]] = [
    {"day": date(2026, 1, 1), "user": "ann", "v": 1},
    {"day": date(2026, 1, 3), "user": None, "v": None},
    {"day": date(2026, 1, 1), "user": "b,b", "v": -3},
    {"day": date(2026, 1, 3), "user": "", "v": 2**53 + 1},
]


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows)


def _delta(path: Path, rows: list[dict[str, Any]]) -> str:
    write_deltalake(path / "table", _table(rows))
    return "table"


def _parquet(path: Path, rows: list[dict[str, Any]]) -> str:
    pq.write_table(_table(rows), path / "rows.parquet")
    return "rows.parquet"


def _two_types(path: Path, rows: list[dict[str, Any]]) -> str:
    """Files whose columns have different types, and one that lacks one."""
    first = _table(rows[1:]).cast(
        pa.schema([("day", pa.date32()), ("user", pa.large_string()), ("v", pa.int64())])
    )
    second = _table(rows[:1])
    pq.write_table(first, path / "1.parquet")
    pq.write_table(second.set_column(2, "v", second["v"].cast(pa.int32())), path / "2.parquet")
    return "*.parquet"


def _hive(path: Path, rows: list[dict[str, Any]]) -> str:
    for number, row in enumerate(rows):
        folder = path / f"day={row['day']}"
        folder.mkdir(exist_ok=True)
        rest = {name: value for name, value in row.items() if name != "day"}
        schema = pa.schema([("user", pa.string()), ("v", pa.int64())])
        pq.write_table(pa.Table.from_pylist([rest], schema=schema), folder / f"{number}.parquet")
    return "."


def _csv(path: Path, rows: list[dict[str, Any]]) -> str:
    def field(value: Any) -> str:
        return "" if value is None else f'"{value}"' if isinstance(value, str) else str(value)

    lines = ["day,user,v", *(",".join(map(field, row.values())) for row in rows)]
    (path / "rows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "rows.csv"


def _json(path: Path, rows: list[dict[str, Any]]) -> str:
    text = "".join(json.dumps({**row, "day": str(row["day"])}) + "\n" for row in rows)
    (path / "rows.jsonl").write_text(text, encoding="utf-8")
    return "rows.jsonl"


Write = Callable[[Path, list[dict[str, Any]]], str]
FORMS: list[Write] = [_delta, _parquet, _two_types, _hive, _csv, _json]


def by_run(path: Path, column: str = "day") -> list[list[Any]]:
    """The ticks as `run --input` has them, on the reference."""
    arrived = scans_of([InputFile("x", str(path), column)], {"x": ITEM})
    inputs = [read_all(one) for one in arrived]
    ticks = tick_inputs(inputs, cut(inputs, TickLength.parse("1d"), DAY))
    found = [sorted(map(repr, tick.batches["x"])) for tick in ticks]
    return found + [[] for _ in range(TICKS - len(found))]


def by_flow(
    path: Path, spark: SparkSession, small: int = 100, column: str = "day"
) -> list[list[Any]]:
    """The ticks as a flow has them, each by itself, and all as one range."""
    inputs = InputBatches(
        {"x": LandingTable(path, column)}, {"x": ITEM}, lambda: spark, small, CALENDAR
    )
    alone = [_items(inputs.read(t, t)["x"].frame(spark), t) for t in range(TICKS)]
    whole = inputs.read(0, TICKS - 1)["x"]
    assert [_items(whole.frame(spark), t) for t in range(TICKS)] == alone
    assert whole.read.rows == sum(map(len, alone))
    assert whole.read.empty == tuple(t for t in range(TICKS) if not alone[t])
    return alone


def _items(frame: Any, tick: int) -> list[str]:
    table = frame.select("item", "t").toArrow().to_pylist()
    return sorted(repr(row["item"]) for row in table if row["t"] == tick)


@pytest.mark.parametrize(
    ("write", "where"),
    [
        # Delta shows that workers read as the driver does; the other forms repeat it.
        pytest.param(write, where, marks=[pytest.mark.slow] * (where != "here" and write != _delta))
        for write in FORMS
        for where in ("here", "workers")
    ],
)
def test_the_rows_are_those_of_run(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Write,
    where: str,
) -> None:
    path = tmp_path / write(tmp_path, ROWS)
    if where == "workers":
        monkeypatch.setattr(source, "_HERE", 0)
    found = by_flow(path, spark, small=100 if where == "here" else 0)
    assert found == by_run(path)
    assert [len(tick) for tick in found] == [2, 0, 2]


@pytest.mark.parametrize(
    ("write", "where"),
    alternately_slow([_delta, _parquet, _json], ["here", "workers"]),
)
def test_text_is_no_number_however_many_rows_there_are(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Write,
    where: str,
) -> None:
    rows = [{**row, "v": "12"} for row in ROWS]
    path = tmp_path / write(tmp_path, rows)
    monkeypatch.setattr(source, "_HERE", 2**20 if where == "here" else 0)
    with pytest.raises(DataError) as by_reference:
        by_run(path)
    with pytest.raises(DataError) as by_landing:
        by_flow(path, spark, small=100 if where == "here" else 0)
    assert "'12' is not of type long (row 0, column `v`)" in str(by_reference.value)
    assert str(by_landing.value) == str(by_reference.value)


def test_what_is_wrong_at_another_tick_does_not_matter(
    spark: SparkSession, tmp_path: Path, refused: Refused
) -> None:
    rows = [{**row, "v": "many" if row["day"].day == 3 else 1} for row in ROWS]
    inputs = InputBatches(
        {"x": LandingTable(tmp_path / _json(tmp_path, rows), "day")},
        {"x": ITEM},
        lambda: spark,
        calendar=CALENDAR,
    )
    assert inputs.read(0, 1)["x"].read.rows == 2
    with refused(DataError, "input"):
        inputs.read(1, 2)


@pytest.mark.parametrize("read", [by_run, lambda path: by_flow(path, None)])
def test_a_field_of_csv_that_does_not_fit_is_told_by_line_and_column(
    tmp_path: Path, read: Callable[[Path], object], refused: Refused
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('day,user,v\n2026-01-01,"a\nb",1\n2026-01-02,c,many\n', encoding="utf-8")
    with refused(DataError, "input"):
        read(path)


def test_the_folders_of_other_ticks_are_not_opened(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / _hive(tmp_path, ROWS)
    inputs = InputBatches(
        {"x": LandingTable(path, "day")}, {"x": ITEM}, lambda: spark, calendar=CALENDAR
    )
    read = source.read
    seen: list[int] = []

    def counted(scan: Any, files: Any) -> Any:
        seen.append(len(files))
        return read(scan, files)

    source.read = counted
    try:
        for tick in range(TICKS):
            inputs.read(tick, tick)
    finally:
        source.read = read
    assert seen == [2, 0, 2]


@pytest.mark.parametrize("write", FORMS)
def test_the_latest_row_of_a_landing(spark: SparkSession, tmp_path: Path, write: Write) -> None:
    path = tmp_path / write(tmp_path, ROWS)
    inputs = InputBatches(
        {"x": LandingTable(path, "day")}, {"x": ITEM}, lambda: spark, calendar=CALENDAR
    )
    assert inputs.landings.latest("x") == datetime(2026, 1, 3, tzinfo=UTC)
    shutil.rmtree(tmp_path)
    if "*" not in path.name:
        assert inputs.landings.latest("x") is None


def test_a_delta_table_that_has_lost_its_log_is_not_read_as_files(
    tmp_path: Path, refused: Refused
) -> None:
    path = tmp_path / _delta(tmp_path, ROWS)
    write_deltalake(path, _table(ROWS), mode="overwrite")
    inputs = InputBatches(
        {"x": LandingTable(path, "day")}, {"x": ITEM}, lambda: pytest.fail("no"), calendar=CALENDAR
    )
    before = inputs.read(0, 0)["x"].read
    assert (before.rows, before.kind) == (2, "Delta table")
    shutil.rmtree(path / "_delta_log")
    old = InputRead("x", 2, str(path), 1)
    for known in (before, old):
        with refused(DataError, "input"):
            inputs.landings.look(1, [known])
    elsewhere = InputRead("x", 2, str(tmp_path / "other"), 1)
    assert inputs.read(1, 1, inputs.landings.look(1, [elsewhere]))["x"].read.rows == 0


@pytest.mark.parametrize("small", [0, 100])
@pytest.mark.parametrize("write", [_delta, _parquet, _json])
def test_a_missing_column_is_told_with_all_that_there_are(
    tmp_path: Path, write: Write, small: int, refused: Refused
) -> None:
    place = write(tmp_path, [{"day": date(2026, 1, 1), "usr": "a", "amount": 1}])
    item = parse_ddl("user string, amount long")
    landing = LandingTable(tmp_path / place, "day")
    with refused(DataError, "input") as caught:
        InputBatches({"o": landing}, {"o": item}, _no_session, small, CALENDAR).read(0, 0)
    assert caught.value.diagnostics[0].help == "there are day, usr, amount"


def test_a_delta_table_in_a_path_that_its_library_cannot_take_is_refused(
    tmp_path: Path, refused: Refused
) -> None:
    table = tmp_path / _delta(tmp_path, [{"day": date(2026, 1, 1), "k": "a"}])
    (tmp_path / "a[1]").mkdir()
    place = table.rename(tmp_path / "a[1]" / "table")
    inputs = InputBatches(
        {"o": LandingTable(place, "day")}, {"o": parse_ddl("k string")}, _no_session, 100, CALENDAR
    )
    for read in (lambda: inputs.read(0, 0), lambda: inputs.landings.latest("o")):
        with refused(DataError, "config"):
            read()


def _no_session() -> SparkSession:
    raise AssertionError("nothing of this needs Spark")


def test_a_delta_table_within_a_folder_is_not_read_as_files(
    tmp_path: Path, refused: Refused
) -> None:
    _delta(tmp_path, ROWS)
    inputs = InputBatches(
        {"x": LandingTable(tmp_path, "day")},
        {"x": ITEM},
        lambda: pytest.fail("no"),
        calendar=CALENDAR,
    )
    for read in (lambda: inputs.read(0, 0), lambda: by_run(tmp_path)):
        with refused(DataError, "input"):
            read()


@pytest.mark.parametrize(
    ("where", "write"),
    alternately_slow(["here", "workers"], [_delta, _parquet, _hive, _csv, _json]),
)
def test_dates_are_those_of_the_zone(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Write,
    where: str,
) -> None:
    days = [date(2026, 10, day) for day in (24, 25, 26)]
    rows = [{"day": day, "user": str(day), "v": day.day} for day in days]
    path = tmp_path / write(tmp_path, rows)
    monkeypatch.setattr(source, "_HERE", 2**20 if where == "here" else 0)
    calendar = Calendar(datetime(2026, 10, 24), zone="America/New_York")
    inputs = InputBatches(
        {"x": LandingTable(path, "day")},
        {"x": ITEM},
        lambda: spark,
        100 if where == "here" else 0,
        calendar,
    )
    batch = inputs.read(0, 2)["x"].frame(spark).toArrow().to_pylist()
    assert sorted((row["t"], row["item"]["v"]) for row in batch) == [(0, 24), (1, 25), (2, 26)]
    assert inputs.landings.latest("x") == datetime(2026, 10, 26, 4, tzinfo=UTC)


@pytest.mark.parametrize("where", ["here", "workers"])
@pytest.mark.parametrize("write", [_delta, _parquet, _csv, _json])
def test_a_null_that_may_not_be_is_refused(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Write,
    where: str,
    refused: Refused,
) -> None:
    path = tmp_path / write(tmp_path, ROWS)
    item = parse_ddl("user string, v long not null")
    monkeypatch.setattr(source, "_HERE", 2**20 if where == "here" else 0)
    small = 100 if where == "here" else 0
    inputs = InputBatches(
        {"x": LandingTable(path, "day")}, {"x": item}, lambda: spark, small, CALENDAR
    )
    assert inputs.read(0, 1)["x"].read.rows == 2
    with refused(DataError, "input"):
        inputs.read(0, 2)


@pytest.mark.parametrize(
    ("kind", "small"),
    alternately_slow(["parquet", "json"], [100, 0]),
)
def test_times_that_clocks_skip_or_show_twice_are_of_one_tick(
    spark: SparkSession, tmp_path: Path, small: int, kind: str
) -> None:
    walls = [datetime(2026, 3, 29, *time) for time in ((2, 30), (3, 30), (1, 0))]
    walls += [datetime(2026, 10, 25, 2, 30)]
    rows = [{"day": wall, "v": n} for n, wall in enumerate(walls)]
    if kind == "json":
        path = tmp_path / _json(tmp_path, rows)
    else:
        path = tmp_path / "rows.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
    calendar = Calendar(datetime(2026, 3, 29), "15m", zone="Europe/Amsterdam")
    told = [calendar.tick_of(moment_of(wall, calendar.zone)) for wall in walls]
    where = {"x": LandingTable(path, "day")}
    inputs = InputBatches(where, {"x": parse_ddl("v long")}, lambda: spark, small, calendar)
    found = inputs.read(0, max(told))["x"].frame(spark).collect()
    assert sorted((row["item"]["v"], row["t"]) for row in found) == list(enumerate(told))
