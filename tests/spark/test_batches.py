"""Batches: from columns to items, and from landing tables to ticks, with and without Spark."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from hydro_core.errors import DataError
from hydro_core.spark.inputs.batches import Batch, batch_of, ticks_within
from hydro_core.spark.inputs.looks import LandingTable
from hydro_core.spark.inputs.reading import InputBatches
from hydro_core.ticks.calendar import Calendar
from hydro_core.types.ddl import parse_ddl
from hydro_core.types.item import ItemType
from tests.support.refused import Refused
from tests.support.selection import alternately_slow

pytestmark = pytest.mark.spark

DAY = datetime(2013, 1, 1, tzinfo=UTC)
ROW = parse_ddl("user string, n long")


def items(batch: Batch, spark: SparkSession) -> list[tuple[object, int]]:
    table = batch.frame(spark).select("item", "t").toArrow()
    rows = zip(table["item"].to_pylist(), table["t"].to_pylist(), strict=True)
    return sorted(rows, key=repr)


def test_declared_columns_make_the_item_and_others_are_left_out(spark: SparkSession) -> None:
    data = pa.table({"n": pa.array([1, None], pa.int32()), "more": [1, 2], "user": ["a", None]})
    expected = [({"user": "a", "n": 1}, 3), ({"user": None, "n": None}, 3)]
    for given in (data, spark.createDataFrame(data)):
        assert items(batch_of("x", given, ROW, 3), spark) == sorted(expected, key=repr)


@pytest.mark.parametrize("item", [ROW, parse_ddl("long")], ids=str)
def test_ticks_without_rows_within_a_batch(spark: SparkSession, item: ItemType) -> None:
    data = pa.table({"user": ["a"], "n": [1]} if item is ROW else {"item": [1]})
    batch = batch_of("x", data, item, 1)
    assert len(items(batch.within(0, 1), spark)) == 1
    assert items(batch.within(0, 0), spark) == []
    assert items(batch.within(0, 1).within(2, 2).within(2, 2), spark) == []


@pytest.mark.parametrize("ddl", ["long", "(long, string)", "array<long>", "(long)"])
def test_other_items_than_rows(spark: SparkSession, ddl: str) -> None:
    item = parse_ddl(ddl)
    columns = {
        "long": {"item": [1, None]},
        "(long, string)": {"_1": [1, None], "_2": ["a", "b"]},
        "array<long>": {"anything": [[1, None], None]},
        "(long)": {"_1": [1, 2]},
    }[ddl]
    found = items(batch_of("x", pa.table(columns), item, 0), spark)
    again = items(batch_of("x", spark.createDataFrame(pa.table(columns)), item, 0), spark)
    assert len(found) == 2
    assert found == again


def test_a_missing_column_is_named(spark: SparkSession, refused: Refused) -> None:
    for data in (pa.table({"user": ["a"]}), spark.createDataFrame(pa.table({"user": ["a"]}))):
        with refused(DataError, "input"):
            batch_of("x", data, ROW, 0)


def test_data_that_does_not_fit_is_an_input_error(spark: SparkSession, refused: Refused) -> None:
    data = pa.table({"user": ["a"], "n": ["many"]})
    for given in (data, spark.createDataFrame(data)):
        with refused(DataError, "input"):
            batch_of("x", given, ROW, 0)


def test_rows_of_other_ticks_are_refused(refused: Refused) -> None:
    batch = batch_of("x", pa.table({"user": ["a"], "n": [1], "at": [4]}), ROW, "at")
    ticks_within({"x": batch}, 4, 4)
    with refused(DataError, "input"):
        ticks_within({"x": batch}, 5, 6)


def landed(tmp_path: Path, kind: str, values: list[object]) -> Path:
    path = tmp_path / "landing"
    table = pa.table(
        {
            "when": values,
            "user": [f"u{i}" for i in range(len(values))],
            "n": range(len(values)),
            "share": [0.5] * len(values),
        }
    )
    if kind == "delta":
        write_deltalake(path, table)
    else:
        path.mkdir()
        pq.write_table(table, path / "part.parquet")
    return path


@pytest.mark.parametrize(
    ("values", "kind", "small"),
    alternately_slow(["number", "date", "timestamp"], ["delta", "parquet"], [100, 0]),
)
def test_ticks_of_landing_tables(
    spark: SparkSession, tmp_path: Path, values: str, kind: str, small: int
) -> None:
    column = {
        "number": [0, 1, 1, 2, 3, 5],
        "date": [date(2013, 1, d) for d in (1, 2, 2, 3, 4, 6)],
        "timestamp": [
            DAY,
            DAY + timedelta(days=1),
            DAY + timedelta(days=2, microseconds=-1),
            DAY + timedelta(days=2),
            DAY + timedelta(days=3, hours=5),
            DAY + timedelta(days=5),
        ],
    }[values]
    path = landed(tmp_path, kind, list(column))
    where = {"x": LandingTable(path, "when")}
    inputs = InputBatches(where, {"x": ROW}, lambda: spark, small, Calendar(DAY))
    batch = inputs.read(1, 3)["x"]
    assert [(i["n"], t) for i, t in sorted(items(batch, spark), key=lambda x: x[0]["n"])] == [
        (1, 1),
        (2, 1),
        (3, 2),
        (4, 3),
    ]
    assert (batch.read.rows, batch.rows_at_hand is not None) == (4, small > 0)
    assert batch.read.version == (0 if kind == "delta" else None)
    assert items(inputs.read(4, 4)["x"], spark) == []


@pytest.mark.parametrize("small", [100, 0], ids=["arrow", "spark"])
def test_windows_of_unequal_length(spark: SparkSession, tmp_path: Path, small: int) -> None:
    path = landed(tmp_path, "delta", [date(2013, 1, 31), date(2013, 2, 1), date(2013, 3, 31)])
    where = {"x": LandingTable(path, "when")}
    inputs = InputBatches(where, {"x": ROW}, lambda: spark, small, Calendar(DAY, "1mo"))
    batch = inputs.read(0, 2)["x"]
    assert sorted((i["n"], t) for i, t in items(batch, spark)) == [(0, 0), (1, 1), (2, 2)]


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_what_is_read_is_what_was_seen(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    path = landed(tmp_path, kind, [0, 0])
    where = {"x": LandingTable(path, "when")}
    inputs = InputBatches(
        where, {"x": ROW}, lambda: spark, calendar=Calendar(DAY), directory=tmp_path / "pipeline"
    )
    seen = inputs.landings.look(0)
    late = pa.table({"when": [0], "user": ["late"], "n": [9], "share": [0.5]})
    if kind == "delta":
        write_deltalake(path, late, mode="append")
    else:
        pq.write_table(late, path / "late.parquet")
    now, then = inputs.read(0, 0)["x"].read, inputs.read(0, 0, seen=seen)["x"].read
    assert (now.rows, then.rows) == (3, 2)
    assert (then.version, then.listing) != (now.version, now.listing)


def test_an_input_without_a_column_arrives_at_tick_0(spark: SparkSession, tmp_path: Path) -> None:
    path = landed(tmp_path, "parquet", [7, 8])
    inputs = InputBatches({"x": LandingTable(path)}, {"x": ROW}, lambda: spark)
    assert [t for _, t in items(inputs.read(0, 2)["x"], spark)] == [0, 0]
    assert items(inputs.read(1, 2)["x"], spark) == []


@pytest.mark.parametrize(
    ("landing", "message"),
    [
        (LandingTable(Path("nowhere")), "is not there"),
        (LandingTable(Path("landing"), "day"), "the tick column `day` is missing"),
        (LandingTable(Path("landing"), "user"), "the tick column `user`: "),
        (LandingTable(Path("landing"), "share"), "`share` is double, which tells no tick"),
        (LandingTable(Path("landing"), "when"), "no windows"),
    ],
)
def test_a_wrong_landing_table_is_an_input_error(
    tmp_path: Path, landing: LandingTable, message: str, refused: Refused
) -> None:
    landed(tmp_path, "delta", [date(2013, 1, 1)])
    there = LandingTable(tmp_path / landing.path, landing.column)
    inputs = InputBatches({"x": there}, {"x": ROW}, lambda: pytest.fail("no Spark is needed"))
    with refused(DataError, "input"):
        inputs.read(0, 0)


def test_rows_without_a_tick_are_refused(tmp_path: Path, refused: Refused) -> None:
    path = landed(tmp_path, "delta", [0, None, 1])
    inputs = InputBatches({"x": LandingTable(path, "when")}, {"x": ROW}, lambda: pytest.fail("no"))
    with refused(DataError, "input"):
        inputs.read(0, 0)
