"""The log of a Delta table as this process writes it, read back by delta-rs."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from hydro_core.spark.store.delta_log import DeltaLog, EntryExistsError, UnknownFeatureError
from hydro_core.types.arrow import arrow_type
from hydro_core.types.ddl import parse_ddl

ITEM = arrow_type(
    parse_ddl(
        "struct<at:timestamp,local:timestamp_ntz,day:date,amount:decimal(38,2),"
        "tags:array<struct<name:string,weight:double>>>"
    )
)
SCHEMA = pa.schema(
    [("t", pa.int64()), ("item", ITEM), ("counts", pa.map_(pa.string(), pa.int64()))]
)


def rows(tick: int, count: int = 1) -> pa.Table:
    item = {"at": 5, "local": 6, "day": 7, "amount": None, "tags": [{"name": "é", "weight": 0.5}]}
    made = [{"t": tick, "item": item, "counts": [("a", tick)]}, {"t": tick}]
    return pa.Table.from_pylist(made * count, schema=SCHEMA)


def add(log: DeltaLog, tick: int, *, replacing: bool = False) -> None:
    log.add([log.write(rows(tick), {"t": (tick, tick)})], replacing=replacing)


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    DeltaTable.create(tmp_path, SCHEMA, configuration={"delta.checkpointInterval": "3"})
    return DeltaLog(tmp_path, ["t"])


def contents(log: DeltaLog) -> pa.Table:
    return pa.table(DeltaTable(log.path).to_pyarrow_table()).cast(SCHEMA).sort_by("t")


def test_what_is_added_is_what_others_read(log: DeltaLog) -> None:
    for tick in range(4):
        add(log, tick)
    assert contents(log).equals(pa.concat_tables([rows(t) for t in range(4)]))
    assert (log.path / "_delta_log" / "_last_checkpoint").exists()


def test_what_it_knows_is_what_is_read_again(log: DeltaLog) -> None:
    for tick in range(5):
        add(log, tick, replacing=tick == 2)
    again = DeltaLog(log.path, ["t"])
    assert (log.version, log.schema) == (again.version, again.schema)
    assert sorted(log.files, key=str) == sorted(again.files, key=str)
    assert sorted(file.bounds["t"] for file in log.files) == [(2, 2), (3, 3), (4, 4)]


def test_delta_rs_joins_and_restores_what_was_added(log: DeltaLog) -> None:
    for tick in range(3):
        add(log, tick)
    with log.by_delta_rs() as table:
        table.optimize.compact()
    assert (log.version, len(log.files)) == (4, 1)
    add(log, 3)
    assert contents(log).equals(pa.concat_tables([rows(t) for t in range(4)]))
    with log.by_delta_rs() as table:
        table.restore(2)
    assert contents(log).equals(pa.concat_tables([rows(t) for t in range(2)]))


def test_of_two_writers_the_second_fails_and_leaves_nothing(log: DeltaLog) -> None:
    other = DeltaLog(log.path, ["t"])
    assert other.version == 0
    add(log, 0)
    with pytest.raises(EntryExistsError):
        add(other, 1)
    assert contents(log).equals(rows(0))
    assert not list((log.path / "_delta_log").glob("*.tmp"))
    assert other.has_more
    other.forget()
    add(other, 1)
    assert contents(log).equals(pa.concat_tables([rows(0), rows(1)]))


def test_a_table_with_other_features_is_not_written(log: DeltaLog) -> None:
    table = DeltaTable(log.path)
    table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    entry = log.path / "_delta_log" / f"{table.version():020}.json"
    told = [json.loads(line) for line in entry.read_text(encoding="utf-8").splitlines()]
    assert any("changeDataFeed" in json.dumps(line) for line in told)
    with pytest.raises(UnknownFeatureError, match="changeDataFeed"):
        add(log, 0)


def test_columns_that_come_later_are_seen(log: DeltaLog) -> None:
    with log.by_delta_rs() as table:
        table.alter.add_columns([Field("more", PrimitiveType("long"))])
    assert log.schema.names[-1] == "more"
    add(log, 0)
    assert DeltaTable(log.path).to_pyarrow_table()["more"].null_count == 2
